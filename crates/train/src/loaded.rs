//! What every rank of a run has before it trains.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Context, Dataset, Labels, Result};
use gnarl_nn::Params;
use gnarl_nn::models::{self, Model};
use gnarl_partition::{PartLayout, PartitionedDataset, fingerprint};

use crate::config::{RunConfig, Strategy};
use crate::cut::cut;
use crate::folder::RunFolder;
use crate::task::{Roles, TaskGraph, whole};

/// Where the graph comes from.
pub(crate) enum Source {
    /// A dataset, of which every rank has all files.
    Whole(Box<Whole>),
    /// Parts, of which machines have some each.
    Parts(Box<PartitionedDataset>),
}

/// A dataset, opened.
pub(crate) struct Whole {
    dataset: Dataset,
    roles: Roles,
    task: Arc<TaskGraph>,
}

/// Serves this machine's parts as long as it lives.
#[cfg(feature = "serve")]
pub(crate) type KeptServer = Option<gnarl_serve::Server>;
/// Nothing is served.
#[cfg(not(feature = "serve"))]
pub(crate) type KeptServer = ();

/// The graph and the model.
pub(crate) struct Loaded {
    pub source: Source,
    pub task: Arc<TaskGraph>,
    pub metric: String,
    pub model: Box<dyn Model>,
    pub params: Params,
    pub server: KeptServer,
}

impl Source {
    /// Opens what the run file names.
    pub fn open(config: &RunConfig) -> Result<Self> {
        let section = &config.partition;
        if let (Some(_), Some(path)) = (&section.servers, &section.path) {
            return PartitionedDataset::open(path).map(|cut| Self::Parts(Box::new(cut)));
        }
        let (dataset, roles, task) = whole(&config.dataset)?;
        Ok(Self::Whole(Box::new(Whole { dataset, roles, task })))
    }

    /// Tells the graph from others.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Whole(whole) => fingerprint(whole.dataset.manifest()),
            Self::Parts(cut) => {
                let made = cut.manifest();
                format!("{} by {} {:?}", made.source.fingerprint, made.algorithm, made.part_counts)
            }
        }
    }

    /// The partition of the run, if it has one.
    pub fn cut(
        &self,
        config: &RunConfig,
        folder: &RunFolder,
    ) -> Result<Option<PartitionedDataset>> {
        match self {
            Self::Whole(whole) => cut(config, &whole.dataset, folder),
            Self::Parts(made) => PartitionedDataset::open(made.dir()).map(Some),
        }
    }

    /// The parts as graphs to train on alone, if the strategy does.
    pub fn parts(
        &self,
        config: &RunConfig,
        cut: &PartitionedDataset,
    ) -> Result<Vec<Arc<TaskGraph>>> {
        let Self::Whole(whole) = self else { return Ok(Vec::new()) };
        if config.train.strategy == Strategy::Gradient {
            return Ok(Vec::new());
        }
        cut.check_layout(PartLayout::EdgeCut)
            .while_doing(|| "train.strategy = 'average' trains on parts alone")?;
        let open = |part: usize| {
            TaskGraph::open(&cut.part(part)?, &whole.roles, config.dataset.normalize)
                .while_doing(|| format!("opening part {part}"))
        };
        (0..cut.num_parts()).map(open).collect()
    }
}

impl Loaded {
    /// Loads `source` as one of some ranks, or for all threads of one process. `ranks` are this one
    /// and the machine of each.
    pub fn new(
        config: &RunConfig,
        source: Source,
        ranks: Option<(&dyn Communicator, &[String])>,
    ) -> Result<Self> {
        let (task, server) = match &source {
            Source::Whole(whole) => (whole.task.clone(), KeptServer::default()),
            Source::Parts(cut) => divided(config, cut, ranks)?,
        };
        let metric = metric_of(config, &task);
        gnarl_nn::metrics::build(&metric)?;
        let (model, params) = build_model(config, &task)?;
        Ok(Self { source, task, metric, model, params, server })
    }
}

#[cfg(feature = "serve")]
fn divided(
    config: &RunConfig,
    cut: &PartitionedDataset,
    ranks: Option<(&dyn Communicator, &[String])>,
) -> Result<(Arc<TaskGraph>, KeptServer)> {
    let ranks = ranks.map(|(rank, hosts)| crate::divided::Ranks { rank, hosts });
    let opened = crate::divided::open(config, cut, ranks.as_ref())?;
    Ok((Arc::new(opened.task), opened.server))
}

#[cfg(not(feature = "serve"))]
fn divided(
    _: &RunConfig,
    _: &PartitionedDataset,
    _: Option<(&dyn Communicator, &[String])>,
) -> Result<(Arc<TaskGraph>, KeptServer)> {
    Err(gnarl_graph::Error::usage("partition.servers is set, and this gnarl was built without it")
        .hint("build with --features serve"))
}

/// The metric a run is judged by.
pub(crate) fn metric_of(config: &RunConfig, task: &TaskGraph) -> String {
    config.train.metric.clone().unwrap_or_else(|| match task.labels {
        Labels::Single { .. } => "accuracy".into(),
        Labels::Multi { .. } => "micro-f1".into(),
    })
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
