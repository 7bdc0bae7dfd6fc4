//! The edge type of a task.

use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::{Dataset, EdgeType, Triple};

use super::edge_set::Ways;

/// The edge type that a run predicts.
///
/// # Errors
/// If there is no such type, or there are several and none is named.
pub(crate) fn asked<'a>(dataset: &'a Dataset, config: &RunConfig) -> Result<&'a EdgeType> {
    let manifest = dataset.manifest();
    match (&config.task.edge_type, &manifest.edge_types[..]) {
        (Some(name), _) => {
            let triple: Triple = name.parse().map_err(|e: Error| e.context("task.edge_type"))?;
            manifest.edge_type(&triple)
        }
        (None, [only]) => Ok(only),
        (None, all) => {
            let known: Vec<String> = all.iter().map(|t| t.triple.to_string()).collect();
            Err(Error::usage("task.edge_type is required for a graph with several edge types")
                .hint(format!("the type of the target edges, one of: {}", known.join(", "))))
        }
    }
}

/// Edge types over which edges of type `asked`, one of `types`, pass messages. Their reverses have the
/// type that an import with `--reverse` gives them or, without such a type, the same one where both
/// endpoints are of one node type.
pub(crate) fn ways_of_type(types: &[Triple], asked: &Triple) -> Ways {
    let forth = types.iter().position(|other| other == asked).unwrap_or(0);
    let turned = |other: &Triple| *other == asked.reversed() || other.reversed() == *asked;
    let back = types.iter().position(turned);
    Ways { forth, back: back.or((asked.src == asked.dst).then_some(forth)) }
}
