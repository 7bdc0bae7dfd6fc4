//! `graph.json`: the graph of a run, for its report.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::inspect::{Overview, overview};
use gnarl_graph::{Dataset, Names};
use serde::{Deserialize, Serialize};

use super::names::GRAPH;
use crate::run::checkpoint::atomic_write;
use crate::run::setup::Source;
use crate::task::Sizes;

/// Most nodes and most edges that are read for classes and homophily: a fraction of a second.
pub const MOST_READ: u64 = 10_000_000;

/// The graph of a run, as recorded in its folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphRecord {
    /// Counts of nodes and edges; classes and homophily where they are cheap to have, see [`MOST_READ`].
    #[serde(flatten)]
    pub overview: Overview,
    /// Names of the classes, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
    /// Members of the splits: `"nodes"` or `"edges"`.
    pub of: String,
    /// Number of classes, tasks or values predicted; 0 if none.
    pub outputs: usize,
    /// Sizes of the splits train, valid and test.
    pub splits: [usize; 3],
}

impl GraphRecord {
    /// The graph of `source`, with the examples of a task.
    ///
    /// # Errors
    /// If the dataset is damaged.
    pub(crate) fn new(config: &RunConfig, source: &Source, sizes: &Sizes) -> Result<Self> {
        let (overview, class_names) = match source {
            Source::Whole(dataset) => of_dataset(config, dataset)?,
            Source::Parts(cut) => {
                let made = cut.manifest();
                let nodes = made.node_types.iter().map(|t| (t.name.clone(), t.count)).collect();
                // Parts store edges of their halos, too: the counts of each type are not those of the graph.
                let edges = vec![("edges".into(), made.cut.iter().flatten().sum())];
                (Overview { nodes, edges, ..Overview::default() }, Vec::new())
            }
        };
        let (outputs, splits) = (sizes.outputs, sizes.splits);
        Ok(Self { overview, class_names, of: sizes.of.into(), outputs, splits })
    }

    /// Writes the record to a run's folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::invalid(format!("{GRAPH} cannot be written: {e}")))?;
        atomic_write(&dir.join(GRAPH), text.as_bytes())
    }
}

/// The overview of a dataset, and the names of its classes.
fn of_dataset(config: &RunConfig, dataset: &Dataset) -> Result<(Overview, Vec<String>)> {
    let kind = config.task.kind;
    let labeled = match (kind, &config.task.node_type) {
        (TaskKind::NodeClassification, Some(named)) => Some(named.clone()),
        (TaskKind::NodeClassification, None) => Some(kind.only_labeled_type(dataset)?),
        _ => None,
    };
    let overview = overview(dataset, labeled.as_deref(), MOST_READ)?;
    let names = match &labeled {
        Some(node_type) => Names::of_nodes(dataset, node_type, "class_name")?,
        None => None,
    };
    let names = names.map(|names| (0..names.len()).map(|class| names.get(class).into()).collect());
    Ok((overview, names.unwrap_or_default()))
}
