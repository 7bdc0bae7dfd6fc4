//! What is to be learnt.

use std::sync::Arc;

use bytesize::ByteSize;
use gnarl_common::{Error, Result};
use gnarl_graph::splits::{labels_of, values_of};
use gnarl_graph::{Dataset, Labels};
use gnarl_nn::optim::OptimizerConfig;
use gnarl_store::embedding::{SparseAdagrad, SparseAdam, SparseOptimizer, WeightDecay};
use serde::{Deserialize, Serialize};

/// Kinds of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Classes of nodes.
    #[default]
    NodeClassification,
    /// Numbers of nodes.
    NodeRegression,
    /// Which edges there are.
    LinkPrediction,
    /// Labels of edges.
    EdgeClassification,
    /// Numbers of edges.
    EdgeRegression,
    /// Labels of nodes, by an objective that a program adds; `task.name` names it.
    Custom,
}

impl TaskKind {
    /// Whether labels of nodes are learned.
    pub fn is_of_nodes(self) -> bool {
        matches!(self, Self::NodeClassification | Self::NodeRegression | Self::Custom)
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

    /// Whether labels of edges are learnt.
    pub fn is_of_edges(self) -> bool {
        matches!(self, Self::EdgeClassification | Self::EdgeRegression)
    }
}

/// Which edges messages pass over, where labels of edges are learnt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessagesOver {
    /// All but those to be judged by.
    #[default]
    Known,
    /// All.
    All,
}

/// What becomes of the edges that a batch is about, in the graph that messages pass over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leakage {
    /// They leave it for the batch, with their reverses.
    #[default]
    Remove,
    /// They stay, to show what that does.
    Keep,
}

/// `[task]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskSection {
    /// What is to be learnt.
    pub kind: TaskKind,
    /// `custom`: the name under which a program adds the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of the nodes to classify, in a graph with several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
    /// Link prediction and labels of edges: the type of the edges, in a graph with several types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_type: Option<String>,
    /// Labels of edges: the column that has them.
    pub label: String,
    /// Labels of edges: whether their features are looked at too.
    pub edge_features: bool,
    /// Labels of edges: which edges messages pass over.
    pub messages: MessagesOver,
    /// Link prediction: share of edges held out to validate on, where the dataset says nothing itself.
    pub valid: f64,
    /// Link prediction: share of edges held out to test on.
    pub test: f64,
    /// Link prediction: which draw of them.
    pub split_seed: u64,
    /// With an encoder: what becomes of the edges that a batch is about.
    pub leakage: Leakage,
    /// Link prediction: most memory of a process for scores, when edges are ranked.
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
            split_seed: 0,
            leakage: Leakage::Remove,
            rank_memory: ByteSize::mib(256),
        }
    }
}

impl TaskSection {
    /// Refuses shares that are none, and a task of a program's own without its name.
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
                "task.valid {valid} and task.test {test} leave no edges to train on"
            ))),
        }
    }
}

/// Rules that update learnt rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOptimizer {
    /// Lazy Adam, with the constants of `[optimizer]`.
    #[default]
    Adam,
    /// Adagrad, with `optimizer.eps`.
    Adagrad,
}

/// `[embedding]`: rows learnt for nodes that have no features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSection {
    /// Numbers in a row; complex ones where the decoder's are.
    pub dim: usize,
    /// The rule of their updates.
    pub optimizer: RowOptimizer,
    /// Their learning rate; by default that of the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f32>,
    /// Rows start uniform between minus and plus this; by default 1 / √dim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f32>,
    /// L2 penalty on the rows that a step touches.
    pub weight_decay: f32,
}

impl Default for EmbeddingSection {
    fn default() -> Self {
        Self { dim: 200, optimizer: RowOptimizer::Adam, lr: None, bound: None, weight_decay: 0.0 }
    }
}

impl EmbeddingSection {
    /// The learning rate of embeddings over that of weights, `base`.
    pub fn rate(&self, base: f32) -> f32 {
        self.lr.map_or(1.0, |lr| lr / base)
    }

    /// The optimizer of rows.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] for constants out of range.
    pub fn optimizer(&self, constants: &OptimizerConfig) -> Result<Arc<dyn SparseOptimizer>> {
        let OptimizerConfig { beta1, beta2, eps, .. } = *constants;
        let rule: Arc<dyn SparseOptimizer> = match self.optimizer {
            RowOptimizer::Adam => Arc::new(SparseAdam::new(beta1, beta2, eps)?),
            RowOptimizer::Adagrad => Arc::new(SparseAdagrad::new(eps)?),
        };
        if self.weight_decay == 0.0 {
            return Ok(rule);
        }
        Ok(Arc::new(WeightDecay::new(rule, self.weight_decay)?))
    }

    /// Refuses values out of range.
    pub(super) fn check(&self) -> Result<()> {
        if self.dim == 0 {
            return Err(Error::usage("embedding.dim is 0").hint("it must be positive"));
        }
        let decay = self.weight_decay;
        if !(decay >= 0.0 && decay.is_finite()) {
            return Err(Error::usage(format!("embedding.weight_decay is {decay}, below 0")));
        }
        let positive = |v: f32| v > 0.0 && v.is_finite();
        for (key, value) in [("lr", self.lr), ("bound", self.bound)] {
            if let Some(value) = value.filter(|v| !positive(*v)) {
                return Err(Error::usage(format!("embedding.{key} is {value}, not above 0")));
            }
        }
        Ok(())
    }
}
