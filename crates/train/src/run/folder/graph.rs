//! `graph.json`: the graph of a run, for its report.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::inspect::{Overview, overview};
use gnarl_graph::{Dataset, Names};
use serde::{Deserialize, Serialize};

use super::names::GRAPH;
use crate::evaluation::Goal;
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
    /// The reason why homophily is not known, of a graph with classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<Unmeasured>,
    /// Names of the classes, if they have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
    /// Members of the splits: `"nodes"` or `"edges"`.
    pub of: String,
    /// Number of classes, tasks or values predicted; 0 if none.
    pub outputs: usize,
    /// Sizes of the splits train, valid and test.
    pub splits: [usize; 3],
    /// The score that selects weights; none of runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

/// Reasons why the homophily of a graph is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmeasured {
    /// There are more edges than [`MOST_READ`].
    ManyEdges,
    /// No edge joins two labeled nodes.
    NoEdges,
}

impl GraphRecord {
    /// The graph of `source`, with the examples of a task and the score that selects weights.
    ///
    /// # Errors
    /// If the dataset is damaged.
    pub(crate) fn new(
        config: &RunConfig,
        source: &Source,
        sizes: &Sizes,
        goal: &Goal,
    ) -> Result<Self> {
        let found = match source {
            Source::Whole(dataset) => of_dataset(config, dataset)?,
            Source::Parts(partition) => {
                let made = partition.manifest();
                let nodes = made.node_types.iter().map(|t| (t.name.clone(), t.count)).collect();
                // Parts store edges of their halos, too: the counts of each type are not those of the graph.
                let edges = vec![("edges".into(), made.cut.iter().flatten().sum())];
                let overview = Overview { nodes, edges, ..Overview::default() };
                Self { overview, ..Self::default() }
            }
        };
        Ok(Self {
            of: sizes.of.into(),
            outputs: sizes.outputs,
            splits: sizes.splits,
            goal: Some(goal.clone()),
            ..found
        })
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

/// The reason why an overview with classes has no homophily.
fn reason(dataset: &Dataset, labeled: Option<&str>, overview: &Overview) -> Option<Unmeasured> {
    if overview.homophily.is_some() || overview.classes.is_empty() {
        return None;
    }
    let labeled = labeled?;
    let within = dataset.manifest().edge_types.iter();
    let within = within.filter(|t| t.triple.src == labeled && t.triple.dst == labeled);
    match within.map(|t| t.count).sum::<u64>() > MOST_READ {
        true => Some(Unmeasured::ManyEdges),
        false => Some(Unmeasured::NoEdges),
    }
}

/// The overview of a dataset, and the names of its classes.
fn of_dataset(config: &RunConfig, dataset: &Dataset) -> Result<GraphRecord> {
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
    Ok(GraphRecord {
        unmeasured: reason(dataset, labeled.as_deref(), &overview),
        overview,
        class_names: names.unwrap_or_default(),
        ..GraphRecord::default()
    })
}
