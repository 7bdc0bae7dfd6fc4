//! Setup of a run: graph, task and initial state.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{EvaluateOn, Method, RunConfig, TaskKind, data_folder, support};
use gnarl_engine::Communicator;
use gnarl_graph::splits::Roles;
use gnarl_graph::{Dataset, Labels};
use gnarl_nn::ParamsBuilder;
use gnarl_partition::{PartitionManifest, PartitionedDataset, fingerprint};

use super::folder::RunFolder;
use super::partition::cut;
use crate::data::graph::Graph;
use crate::data::hetero_graph::HeteroGraph;
use crate::data::identity::MessageGraph;
use crate::data::node_targets::NodeTargets;
#[cfg(feature = "serve")]
use crate::data::partitioned::{self, Opened};
use crate::encoder::heterogeneous::Heterogeneous;
use crate::encoder::homogeneous::Homogeneous;
use crate::fit::{Fit, Training};
use crate::registry::Registry;
use crate::state::Start;
use crate::task::divide::{check_of_dataset, message_form};
use crate::task::node::NodePrediction;
use crate::task::{edge, link};

/// The source of the graph.
pub(crate) enum Source {
    /// A dataset with all files on every rank.
    Whole(Box<Dataset>),
    /// Parts, distributed over machines.
    Parts(Box<PartitionedDataset>),
}

/// The server of this machine's parts, for as long as it lives.
#[cfg(feature = "serve")]
pub(crate) type KeptServer = Option<gnarl_serve::Server>;
/// No server in this build.
#[cfg(not(feature = "serve"))]
pub(crate) type KeptServer = ();

/// This rank of a run, and the host of each; none for all threads of one process.
pub(crate) type Ranks<'a> = Option<(&'a dyn Communicator, &'a [String])>;

/// The purpose that a graph is opened for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// Training, or scores: nodes have labels and splits.
    Training(Ranks<'a>),
    /// Inference: nodes may lack both. Labels of the dataset that the run was trained on say of which kind they are.
    Inference(&'a Labels),
}

/// The setup of a run: graph, targets, and the initial state.
pub(crate) struct Setup {
    pub source: Source,
    pub task: Box<dyn Training>,
    pub start: Start,
    /// Serves other machines' requests as long as it lives.
    pub _server: KeptServer,
}

impl Source {
    /// Opens the dataset or partition of the run file.
    pub fn open(config: &RunConfig) -> Result<Self> {
        let section = &config.partition;
        if let (Some(_), Some(path)) = (&section.servers, &section.path) {
            let cut = PartitionedDataset::open(data_folder(path)?)?;
            return Ok(Self::Parts(Box::new(cut)));
        }
        Ok(Self::Whole(Box::new(Dataset::open(data_folder(&config.dataset.path)?)?)))
    }

    /// The fingerprint of the graph.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Whole(dataset) => fingerprint(dataset.manifest()),
            Self::Parts(cut) => {
                let made = cut.manifest();
                format!("{} by {} {:?}", made.source.fingerprint, made.algorithm, made.part_counts)
            }
        }
    }

    /// The graph of a run's batches.
    ///
    /// # Errors
    /// Those of the dataset; if the type of the target edges is not told.
    pub fn message_graph(&self, run: (&RunConfig, &Registry)) -> Result<MessageGraph> {
        let form = self.dataset().map(|dataset| message_form(run, dataset)).transpose()?.flatten();
        let form = form.map_or_else(|| "dataset".into(), |form| format!("{form:?}").to_lowercase());
        Ok(MessageGraph { dataset: self.fingerprint(), form })
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
        (config, registry): (&RunConfig, &Registry),
        folder: &RunFolder,
        local_ranks: usize,
    ) -> Result<Option<PartitionedDataset>> {
        match self {
            Self::Whole(dataset) => cut((config, registry), dataset, folder, local_ranks),
            // Opened once, as its clones share the parts of nodes.
            Self::Parts(made) => Ok(Some((**made).clone())),
        }
    }
}

impl Setup {
    /// Loads `source` for `purpose`.
    ///
    /// # Errors
    /// If the configuration does not fit the dataset.
    pub fn new(
        (config, registry): (&RunConfig, &Registry),
        source: Source,
        purpose: Purpose<'_>,
    ) -> Result<Self> {
        if let Source::Parts(cut) = &source
            && config.task.kind.is_of_nodes()
        {
            check_of_dataset(cut)?;
        }
        let heterogeneous = is_heterogeneous(config, &source);
        support::Combination { run: config, heterogeneous }.check()?;
        let (task, start) = match config.task.kind {
            kind if kind.is_of_nodes() && heterogeneous => {
                return heterogeneous_nodes((config, registry), source, purpose);
            }
            kind if kind.is_of_nodes() => {
                return homogeneous_nodes((config, registry), source, purpose);
            }
            kind => {
                let links = kind == TaskKind::LinkPrediction;
                debug_assert!(links || kind.is_of_edges(), "{kind:?} is a task of nodes or edges");
                let config = sampled(config);
                let run = (&config, registry);
                match &source {
                    Source::Whole(dataset) if links => link::open(run, dataset)?,
                    Source::Whole(dataset) => edge::open(run, dataset)?,
                    Source::Parts(cut) => {
                        let ranks =
                            if let Purpose::Training(ranks) = purpose { ranks } else { None };
                        let (task, start, server) = edges_in_parts(run, cut, ranks)?;
                        return Ok(Self { source, task, start, _server: server });
                    }
                }
            }
        };
        Ok(Self { source, task, start, _server: KeptServer::default() })
    }
}

/// The run file for encoders: full-graph steps take all neighbors, whatever `[sample]` says.
fn sampled(config: &RunConfig) -> RunConfig {
    let mut config = config.clone();
    if config.train.strategy.takes_whole_graph() {
        config.sample.method = Method::Full;
    }
    config
}

/// Returns whether the graph has several types, or the run file names one.
fn is_heterogeneous(config: &RunConfig, source: &Source) -> bool {
    match source {
        Source::Whole(dataset) => support::is_heterogeneous(config, dataset.manifest()),
        Source::Parts(cut) => {
            let PartitionManifest { node_types, part_counts, targets, .. } = cut.manifest();
            // The message graph of a task may have a type per relation, and the dataset only one.
            let by_relation =
                targets.as_ref().is_some_and(|of| of.settings["messages"] == "relations");
            config.task.node_type.is_some()
                || node_types.len() > 1
                || (!by_relation && part_counts.iter().any(|part| part.edges.len() > 1))
        }
    }
}

/// Node prediction for one of several node types.
fn heterogeneous_nodes(
    (config, registry): (&RunConfig, &Registry),
    source: Source,
    purpose: Purpose<'_>,
) -> Result<Setup> {
    let mut config = sampled(config);
    if config.train.evaluate_on == EvaluateOn::Parts {
        return Err(Error::usage("train.evaluate_on = 'parts' requires a homogeneous graph")
            .hint("heterogeneous graphs are evaluated as a whole"));
    }
    // Parts that train alone have splits of their own nodes.
    let alone = config.train.strategy.parts_train_alone();
    let (graph, mut targets, roles, server) = match &source {
        Source::Whole(dataset) => {
            if config.task.node_type.is_none() {
                let only = config.task.kind.only_labeled_type(dataset)?;
                tracing::info!(
                    "task.node_type is not set: '{only}' is the only node type with labels"
                );
                config.task.node_type = Some(only);
            }
            let node_type = config.task.node_type.clone().unwrap_or_default();
            if let Err(e) = dataset.manifest().node_type(&node_type) {
                return Err(Error::usage(format!("task.node_type: {e}")));
            }
            let (labels, roles) = labels_and_roles(&config, dataset, &node_type, purpose)?;
            let graph = HeteroGraph::open(dataset, &config)?;
            let nodes = 0..graph.core(graph.schema().node_type(&node_type)?) as u64;
            let targets = NodeTargets::new(labels, 0, &roles, nodes);
            (graph, targets, Some(roles), KeptServer::default())
        }
        Source::Parts(cut) => {
            let ranks = if let Purpose::Training(ranks) = purpose { ranks } else { None };
            let opened = partitioned_types(&config, cut, ranks)?;
            config.task.node_type = Some(opened.node_type);
            (opened.graph, opened.targets, alone.then_some(opened.roles), opened.server)
        }
    };
    let node_type = config.task.node_type.clone().unwrap_or_default();
    let objective = registry.objective(&config, targets.labels.stored())?;
    let outputs = objective.outputs(targets.labels.stored())?;
    targets.outputs = outputs;
    let target = graph.schema().node_type(&node_type)?;
    let task = NodePrediction::new(&config, &node_type, objective, targets, roles);
    let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
    let endpoints = (vec![target], Vec::new());
    let encoder = Heterogeneous::new((&config, registry), graph, endpoints, outputs, &mut params)?;
    let start = Start { params: params.build(), tables: encoder.tables(&config)? };
    let task = Box::new(Fit::new(&config, task, encoder));
    Ok(Setup { source, task, start, _server: server })
}

/// The labels of nodes of a type, and their splits.
fn labels_and_roles(
    config: &RunConfig,
    dataset: &Dataset,
    node_type: &str,
    purpose: Purpose<'_>,
) -> Result<(Labels, Roles)> {
    let kind = config.task.kind;
    let split = config.dataset.split.as_ref();
    let Purpose::Inference(known) = purpose else {
        let labels = kind.labels_of(dataset, node_type)?;
        let roles = Roles::of(dataset, node_type, &labels, split)?;
        return Ok((labels, roles));
    };
    let bare = dataset.labels(node_type)?.is_none() && dataset.values(node_type)?.is_none();
    let labels = match bare {
        true => known.unknown(dataset.manifest().node_type(node_type)?.count as usize),
        false => match (kind.labels_of(dataset, node_type)?, known) {
            // The highest class may not be among the nodes of another dataset.
            (Labels::Single { classes, count }, Labels::Single { count: of_run, .. }) => {
                Labels::Single { classes, count: count.max(*of_run) }
            }
            (labels, _) => labels,
        },
    };
    let roles = match split {
        Some(_) if !bare => Roles::of(dataset, node_type, &labels, split)?,
        _ => Roles::given(dataset, node_type)?,
    };
    Ok((labels, roles))
}

/// Node prediction on a homogeneous graph.
fn homogeneous_nodes(
    (config, registry): (&RunConfig, &Registry),
    source: Source,
    purpose: Purpose<'_>,
) -> Result<Setup> {
    let alone = config.train.strategy.parts_train_alone();
    let (graph, mut targets, roles, server) = match &source {
        Source::Whole(dataset) => {
            let (node, _) = dataset.plain()?;
            let (labels, roles) = labels_and_roles(config, dataset, &node.name, purpose)?;
            let graph = Graph::open(dataset, config)?;
            let outputs = labels.outputs();
            let targets = NodeTargets::new(labels, outputs, &roles, 0..graph.core() as u64);
            (graph, targets, Some(roles), KeptServer::default())
        }
        Source::Parts(cut) => {
            let ranks = if let Purpose::Training(ranks) = purpose { ranks } else { None };
            let opened = partitioned(config, cut, ranks)?;
            (opened.graph, opened.targets, alone.then_some(opened.roles), opened.server)
        }
    };
    let node_type = match &source {
        Source::Whole(dataset) => dataset.plain()?.0.name.clone(),
        Source::Parts(cut) => match &cut.manifest().node_types[..] {
            [node] => node.name.clone(),
            _ => return Err(Error::invalid("training supports one node type only")),
        },
    };
    let objective = registry.objective(config, targets.labels.stored())?;
    let outputs = objective.outputs(targets.labels.stored())?;
    targets.outputs = outputs;
    let task = NodePrediction::new(config, &node_type, objective, targets, roles);
    let mut params = ParamsBuilder::new(Key::new(config.train.seed).with(0));
    let encoder = Homogeneous::new((config, registry), Arc::new(graph), outputs, &mut params)?;
    let start = Start { params: params.build(), tables: Vec::new() };
    let task = Box::new(Fit::new(config, task, encoder));
    Ok(Setup { source, task, start, _server: server })
}

#[cfg(feature = "serve")]
fn partitioned(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Ranks<'_>,
) -> Result<Opened<Graph>> {
    let ranks = ranks.map(|(comm, hosts)| partitioned::Ranks { comm, hosts });
    partitioned::open(config, cut, ranks.as_ref())
}

/// A task of edges over parts.
#[cfg(feature = "serve")]
fn edges_in_parts(
    run: (&RunConfig, &Registry),
    cut: &PartitionedDataset,
    ranks: Ranks<'_>,
) -> Result<(Box<dyn Training>, Start, KeptServer)> {
    let ranks = ranks.map(|(comm, hosts)| partitioned::Ranks { comm, hosts });
    match run.0.task.kind {
        TaskKind::LinkPrediction => link::open_parts(run, cut, ranks.as_ref()),
        _ => edge::open_parts(run, cut, ranks.as_ref()),
    }
}

#[cfg(not(feature = "serve"))]
fn edges_in_parts(
    _: (&RunConfig, &Registry),
    _: &PartitionedDataset,
    _: Ranks<'_>,
) -> Result<(Box<dyn Training>, Start, KeptServer)> {
    Err(no_servers())
}

#[cfg(feature = "serve")]
fn partitioned_types(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Ranks<'_>,
) -> Result<Opened<HeteroGraph>> {
    let ranks = ranks.map(|(comm, hosts)| partitioned::Ranks { comm, hosts });
    partitioned::open_types(config, cut, ranks.as_ref())
}

/// A graph that this build cannot open.
#[cfg(not(feature = "serve"))]
struct Opened<G> {
    graph: G,
    targets: NodeTargets,
    roles: Roles,
    node_type: String,
    server: KeptServer,
}

#[cfg(not(feature = "serve"))]
fn partitioned(_: &RunConfig, _: &PartitionedDataset, _: Ranks<'_>) -> Result<Opened<Graph>> {
    Err(no_servers())
}

#[cfg(not(feature = "serve"))]
fn partitioned_types(
    _: &RunConfig,
    _: &PartitionedDataset,
    _: Ranks<'_>,
) -> Result<Opened<HeteroGraph>> {
    Err(no_servers())
}

#[cfg(not(feature = "serve"))]
fn no_servers() -> Error {
    Error::usage("partition.servers is not supported by this build")
        .hint("build with --features serve")
}
