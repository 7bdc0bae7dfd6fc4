//! The inputs of predictions.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::support::is_heterogeneous;
use gnarl_config::{Parts, RunConfig, partition_manifest};
use gnarl_graph::Dataset;
use gnarl_graph::splits::{Role, Roles};
use gnarl_nn::models::ModelConfig;
use gnarl_partition::{Counts, PartitionOptions, PartitionedDataset, PlanOptions};

use super::graph::{Heterogeneous, Homogeneous, MessageGraph};

/// Nodes of the sample on which a partitioner is measured.
const SAMPLE: u64 = 50_000;

/// Counts of a dataset, its graph, and the output width.
pub(super) struct Facts<'a> {
    dataset: &'a Dataset,
    /// Nodes, edges, and of homogeneous graphs degrees; training nodes are those of the run.
    pub counts: Counts,
    /// True if it has several types, or the run file names one.
    pub heterogeneous: bool,
    /// The graph that messages pass over.
    pub graph: Box<dyn MessageGraph>,
    /// Output width of the model.
    outputs: usize,
}

/// The partition of the graph.
pub(super) struct Cut {
    pub parts: usize,
    /// Share of edges between parts.
    pub edge_cut: f64,
    /// Nodes stored over nodes.
    pub replication: f64,
}

/// The partition at `path`, of which the manifest alone is at hand if it is in an object store.
///
/// # Errors
/// If there is none, or it cannot be fetched.
pub(super) fn opened_parts(path: &Path) -> Result<PartitionedDataset> {
    PartitionedDataset::open(partition_manifest(path)?)
}

impl<'a> Facts<'a> {
    /// Collects the facts; a pass over the nodes, and one over the edges of graphs that are not symmetric or have several
    /// types.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for tasks that are not of nodes.
    pub fn of(config: &RunConfig, dataset: &'a Dataset) -> Result<Self> {
        if !config.task.kind.is_of_nodes() {
            return Err(Error::usage("only tasks of nodes are predicted").hint(
                "name a strategy instead of train.strategy = 'auto'; docs/support.md lists those of each task",
            ));
        }
        let heterogeneous = is_heterogeneous(config, dataset.manifest());
        // Degrees are by edge type where there are several: one pass over the edges is enough.
        let counts = if heterogeneous { Counts::sizes(dataset)? } else { Counts::of(dataset)? };
        let node_type = match (&config.task.node_type, heterogeneous) {
            (Some(named), _) => named.clone(),
            (None, true) => config.task.kind.only_labeled_type(dataset)?,
            (None, false) => dataset.plain()?.0.name.clone(),
        };
        let labels = config.task.kind.labels_of(dataset, &node_type)?;
        let roles = Roles::of(dataset, &node_type, &labels, config.dataset.split.as_ref())?;
        let nodes = roles.nodes(Role::Train);
        let graph: Box<dyn MessageGraph> = match heterogeneous {
            true => Box::new(Heterogeneous::of(dataset, &node_type, &nodes)?),
            false => Box::new(Homogeneous::of(dataset, &counts)?),
        };
        let counts = Counts { train: nodes.len() as u64, ..counts };
        Ok(Self { dataset, counts, heterogeneous, graph, outputs: labels.outputs() })
    }

    /// The model of a run for this dataset.
    pub fn model(&self, config: &RunConfig) -> ModelConfig {
        self.graph.model(&ModelConfig { out_dim: self.outputs, ..config.model.clone() })
    }

    /// Weights of the model, without embeddings of nodes.
    ///
    /// # Errors
    /// If the model is unknown, or its sizes are invalid.
    pub fn parameters(&self, config: &RunConfig) -> Result<f64> {
        self.graph.parameters(&self.model(config))
    }

    /// The partition of the run: the existing one, or the expected result of the partitioner.
    ///
    /// # Errors
    /// If there is none, or the partitioner does not support it.
    pub fn cut(&self, config: &RunConfig) -> Result<Cut> {
        let section = &config.partition;
        if let Some(path) = &section.path {
            let cut = opened_parts(path)?;
            let made = cut.manifest();
            let inside: u64 = (0..made.parts).map(|p| made.cut[p][p]).sum();
            let all: u64 = made.cut.iter().flatten().sum();
            let stored = made.part_counts.iter().flat_map(|p| p.core.iter().chain(&p.halo));
            return Ok(Cut {
                parts: made.parts,
                edge_cut: 1.0 - inside as f64 / all.max(1) as f64,
                replication: stored.sum::<u64>() as f64 / self.counts.nodes.max(1) as f64,
            });
        }
        let parts = match section.parts {
            Parts::Count(parts) => parts,
            Parts::Levels { machines, workers } => machines * workers,
            // At least as many; how many more depends on the machine.
            Parts::Auto => config.train.workers,
        };
        if parts == 1 {
            return Ok(Cut { parts, edge_cut: 0.0, replication: 1.0 });
        }
        let options = PlanOptions {
            algorithms: vec![section.algorithm.clone()],
            parts: vec![parts],
            fanouts: Vec::new(),
            batch: 0,
            sample: SAMPLE,
            partition: PartitionOptions {
                seed: section.seed,
                balance: section.balance,
                tau_vol: section.tau_vol,
                chunk: section.chunk,
                passes: section.passes,
                freeze: section.freeze,
                constraints: section.constraints.clone(),
                ..PartitionOptions::default()
            },
        };
        let plan = gnarl_partition::plan(self.dataset, &options)?;
        let found = plan.predictions.first();
        let (edge_cut, replication) =
            found.map_or((0.0, 1.0), |p| (p.edge_cut, p.replication_factor));
        Ok(Cut { parts, edge_cut, replication })
    }
}
