//! The task of a run.

use std::sync::Arc;

use bytesize::ByteSize;
use gnarl_common::{Error, Result};
use gnarl_graph::splits::{labels_of, values_of};
use gnarl_graph::{Dataset, Labels, NodeType};
use gnarl_nn::optim::OptimizerConfig;
use gnarl_store::embedding::{RowAdagrad, SparseAdagrad, SparseAdam, SparseOptimizer, WeightDecay};
use serde::{Deserialize, Serialize};

/// Kinds of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Node classification.
    #[default]
    NodeClassification,
    /// Node regression.
    NodeRegression,
    /// Link prediction.
    LinkPrediction,
    /// Edge classification.
    EdgeClassification,
    /// Edge regression.
    EdgeRegression,
    /// A custom task of nodes, whose objective a program registers under `task.name`.
    Custom,
}

impl TaskKind {
    /// Returns whether the task predicts labels of nodes.
    pub fn is_of_nodes(self) -> bool {
        !self.label_columns().is_empty()
    }

    /// Labels of a node type that a task of this kind learns: the column `value` of a regression, else `label`. A
    /// program's own task takes either.
    ///
    /// # Errors
    /// If there are none.
    pub fn labels_of(self, dataset: &Dataset, node_type: &str) -> Result<Labels> {
        match self {
            Self::NodeRegression => values_of(dataset, node_type),
            Self::Custom if dataset.labels(node_type)?.is_none() => values_of(dataset, node_type),
            _ => labels_of(dataset, node_type),
        }
    }

    /// The columns of a node type that have its labels, if it has any; none for tasks of edges.
    pub fn label_columns(self) -> &'static [&'static str] {
        match self {
            Self::NodeClassification => &["label"],
            Self::NodeRegression => &["value"],
            Self::Custom => &["label", "value"],
            Self::LinkPrediction | Self::EdgeClassification | Self::EdgeRegression => &[],
        }
    }

    /// The node type to predict where the run file names none.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] unless exactly one has labels.
    pub fn only_labeled_type(self, dataset: &Dataset) -> Result<String> {
        let names = self.label_columns();
        let types = &dataset.manifest().node_types;
        let has =
            |t: &&NodeType| t.columns.iter().any(|column| names.contains(&column.name.as_str()));
        let labeled = types.iter().filter(has);
        let labeled: Vec<&str> = labeled.map(|t| t.name.as_str()).collect();
        if let [only] = labeled[..] {
            return Ok(only.to_string());
        }
        let names: Vec<&str> = types.iter().map(|t| t.name.as_str()).collect();
        let found =
            if labeled.is_empty() { "no node type has labels" } else { "several have labels" };
        Err(Error::usage(format!("task.node_type is required for a heterogeneous graph: {found}"))
            .hint(format!("the type of the nodes to classify, one of: {}", names.join(", "))))
    }

    /// Returns whether the task predicts labels of edges.
    pub fn is_of_edges(self) -> bool {
        match self {
            Self::EdgeClassification | Self::EdgeRegression => true,
            Self::NodeClassification | Self::NodeRegression | Self::Custom => false,
            Self::LinkPrediction => false,
        }
    }
}

/// Message-passing edges, in edge prediction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessagesOver {
    /// All but held-out edges.
    #[default]
    Known,
    /// All.
    All,
}

/// The criterion of held-out edges in link prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitBy {
    /// A draw by the endpoints of an edge.
    Endpoints,
    /// The latest edges are test edges, those before them validation edges.
    Time,
}

/// Handling of a batch's target edges in the message graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leakage {
    /// Removed from it for the batch, with their reverses.
    #[default]
    Remove,
    /// Kept in it, to demonstrate leakage.
    Keep,
}

/// `[task]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskSection {
    /// Kind of task.
    pub kind: TaskKind,
    /// `custom`: the name under which a program adds the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of the nodes to classify, in a graph with several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
    /// Link and edge prediction: the type of the edges, in a graph with several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_type: Option<String>,
    /// Edge prediction: the label column.
    pub label: String,
    /// Edge prediction: whether edge features are used too.
    pub edge_features: bool,
    /// Edge prediction: message-passing edges.
    pub messages: MessagesOver,
    /// Link prediction: share of edges held out for validation, where the dataset has no splits.
    pub valid: f64,
    /// Link prediction: share of edges held out for testing.
    pub test: f64,
    /// Link prediction: criterion of held-out edges, where the dataset has no splits; by default time, if neighbors are
    /// sampled by it, else endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_by: Option<SplitBy>,
    /// Link prediction: seed of the held-out edges.
    pub split_seed: u64,
    /// With an encoder: handling of a batch's target edges in the message graph.
    pub leakage: Leakage,
    /// Link prediction: memory limit of a process for scores in ranking.
    pub rank_memory: ByteSize,
}

impl Default for TaskSection {
    fn default() -> Self {
        Self {
            kind: TaskKind::NodeClassification,
            name: None,
            node_type: None,
            edge_type: None,
            label: "label".into(),
            edge_features: false,
            messages: MessagesOver::Known,
            valid: 0.05,
            test: 0.1,
            split_by: None,
            split_seed: 0,
            leakage: Leakage::Remove,
            rank_memory: ByteSize::mib(256),
        }
    }
}

impl TaskSection {
    /// Rejects invalid shares, and a custom task without a name.
    pub(super) fn check(&self) -> Result<()> {
        if self.kind == TaskKind::Custom && self.name.is_none() {
            return Err(Error::usage("task.kind = 'custom' and no task.name")
                .hint("name a task that your program adds with Registry::add_task"));
        }
        let (valid, test) = (self.valid, self.test);
        let share = |x: f64| (0.0..1.0).contains(&x);
        match share(valid) && share(test) && valid + test < 1.0 {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "invalid task.valid '{valid}' and task.test '{test}': no training edges are left"
            ))),
        }
    }
}

/// Optimizers of embeddings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOptimizer {
    /// Lazy Adam, with the constants of `[optimizer]`.
    #[default]
    Adam,
    /// Adagrad, with `optimizer.eps`.
    Adagrad,
    /// Adagrad with one sum for each row, with `optimizer.eps`.
    RowAdagrad,
}

/// `[embedding]`: embeddings of nodes without features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSection {
    /// Embedding width; in complex numbers where the decoder is complex.
    pub dim: usize,
    /// Optimizer.
    pub optimizer: RowOptimizer,
    /// Learning rate of embeddings; by default that of the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f32>,
    /// Initial values are uniform between minus and plus this; by default 1 / √dim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f32>,
    /// L2 penalty on the embeddings that a step updates.
    pub weight_decay: f32,
    /// Place of embeddings and of the state of their optimizer.
    pub store: RowStore,
}

/// The place of embeddings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowStore {
    /// The memory of the rank that owns them.
    #[default]
    Memory,
    /// A mapped file in the run's folder, which may be larger than memory.
    File,
}

impl Default for EmbeddingSection {
    fn default() -> Self {
        Self {
            dim: 200,
            optimizer: RowOptimizer::Adam,
            lr: None,
            bound: None,
            weight_decay: 0.0,
            store: RowStore::Memory,
        }
    }
}

impl EmbeddingSection {
    /// The learning rate of embeddings over that of weights, `base`.
    pub fn rate(&self, base: f32) -> f32 {
        self.lr.map_or(1.0, |lr| lr / base)
    }

    /// The optimizer of embeddings.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for constants out of range.
    pub fn optimizer(&self, constants: &OptimizerConfig) -> Result<Arc<dyn SparseOptimizer>> {
        let OptimizerConfig { beta1, beta2, eps, .. } = *constants;
        let rule: Arc<dyn SparseOptimizer> = match self.optimizer {
            RowOptimizer::Adam => Arc::new(SparseAdam::new(beta1, beta2, eps)?),
            RowOptimizer::Adagrad => Arc::new(SparseAdagrad::new(eps)?),
            RowOptimizer::RowAdagrad => Arc::new(RowAdagrad::new(eps)?),
        };
        if self.weight_decay == 0.0 {
            return Ok(rule);
        }
        Ok(Arc::new(WeightDecay::new(rule, self.weight_decay)?))
    }

    /// Rejects values out of range.
    pub(super) fn check(&self) -> Result<()> {
        if self.dim == 0 {
            return Err(Error::usage("invalid embedding.dim '0': expected a positive number"));
        }
        let decay = self.weight_decay;
        if !(decay >= 0.0 && decay.is_finite()) {
            return Err(Error::usage(format!(
                "invalid embedding.weight_decay '{decay}': expected a number of at least 0"
            )));
        }
        let positive = |v: f32| v > 0.0 && v.is_finite();
        for (key, value) in [("lr", self.lr), ("bound", self.bound)] {
            if let Some(value) = value.filter(|v| !positive(*v)) {
                return Err(Error::usage(format!(
                    "invalid embedding.{key} '{value}': expected a number above 0"
                )));
            }
        }
        Ok(())
    }
}
