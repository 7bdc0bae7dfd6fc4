//! Node classification: labels of nodes, learnt from batches of seeds and their neighbours.

mod learner;
pub(crate) mod loss;
pub(crate) mod step;
mod units;

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::{Context, Dataset, Error, Labels, Result};
use gnarl_nn::Params;
use gnarl_nn::models::Model;
use gnarl_partition::{PartLayout, PartitionedDataset};

use crate::config::{RunConfig, Strategy};
use crate::embeddings::Rows;
use crate::evaluate::{Evaluation, evaluate};
use crate::learner::{Sizes, Task};
use crate::loaded::{KeptServer, build_model};
use crate::state::TrainState;
use crate::strategy::{Session, average, gradient};
use crate::task::{Roles, TaskGraph};
use crate::tensor;

pub(crate) use learner::{NodeLearner, Prepared};
pub(crate) use units::sampler;

/// The task of a run.
pub(crate) struct Nodes {
    config: RunConfig,
    /// The whole graph.
    whole: Arc<TaskGraph>,
    /// Roles of its nodes, if it is here.
    roles: Option<Roles>,
    /// Parts to train on alone.
    parts: Vec<Arc<TaskGraph>>,
    /// Part of each node; empty if the graph was not cut.
    owner: Vec<u32>,
    metric: String,
    model: Box<dyn Model>,
    /// Answers other machines' questions as long as the task lives.
    _server: KeptServer,
}

impl Nodes {
    /// The task of `config` on `graph`, with freshly initialised weights.
    ///
    /// # Errors
    /// [`gnarl_graph::Kind::Usage`] for unknown names or impossible sizes.
    pub fn new(
        config: &RunConfig,
        whole: Arc<TaskGraph>,
        roles: Option<Roles>,
        server: KeptServer,
    ) -> Result<(Self, Params)> {
        let metric = metric_of(config, &whole);
        gnarl_nn::metrics::build(&metric)?;
        let (model, params) = build_model(config, &whole)?;
        let (config, parts, owner) = (config.clone(), Vec::new(), Vec::new());
        let nodes = Self { config, whole, roles, parts, owner, metric, model, _server: server };
        Ok((nodes, params))
    }

    /// The parts that train alone; the whole graph if there are none.
    pub fn parts(&self) -> &[Arc<TaskGraph>] {
        match self.parts.is_empty() {
            true => std::slice::from_ref(&self.whole),
            false => &self.parts,
        }
    }
}

/// The metric a run is judged by.
fn metric_of(config: &RunConfig, task: &TaskGraph) -> String {
    config.train.metric.clone().unwrap_or_else(|| match task.labels {
        Labels::Single { .. } => "accuracy".into(),
        Labels::Multi { .. } => "micro-f1".into(),
    })
}

impl Task for Nodes {
    fn metric(&self) -> String {
        self.metric.replace('-', "_")
    }

    fn sizes(&self) -> Sizes {
        let TaskGraph { labels, train, valid, test, .. } = self.whole.as_ref();
        let splits = [train, valid, test].map(|nodes| nodes.len());
        Sizes { of: "nodes", outputs: labels.outputs(), splits }
    }

    fn divide(&mut self, dataset: Option<&Dataset>, cut: &PartitionedDataset) -> Result<()> {
        let [node] = &cut.manifest().node_types[..] else {
            return Err(Error::invalid("training knows graphs of one node type only"));
        };
        self.owner = cut.assignment(&node.name)?.to_vec();
        let (Some(_), Some(roles)) = (dataset, &self.roles) else { return Ok(()) };
        if self.config.train.strategy != Strategy::Average {
            return Ok(());
        }
        cut.check_layout(PartLayout::EdgeCut)
            .while_doing(|| "train.strategy = 'average' trains on parts alone")?;
        let open = |part: usize| {
            TaskGraph::open(&cut.part(part)?, roles, self.config.dataset.normalize)
                .while_doing(|| format!("opening part {part}"))
        };
        self.parts = (0..cut.num_parts()).map(open).collect::<Result<_>>()?;
        Ok(())
    }

    fn train(
        &self,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        match self.config.train.strategy {
            Strategy::Gradient => {
                let whole = std::slice::from_ref(&self.whole);
                let learner = NodeLearner::new(self, whole, &[0])?;
                gradient::train(session, &learner, rank, state)
            }
            Strategy::Average => {
                let mine = average::mine(rank, self.parts().len());
                let learner = NodeLearner::new(self, self.parts(), &mine)?;
                average::train(session, &learner, rank, state)
            }
            Strategy::Tensor => {
                tensor::train(session, self.model.as_ref(), &self.whole, &self.metric, rank, state)
            }
            Strategy::Auto => Err(Error::invalid("train.strategy = 'auto' was not resolved")),
        }
    }

    fn judge(&self, params: &Params, _: &[Rows<'_>]) -> Result<Evaluation> {
        let (model, whole) = (self.model.as_ref(), self.whole.as_ref());
        let within = tensor::judge(&self.config, model, whole, &self.metric, params);
        within.unwrap_or_else(|| evaluate(model, params, [whole], &self.metric))
    }
}
