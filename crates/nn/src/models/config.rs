//! The configuration of a model, as stored in run files and checkpoints.

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{Activation, Reduce};

/// Models that read features of edges, where [`ModelConfig::edge_features`] says so.
pub const OF_EDGE_FEATURES: [&str; 3] = ["gat", "gatv2", "gin"];

/// The neighbor aggregator of GraphSAGE (Hamilton et al., NeurIPS 2017, §3.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregator {
    /// The mean of the neighbors.
    #[default]
    Mean,
    /// The largest value, column by column, after a linear map and ReLU.
    MaxPool,
    /// The last state of an LSTM that reads the neighbors in stored order.
    Lstm,
}

/// The weight decomposition of R-GCN (Schlichtkrull et al., ESWC 2018, §2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decomposition {
    /// One matrix per edge type.
    #[default]
    None,
    /// Sums of bases that all edge types share (eq. 3).
    Basis,
    /// A block-diagonal matrix for each (eq. 4).
    Block,
}

/// The edges of a destination that R-GAT's attention is normalized over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Softmax {
    /// Those of one type each (WIRGAT).
    #[default]
    Within,
    /// Those of all types (ARGAT).
    Across,
}

/// The model and its hyperparameters. Fields that a model does not use are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// One of [`names`](super::names).
    pub name: String,
    /// Number of message-passing layers, one block each; for a decoupled model of dense layers.
    pub layers: usize,
    /// GCN, GAT: all dense layers come first, then messages pass (NeutronTP, section 4.1).
    pub decoupled: bool,
    /// Decoupled: number of propagations; by default the number of layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagations: Option<usize>,
    /// Decoupled: weight of the dense layers' output in the result of each propagation (APPNP's α).
    pub teleport: f32,
    /// Width of the hidden layers. For GAT the width of all heads together: 256 with 4 heads are
    /// 4 heads of 64.
    pub hidden: usize,
    /// GAT: attention heads of the hidden layers, side by side.
    pub heads: usize,
    /// GAT: attention heads of the last layer, whose mean is the result.
    pub out_heads: usize,
    /// Dropout probability of the outputs of hidden layers.
    pub dropout: f32,
    /// Dropout probability of the input; by default that of the model's paper: `dropout` for GCN
    /// and GAT, 0 for the others.
    pub input_dropout: Option<f32>,
    /// GAT: dropout probability of attention coefficients.
    pub attention_dropout: f32,
    /// Width of the input; set from the dataset.
    pub in_dim: usize,
    /// GAT, GATv2, GIN: edges' features are an input of every layer, not decoupled.
    pub edge_features: bool,
    /// Width of edges' features; set from the dataset where they are read.
    pub edge_dim: usize,
    /// Width of the output: classes, or the size of an embedding; set from the dataset.
    pub out_dim: usize,
    /// GraphSAGE and NGNN: the neighbor aggregator.
    pub aggregator: Aggregator,
    /// Activation between layers; by default that of the model's paper.
    pub activation: Option<Activation>,
    /// GAT: every destination also attends to itself, as in the paper.
    pub self_loops: bool,
    /// GAT: slope of the leaky ReLU for negative attention scores.
    pub negative_slope: f32,
    /// R-GCN: the weight decomposition.
    pub decomposition: Decomposition,
    /// R-GCN: number of bases, or of blocks on the diagonal.
    pub bases: usize,
    /// R-GCN with bases: the first layer reads ids as one-hot vectors, and features as they are. Its bases
    /// then have a row for each node, in the embedding table: see [`ModelConfig::input_width`].
    pub one_hot: bool,
    /// R-GAT: the edges that attention is normalized over.
    pub softmax: Softmax,
    /// `hetero`: name of the homogeneous model whose layer each edge type uses.
    pub relation_layer: String,
    /// `hetero`: reduction over the edge types that a node receives messages over.
    pub across: Reduce,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: "sage".into(),
            layers: 2,
            decoupled: false,
            propagations: None,
            teleport: 0.0,
            hidden: 256,
            heads: 4,
            out_heads: 1,
            dropout: 0.5,
            input_dropout: None,
            attention_dropout: 0.0,
            in_dim: 0,
            edge_features: false,
            edge_dim: 0,
            out_dim: 0,
            aggregator: Aggregator::Mean,
            activation: None,
            self_loops: true,
            negative_slope: 0.2,
            decomposition: Decomposition::None,
            bases: 4,
            one_hot: false,
            softmax: Softmax::Within,
            relation_layer: "sage".into(),
            across: Reduce::Sum,
        }
    }
}

impl ModelConfig {
    /// Input and output width of layer `index` of a model whose hidden layers are all `hidden`
    /// wide.
    pub fn dims(&self, index: usize) -> (usize, usize) {
        let last = index + 1 == self.layers;
        let input = if index == 0 { self.in_dim } else { self.hidden };
        (input, if last { self.out_dim } else { self.hidden })
    }

    /// Width of the embeddings of node types without features, and of projected features at the
    /// first layer of a heterogeneous model: `hidden`; with `one_hot` `hidden` values per basis.
    pub fn input_width(&self) -> usize {
        if self.one_hot { self.bases * self.hidden } else { self.hidden }
    }

    /// Number of blocks that the model reads, one per propagation.
    pub fn blocks(&self) -> usize {
        if self.decoupled { self.propagations.unwrap_or(self.layers) } else { self.layers }
    }

    /// The key of a run file that sets [`ModelConfig::blocks`].
    pub fn blocks_key(&self) -> &'static str {
        if self.decoupled { "model.propagations" } else { "model.layers" }
    }

    /// Returns a usage error if a value is out of range.
    pub fn check(&self) -> Result<()> {
        let positive = [
            ("layers", self.layers),
            ("propagations", self.propagations.unwrap_or(1)),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("out_heads", self.out_heads),
            ("in_dim", self.in_dim),
            ("out_dim", self.out_dim),
            ("bases", self.bases),
        ];
        for (key, value) in positive {
            if value == 0 {
                return Err(Error::usage(format!(
                    "invalid model.{key} '0': expected a positive number"
                )));
            }
        }
        if self.edge_features && (!OF_EDGE_FEATURES.contains(&&*self.name) || self.decoupled) {
            let name = &self.name;
            let form = if self.decoupled { "decoupled " } else { "" };
            return Err(Error::usage(format!("a {form}{name} reads no features of edges")).hint(
                format!("leave out model.edge_features, or use {}", OF_EDGE_FEATURES.join(", ")),
            ));
        }
        let has_bases = self.decomposition == Decomposition::Basis && !self.decoupled;
        if self.one_hot && !(self.name == "rgcn" && has_bases) {
            return Err(Error::usage(
                "model.one_hot requires model 'rgcn' with a basis decomposition",
            )
            .hint("set model.name = 'rgcn' and model.decomposition = 'basis', not decoupled"));
        }
        if self.one_hot && self.layers == 1 {
            return Err(Error::usage(
                "model.one_hot requires a hidden layer; found model.layers = 1",
            )
            .hint("set model.layers = 2"));
        }
        let probabilities = [
            ("teleport", self.teleport),
            ("dropout", self.dropout),
            ("input_dropout", self.input_dropout.unwrap_or(0.0)),
            ("attention_dropout", self.attention_dropout),
        ];
        for (key, p) in probabilities {
            if !(0.0..1.0).contains(&p) {
                return Err(Error::usage(format!(
                    "invalid model.{key} '{p}': expected a number in [0, 1)"
                )));
            }
        }
        Ok(())
    }
}
