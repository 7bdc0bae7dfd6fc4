//! The inputs of predictions.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{Parts, RunConfig, data_folder};
use gnarl_graph::splits::features_of;
use gnarl_graph::splits::{Role, Roles};
use gnarl_graph::{Dataset, Features};
use gnarl_nn::models::{self, ModelConfig};
use gnarl_partition::{
    Batches, Counts, Fanouts, PartitionOptions, PartitionedDataset, PlanOptions,
};

/// Nodes of the sample on which a partitioner is measured.
const SAMPLE: u64 = 50_000;

/// Counts of a dataset, and input and output widths.
pub(super) struct Facts<'a> {
    dataset: &'a Dataset,
    /// Nodes, edges, degrees; training nodes are those of the run.
    pub counts: Counts,
    /// Feature width.
    pub width: usize,
    /// Non-zero values of a feature row, if rows are sparse.
    pub nonzeros: Option<f64>,
    /// Output width of the model.
    pub outputs: usize,
}

/// The partition of the graph.
pub(super) struct Cut {
    pub parts: usize,
    /// Share of edges between parts.
    pub edge_cut: f64,
    /// Nodes stored over nodes.
    pub replication: f64,
}

impl<'a> Facts<'a> {
    /// Collects the facts; a pass over the nodes, and one over the edges where the graph is not
    /// symmetric.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for other tasks than node classification in homogeneous graphs.
    pub fn of(config: &RunConfig, dataset: &'a Dataset) -> Result<Self> {
        let manifest = dataset.manifest();
        let heterogeneous = manifest.node_types.len() > 1 || manifest.edge_types.len() > 1;
        if !config.task.kind.is_of_nodes() || heterogeneous || config.task.node_type.is_some() {
            return Err(Error::usage(
                "only tasks of nodes in homogeneous graphs are predicted",
            )
            .hint("name a strategy instead of train.strategy = 'auto'; docs/support.md lists those of each task"));
        }
        let (node, _) = dataset.plain()?;
        let labels = config.task.kind.labels_of(dataset, &node.name)?;
        let features = features_of(dataset)?;
        let roles = Roles::of(dataset, &node.name, &labels, config.dataset.split.as_ref())?;
        let train = roles.nodes(Role::Train).len() as u64;
        let nonzeros = match &features {
            Features::Dense(_) => None,
            Features::Csr { indices, indptr, .. } => {
                Some(indices.len() as f64 / (indptr.len() - 1).max(1) as f64)
            }
        };
        Ok(Self {
            dataset,
            counts: Counts { train, ..Counts::of(dataset)? },
            width: features.width(),
            nonzeros,
            outputs: labels.outputs(),
        })
    }

    /// The model of a run for this dataset.
    pub fn model(&self, config: &RunConfig) -> ModelConfig {
        ModelConfig { in_dim: self.width, out_dim: self.outputs, ..config.model.clone() }
    }

    /// Weights of the model.
    ///
    /// # Errors
    /// If the model is unknown, or its sizes are invalid.
    pub fn parameters(&self, config: &RunConfig) -> Result<f64> {
        Ok(models::build(&self.model(config), Key::new(0))?.1.len() as f64)
    }

    /// Batches of one of `ranks`, whose seeds are those of `train` nodes, over a share
    /// of the nodes.
    pub fn batches(&self, config: &RunConfig, train: u64, ranks: usize, share: f64) -> Batches {
        let counts = Counts { train, ..self.counts.clone() };
        let each: Vec<u32> =
            config.hops().iter().map(|&f| u32::try_from(f).unwrap_or(u32::MAX)).collect();
        let fanouts = Fanouts { each: &each, batch: config.sample.batch_size as u64 };
        Batches::expect(&counts, ranks, share, fanouts)
    }

    /// The partition of the run: the existing one, or the expected result of the partitioner.
    ///
    /// # Errors
    /// If there is none, or the partitioner does not support it.
    pub fn cut(&self, config: &RunConfig) -> Result<Cut> {
        let section = &config.partition;
        if let Some(path) = &section.path {
            let cut = PartitionedDataset::open(data_folder(path)?)?;
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
