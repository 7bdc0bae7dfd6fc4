//! The description of a model, as configuration files and checkpoints hold it.

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{Activation, Reduce};

/// How GraphSAGE combines neighbours (Hamilton et al., NeurIPS 2017, §3.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregator {
    /// The mean of the neighbours.
    #[default]
    Mean,
    /// The largest value, column by column, after a linear map and ReLU.
    MaxPool,
    /// The last state of an LSTM that reads the neighbours in stored order.
    Lstm,
}

/// How R-GCN comes by a weight for each edge type (Schlichtkrull et al., ESWC 2018, §2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decomposition {
    /// A matrix for each.
    #[default]
    None,
    /// Sums of bases that all edge types share (eq. 3).
    Basis,
    /// A block-diagonal matrix for each (eq. 4).
    Block,
}

/// Which edges of a destination R-GAT's attention divides itself among.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Softmax {
    /// Those of one type each (WIRGAT).
    #[default]
    Within,
    /// Those of all types (ARGAT).
    Across,
}

/// What to build. Fields a model has no use for are ignored by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// One of [`names`](super::names).
    pub name: String,
    /// Number of message-passing layers; each consumes one block. Of a decoupled model the dense ones.
    pub layers: usize,
    /// GCN, GAT: all dense layers come first, then messages pass (NeutronTP, section 4.1).
    pub decoupled: bool,
    /// Decoupled: how often messages pass; as often as there are layers if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagations: Option<usize>,
    /// Decoupled: share of what the dense layers made in the result of each propagation (APPNP's α).
    pub teleport: f32,
    /// Width of the hidden layers. For GAT the width of all heads together: 256 with 4 heads are
    /// 4 heads of 64.
    pub hidden: usize,
    /// GAT: attention heads of the hidden layers, side by side.
    pub heads: usize,
    /// GAT: attention heads of the last layer, whose mean is the result.
    pub out_heads: usize,
    /// Probability that a value a hidden layer puts out is dropped.
    pub dropout: f32,
    /// Probability that an input value is dropped; none given means what the model's paper does:
    /// `dropout` for GCN and GAT, 0 for the others.
    pub input_dropout: Option<f32>,
    /// GAT: probability that an attention coefficient is dropped.
    pub attention_dropout: f32,
    /// Width of the input; set from the dataset.
    pub in_dim: usize,
    /// Width of the output: classes, or the size of an embedding; set from the dataset.
    pub out_dim: usize,
    /// GraphSAGE and NGNN: how neighbours are combined.
    pub aggregator: Aggregator,
    /// Activation between layers; none given means the one of the model's paper.
    pub activation: Option<Activation>,
    /// GAT: every destination also attends to itself, as in the paper.
    pub self_loops: bool,
    /// GAT: slope of the leaky ReLU for negative attention scores.
    pub negative_slope: f32,
    /// R-GCN: how edge types come by their weights.
    pub decomposition: Decomposition,
    /// R-GCN: number of bases, or of blocks on the diagonal.
    pub bases: usize,
    /// R-GCN with bases: the first layer reads ids as one-hot vectors, and features as they are. Its bases
    /// then have a row for each node, in the embedding table: see [`ModelConfig::input_width`].
    pub one_hot: bool,
    /// R-GAT: which edges attention is divided among.
    pub softmax: Softmax,
    /// `hetero`: the layer that each edge type has of its own: a model's name.
    pub relation_layer: String,
    /// `hetero`: how a node combines what it hears over several edge types.
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

    /// Width of the embeddings of node types without features, and of what features are mapped to before
    /// the first layer of a heterogeneous model: `hidden`; with `one_hot` `hidden` values for each basis.
    pub fn input_width(&self) -> usize {
        if self.one_hot { self.bases * self.hidden } else { self.hidden }
    }

    /// Number of blocks that the model reads, one each time that messages pass.
    pub fn blocks(&self) -> usize {
        if self.decoupled { self.propagations.unwrap_or(self.layers) } else { self.layers }
    }

    /// A usage error if a value is outside its range.
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
                return Err(Error::usage(format!("model.{key} is 0")).hint("it must be positive"));
            }
        }
        let has_bases = self.decomposition == Decomposition::Basis && !self.decoupled;
        if self.one_hot && !(self.name == "rgcn" && has_bases) {
            return Err(Error::usage(
                "model.one_hot makes bases of one-hot ids, which only rgcn has",
            )
            .hint("set model.name = 'rgcn' and model.decomposition = 'basis', not decoupled"));
        }
        if self.one_hot && self.layers == 1 {
            return Err(Error::usage("model.one_hot needs a hidden layer, model.layers is 1")
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
                return Err(Error::usage(format!("model.{key} is {p}, not in [0, 1)")));
            }
        }
        Ok(())
    }
}
