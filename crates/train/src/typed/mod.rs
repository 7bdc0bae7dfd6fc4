//! Node classification in graphs with several types of nodes and edges: labels of the nodes of one
//! type, learnt from batches of seeds and their neighbours over all edge types. Node types without
//! features have learnt rows.

mod columns;
mod evaluate;
mod graph;
mod learner;

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Context, Dataset, Error, Labels, Result};
use gnarl_nn::Params;
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::typed::{self, Source, TypedModel};
use gnarl_partition::{PartLayout, PartitionedDataset};

use crate::config::{EvaluateOn, RunConfig, Strategy};
use crate::embeddings::{Rows, TableSpec};
use crate::evaluate::Evaluation;
use crate::learner::{Sizes, Task};
use crate::state::{Start, TrainState};
use crate::strategy::{Session, average, gradient};
use crate::task::Roles;
use crate::tensor;
use columns::ColumnLearner;
use learner::TypedLearner;

pub(crate) use evaluate::rows;
pub(crate) use graph::{TypedTaskGraph, features_of_types};
pub(crate) use learner::fanouts;

/// The task of a run.
pub(crate) struct TypedNodes {
    config: RunConfig,
    graph: Arc<TypedTaskGraph>,
    /// Roles of its nodes.
    roles: Roles,
    /// Parts to train on alone.
    parts: Vec<Arc<TypedTaskGraph>>,
    metric: String,
    model: Box<dyn TypedModel>,
    tables: Vec<TableSpec>,
    /// Part of each node of the target type; empty if the graph was not cut.
    owner: Vec<u32>,
}

impl TypedNodes {
    /// The task of `config`, classifying nodes of type `node_type`, and the state it starts from.
    ///
    /// # Errors
    /// [`gnarl_graph::Kind::Usage`] for unknown names, impossible sizes, or what graphs with types
    /// cannot be trained with.
    pub fn open(config: &RunConfig, dataset: &Dataset, node_type: &str) -> Result<(Self, Start)> {
        let config = &tensor::all_neighbours(config)?;
        check(config)?;
        if let Err(e) = dataset.manifest().node_type(node_type) {
            return Err(Error::usage(format!("task.node_type: {e}")));
        }
        let roles = graph::roles_of(dataset, &config.dataset, node_type)?;
        let graph = Arc::new(TypedTaskGraph::open(dataset, &config.dataset, node_type, &roles)?);
        let metric = config.train.metric.clone().unwrap_or_else(|| match graph.labels {
            Labels::Single { .. } => "accuracy".into(),
            Labels::Multi { .. } => "micro-f1".into(),
        });
        gnarl_nn::metrics::build(&metric)?;
        let sources = graph.sources();
        let (model, params) = build_model(config, &graph, &sources)?;
        let tables = graph
            .learnt()
            .map(|(number, name)| table(config, name, dataset.manifest().node_types[number].count));
        let start = Start { params, tables: tables.collect::<Result<_>>()? };
        let nodes = Self {
            config: config.clone(),
            graph,
            roles,
            parts: Vec::new(),
            metric,
            model,
            tables: start.tables.clone(),
            owner: Vec::new(),
        };
        Ok((nodes, start))
    }
}

fn build_model(
    config: &RunConfig,
    graph: &TypedTaskGraph,
    sources: &[Source],
) -> Result<(Box<dyn TypedModel>, Params)> {
    let model = ModelConfig { out_dim: graph.labels.outputs(), ..config.model.clone() };
    typed::build(&model, graph.graph.schema(), sources, Key::new(config.train.seed).with(0))
}

/// Learnt rows of the nodes of a type. Rows start as a function of the type's name.
pub(crate) fn table(config: &RunConfig, node_type: &str, count: u64) -> Result<TableSpec> {
    let width = config.model.hidden;
    let bound = config.embedding.bound.unwrap_or(1.0 / (width as f32).sqrt());
    let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    let key = Key::new(config.train.seed).with(4);
    let key = key.with(node_type.bytes().fold(0xcbf2_9ce4_8422_2325, hash));
    let optimizer = config.embedding.optimizer(&config.optimizer)?;
    let (name, node_type) = (format!("embedding.{node_type}"), node_type.to_string());
    Ok(TableSpec { name, node_type, count, width, bound, key, optimizer })
}

/// Refuses what is for graphs without types.
fn check(config: &RunConfig) -> Result<()> {
    if config.train.evaluate_on == EvaluateOn::Parts {
        return Err(Error::usage("train.evaluate_on = 'parts' is for graphs without types")
            .hint("graphs with types are judged as a whole"));
    }
    if !config.sample.method.has_fanouts() && config.sample.method != crate::config::Method::Full {
        return Err(Error::usage("subgraphs are drawn from graphs without types only")
            .hint("set sample.method to 'neighbor', 'labor', 'exact', 'weighted' or 'full'"));
    }
    Ok(())
}

impl Task for TypedNodes {
    fn metric(&self) -> String {
        self.metric.replace('-', "_")
    }

    fn sizes(&self) -> Sizes {
        let TypedTaskGraph { labels, train, valid, test, .. } = self.graph.as_ref();
        let splits = [train, valid, test].map(|nodes| nodes.len());
        Sizes { of: "nodes", outputs: labels.outputs(), splits }
    }

    /// Parts decide which rank takes which seeds; every rank has the whole graph, and for `average` parts
    /// too.
    fn divide(&mut self, _: Option<&Dataset>, cut: &PartitionedDataset) -> Result<()> {
        self.owner = cut.assignment(self.graph.node_type())?.to_vec();
        if self.config.train.strategy != Strategy::Average {
            return Ok(());
        }
        cut.check_layout(PartLayout::EdgeCut)
            .while_doing(|| "train.strategy = 'average' trains on parts alone")?;
        let (section, node_type) = (&self.config.dataset, self.graph.node_type());
        let open = |part: usize| {
            TypedTaskGraph::open(&cut.part(part)?, section, node_type, &self.roles)
                .map(Arc::new)
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
        let whole = std::slice::from_ref(&self.graph);
        match self.config.train.strategy {
            Strategy::Gradient => {
                gradient::train(session, &TypedLearner::new(self, whole, &[0])?, rank, state)
            }
            Strategy::Average => {
                let parts = if self.parts.is_empty() { whole } else { &self.parts };
                let mine = average::mine(rank, parts.len());
                average::train(session, &TypedLearner::new(self, parts, &mine)?, rank, state)
            }
            Strategy::Tensor => {
                gradient::train(session, &ColumnLearner::new(self, rank)?, rank, state)
            }
            Strategy::Auto => Err(Error::invalid("train.strategy = 'auto' was not resolved")),
        }
    }

    fn judge(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation> {
        let (fanouts, _) = fanouts(&self.config)?;
        let graph = (&*self.graph, &fanouts);
        evaluate::evaluate(self.model.as_ref(), params, tables, graph, &self.metric)
    }
}
