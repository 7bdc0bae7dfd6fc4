//! The graph that messages pass over, as far as the work of an epoch depends on it: one file per kind.

mod degrees;
mod heterogeneous;
mod homogeneous;

pub(super) use heterogeneous::Heterogeneous;
pub(super) use homogeneous::Homogeneous;

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_nn::models::ModelConfig;
use gnarl_partition::Within;

use super::exchange::ExchangeBytes;
use super::layers::{Layer, Row};

/// Rows and edges of a layer's message passing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct BlockSize {
    /// Nodes that messages come from; all that they go to are among them.
    pub sources: f64,
    /// Nodes that messages go to.
    pub targets: f64,
    /// Pairs of a node and an edge type that it receives messages over; 0 in homogeneous graphs.
    pub groups: f64,
    /// Pairs of a node and an edge type that it sends messages over; 0 in homogeneous graphs.
    pub senders: f64,
    /// Edges.
    pub edges: f64,
}

/// Expected batches of one rank in an epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Batches {
    /// Optimizer steps.
    pub steps: u64,
    /// The block of each layer, the input's first.
    pub blocks: Vec<BlockSize>,
    /// Input nodes of each type.
    pub inputs: Vec<f64>,
}

/// Cost of input rows before the first layer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct InputCost {
    /// Projections to a common width.
    pub projected: Row,
    /// Bytes of features.
    pub feature_bytes: f64,
    /// Bytes of embeddings.
    pub embedding_bytes: f64,
}

/// The layers of a model in tensor parallelism.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sliced {
    /// The layers, the input's first.
    pub layers: Vec<Layer>,
    /// Bytes that all ranks send in redistributions, in an epoch.
    pub sent: ExchangeBytes,
    /// Number of redistributions.
    pub exchanges: f64,
    /// Bytes of an edge in memory.
    pub edge_bytes: f64,
    /// Share of computed values that stay for the backward pass.
    pub kept: f64,
}

/// A kind of graphs, and the models over it.
pub(super) trait MessageGraph {
    /// The model of a run, with the width of its first layer's input.
    fn model(&self, config: &ModelConfig) -> ModelConfig;

    /// Number of weights, without embeddings of nodes.
    ///
    /// # Errors
    /// If the model is unknown, or its sizes are invalid.
    fn parameters(&self, model: &ModelConfig) -> Result<f64>;

    /// Embeddings of all nodes, in values.
    fn embedding_values(&self, model: &ModelConfig) -> f64;

    /// Returns whether the model has a decoupled form, or is one.
    fn can_be_decoupled(&self, model: &ModelConfig) -> bool;

    /// Number of in-neighbor lists: one of each node for each edge type that ends in its type.
    fn lists(&self) -> f64;

    /// Expected batches of one of `ranks`, whose seeds are those of `train` nodes, `within` the graph.
    ///
    /// # Errors
    /// If an edge type of the run file is misspelled.
    fn batches(
        &self,
        config: &RunConfig,
        train: u64,
        ranks: usize,
        within: Within,
    ) -> Result<Batches>;

    /// The whole graph as a block, and the number of nodes of each type.
    fn whole(&self, model: &ModelConfig) -> (BlockSize, Vec<f64>);

    /// The cost of input rows: some of each type.
    fn inputs(&self, model: &ModelConfig, rows: &[f64]) -> InputCost;

    /// The layers of a model over sampled blocks.
    fn layers(&self, model: &ModelConfig, blocks: &[BlockSize]) -> Vec<Layer>;

    /// Rejects models without a tensor-parallel form.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with the reason.
    fn check_columns(&self, model: &ModelConfig) -> Result<()>;

    /// The layers of a model over the whole graph, shared by `ranks` in tensor parallelism.
    fn sliced(&self, model: &ModelConfig, ranks: usize) -> Sliced;
}
