//! Graphs of several types: messages pass over the edge types of the dataset as they are.

use std::collections::BTreeSet;

use gnarl_graph::{Dataset, EdgeType, Error, Result, Triple};
use gnarl_nn::ParamsBuilder;
use gnarl_sample::TypedGraph;

use super::{TypedEdges, TypedEncoder, Ways};
use crate::config::RunConfig;
use crate::typed::{TypedTaskGraph, features_of_types};

/// The edge type that a run asks about.
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
            Err(Error::usage("the graph has edge types, and task.edge_type is not set").hint(
                format!("the type of the edges that are asked about, of: {}", known.join(", ")),
            ))
        }
    }
}

/// The model of `config` over all edge types but the edges `held`, whose rows are `width` wide, and its
/// parameters added to `params`. What is asked about are edges of type `asked`.
///
/// # Errors
/// If the model is unknown, sizes are impossible, or features damaged.
pub(crate) fn of_types(
    config: &RunConfig,
    dataset: &Dataset,
    asked: &Triple,
    held: &TypedEdges,
    width: usize,
    params: &mut ParamsBuilder,
) -> Result<TypedEncoder> {
    let mut graph = TypedGraph::open(dataset)?;
    let (src, dst) = graph.schema().ends(graph.schema().edge_type(asked)?);
    let ways = ways(graph.schema().edge_types(), asked);
    let touched: BTreeSet<usize> = held.iter().map(|(edge_type, ..)| *edge_type).collect();
    for edge_type in touched {
        let drop = |src: u32, dst: u32| held.contains(&(edge_type, src.into(), dst.into()));
        graph = graph.without(edge_type, drop)?;
    }
    let features = features_of_types(dataset, config.dataset.normalize)?;
    let graph = TypedTaskGraph::of_messages(graph, features);
    let ends = if src == dst { vec![src] } else { vec![src, dst] };
    TypedEncoder::new(config, graph, (ends, vec![ways]), width, params)
}

/// How edges of type `asked`, one of `types`, pass messages. Their reverses have the type that an import with `--reverse` gives
/// them or, without such a type, the same one where both ends are of one node type.
pub(crate) fn ways(types: &[Triple], asked: &Triple) -> Ways {
    let forth = types.iter().position(|other| other == asked).unwrap_or(0);
    let turned = |other: &Triple| *other == asked.reversed() || other.reversed() == *asked;
    let back = types.iter().position(turned);
    Ways { forth, back: back.or((asked.src == asked.dst).then_some(forth)) }
}
