//! What every rank of a run has before it trains.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Dataset, Error, Result};
use gnarl_nn::Params;
use gnarl_nn::models::{self, Model};
use gnarl_partition::{PartitionedDataset, fingerprint};

use crate::config::{RunConfig, TaskKind};
use crate::cut::cut;
use crate::edges::EdgeLabels;
use crate::folder::RunFolder;
use crate::learner::Task;
use crate::links::Links;
use crate::nodes::Nodes;
use crate::state::Start;
use crate::task::{TaskGraph, opened};
use crate::typed::TypedNodes;

/// Where the graph comes from.
pub(crate) enum Source {
    /// A dataset, of which every rank has all files.
    Whole(Box<Dataset>),
    /// Parts, of which machines have some each.
    Parts(Box<PartitionedDataset>),
}

/// Serves this machine's parts as long as it lives.
#[cfg(feature = "serve")]
pub(crate) type KeptServer = Option<gnarl_serve::Server>;
/// Nothing is served.
#[cfg(not(feature = "serve"))]
pub(crate) type KeptServer = ();

/// This rank of a run, and the machine each is on; none for all threads of one process.
pub(crate) type Ranks<'a> = Option<(&'a dyn Communicator, &'a [String])>;

/// The graph, what is to be learnt of it, and what training starts from.
pub(crate) struct Loaded {
    pub source: Source,
    pub task: Box<dyn Task>,
    pub start: Start,
}

impl Source {
    /// Opens what the run file names.
    pub fn open(config: &RunConfig) -> Result<Self> {
        let section = &config.partition;
        if let (Some(_), Some(path)) = (&section.servers, &section.path) {
            return PartitionedDataset::open(path).map(|cut| Self::Parts(Box::new(cut)));
        }
        Ok(Self::Whole(Box::new(Dataset::open(&config.dataset.path)?)))
    }

    /// Tells the graph from others.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Whole(dataset) => fingerprint(dataset.manifest()),
            Self::Parts(cut) => {
                let made = cut.manifest();
                format!("{} by {} {:?}", made.source.fingerprint, made.algorithm, made.part_counts)
            }
        }
    }

    /// The dataset, if every rank has it.
    pub fn dataset(&self) -> Option<&Dataset> {
        match self {
            Self::Whole(dataset) => Some(dataset),
            Self::Parts(_) => None,
        }
    }

    /// The partition of the run, if it has one, for so many ranks on this host.
    pub fn cut(
        &self,
        config: &RunConfig,
        folder: &RunFolder,
        neighbours: usize,
    ) -> Result<Option<PartitionedDataset>> {
        match self {
            Self::Whole(dataset) => cut(config, dataset, folder, neighbours),
            Self::Parts(made) => PartitionedDataset::open(made.dir()).map(Some),
        }
    }
}

impl Loaded {
    /// Loads `source` as one of some ranks, or for all threads of one process.
    pub fn new(config: &RunConfig, source: Source, ranks: Ranks<'_>) -> Result<Self> {
        let (task, start): (Box<dyn Task>, _) = match config.task.kind {
            TaskKind::NodeClassification if is_typed(config, &source) => {
                let (nodes, start) = typed_nodes(config, &source)?;
                (Box::new(nodes), start)
            }
            TaskKind::NodeClassification => {
                let (nodes, params) = nodes(config, &source, ranks)?;
                (Box::new(nodes), Start { params, tables: Vec::new() })
            }
            TaskKind::LinkPrediction => {
                let (links, start) = Links::new(config, whole(&source)?)?;
                (Box::new(links), start)
            }
            TaskKind::EdgeClassification | TaskKind::EdgeRegression => {
                let (labels, start) = EdgeLabels::new(config, whole(&source)?)?;
                (Box::new(labels), start)
            }
        };
        Ok(Self { source, task, start })
    }
}

/// The dataset, for tasks of edges.
fn whole(source: &Source) -> Result<&Dataset> {
    source.dataset().ok_or_else(|| {
        Error::usage("tasks of edges need the whole dataset on every rank")
            .hint("leave out partition.servers")
    })
}

/// Whether the run classifies nodes of one of several types.
fn is_typed(config: &RunConfig, source: &Source) -> bool {
    let several = |manifest: &gnarl_graph::Manifest| {
        manifest.node_types.len() > 1 || manifest.edge_types.len() > 1
    };
    config.task.node_type.is_some() || source.dataset().is_some_and(|d| several(d.manifest()))
}

fn typed_nodes(config: &RunConfig, source: &Source) -> Result<(TypedNodes, Start)> {
    let Some(dataset) = source.dataset() else {
        return Err(Error::usage("graphs with types are trained where every rank has the whole")
            .hint("leave out partition.servers, or task.node_type"));
    };
    if let Some(node_type) = &config.task.node_type {
        return TypedNodes::open(config, dataset, node_type);
    }
    let node_type = only_labeled_type(dataset)?;
    tracing::info!("task.node_type is not set: '{node_type}' is the only node type with labels");
    let mut config = config.clone();
    config.task.node_type = Some(node_type.clone());
    TypedNodes::open(&config, dataset, &node_type)
}

/// The node type to classify where the run file names none.
///
/// # Errors
/// [`gnarl_graph::Kind::Usage`] unless exactly one has labels.
fn only_labeled_type(dataset: &Dataset) -> Result<String> {
    let types = &dataset.manifest().node_types;
    let labeled = types.iter().filter(|t| t.columns.iter().any(|column| column.name == "label"));
    let labeled: Vec<&str> = labeled.map(|t| t.name.as_str()).collect();
    if let [only] = labeled[..] {
        return Ok(only.to_string());
    }
    let names: Vec<&str> = types.iter().map(|t| t.name.as_str()).collect();
    let what = if labeled.is_empty() { "no node type has labels" } else { "several have labels" };
    Err(Error::usage(format!("the graph has types, and task.node_type is not set: {what}"))
        .hint(format!("the type of the nodes to classify, of: {}", names.join(", "))))
}

fn nodes(config: &RunConfig, source: &Source, ranks: Ranks<'_>) -> Result<(Nodes, Params)> {
    let (roles, whole, server) = match source {
        Source::Whole(dataset) => {
            let (roles, whole) = opened(dataset, &config.dataset)?;
            (Some(roles), whole, KeptServer::default())
        }
        Source::Parts(cut) => {
            let (whole, server) = divided(config, cut, ranks)?;
            (None, whole, server)
        }
    };
    Nodes::new(config, whole, roles, server)
}

#[cfg(feature = "serve")]
fn divided(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Ranks<'_>,
) -> Result<(Arc<TaskGraph>, KeptServer)> {
    let ranks = ranks.map(|(rank, hosts)| crate::divided::Ranks { rank, hosts });
    let opened = crate::divided::open(config, cut, ranks.as_ref())?;
    Ok((Arc::new(opened.task), opened.server))
}

#[cfg(not(feature = "serve"))]
fn divided(
    _: &RunConfig,
    _: &PartitionedDataset,
    _: Ranks<'_>,
) -> Result<(Arc<TaskGraph>, KeptServer)> {
    Err(Error::usage("partition.servers is set, and this gnarl was built without it")
        .hint("build with --features serve"))
}

/// The model of a run for this dataset, freshly initialised.
///
/// # Errors
/// [`gnarl_graph::Kind::Usage`] for an unknown name or impossible sizes.
pub fn build_model(config: &RunConfig, task: &TaskGraph) -> Result<(Box<dyn Model>, Params)> {
    let mut model = config.model.clone();
    model.in_dim = task.width();
    model.out_dim = task.labels.outputs();
    models::build(&model, Key::new(config.train.seed).with(0))
}
