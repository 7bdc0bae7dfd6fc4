//! Models: stacks of message-passing layers over blocks.
//!
//! In: one block a layer and the input rows of the first block's sources. Out: logits of the last
//! block's destinations. The same layers serve full-graph training (square blocks), sampled
//! mini-batches (bipartite blocks, fewer edges than the whole-graph degree says) and subgraphs
//! with normalisation weights (GraphSAINT); inference calls them one at a time.
//!
//! Every model is one file that builds its parameters and says how a layer passes messages; what
//! stacks of layers share (checks, activation and dropout but after the last, dropout on the input
//! where the configuration or the paper says so) is in one place. Rows are transformed
//! before they are aggregated where that is less work: see [`transform_first`]. In the decoupled form of a
//! model all of them are transformed first.
//!
//! ```
//! use std::sync::Arc;
//! use gnarl_graph::rng::Key;
//! use gnarl_nn::models::{self, ModelConfig};
//! use gnarl_nn::{Mode, Tape, Tensor};
//! use gnarl_sample::{Block, NodeInfo};
//!
//! // Two nodes that hear each other, once per layer.
//! let nodes = Arc::new(NodeInfo { ids: vec![0, 1], degrees: vec![1, 1] });
//! let block = Arc::new(Block::new(2, vec![0, 1, 2], vec![1, 0], None, nodes));
//! let blocks = [block.clone(), block];
//!
//! let config = ModelConfig { name: "gcn".into(), in_dim: 3, out_dim: 2, ..Default::default() };
//! let (model, params) = models::build(&config, Key::new(1))?;
//! let mut tape = Tape::new(&params, Mode::Eval);
//! let x = tape.dense(Tensor::from_vec(2, 3, vec![1.0, 0.0, 0.5, 0.0, 1.0, 0.5]));
//! let logits = model.forward(&mut tape, &blocks, x)?;
//! assert_eq!(tape.shape(logits), (2, 2));
//! # Ok::<(), gnarl_graph::Error>(())
//! ```

mod attention;
pub mod config;
mod decoupled;
mod gat;
mod gcn;
mod gin;
mod mlp;
mod ngnn;
mod sage;
mod sgc;
mod slices;
mod stack;
pub mod stages;
pub mod typed;

pub use config::{Aggregator, Decomposition, ModelConfig, Softmax};
pub use slices::{Remembered, Slices};
pub use stages::Stages;

use std::sync::Arc;

use gnarl_graph::error::{Error, Result};
use gnarl_graph::names::unknown;
use gnarl_graph::rng::Key;
use gnarl_sample::Block;

use crate::{Params, ParamsBuilder, Tape, Var};

/// A stack of message-passing layers. Parameters live in [`Params`], not in the model, so that
/// one model serves any number of workers.
pub trait Model: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &str;

    /// Number of layers, one block each.
    fn num_layers(&self) -> usize;

    /// Applies layer `index`: `x` has `block.num_src()` rows, the result `block.num_dst()`. The
    /// last layer yields logits.
    ///
    /// # Errors
    /// A usage error if `x` has another shape than layer and block ask for.
    fn layer<'b>(&self, tape: &mut Tape<'b>, index: usize, block: &'b Block, x: Var)
    -> Result<Var>;

    /// The model as stages over rows, of sparse input or dense, and passes over columns, if it is that.
    fn stages(&self, _sparse: bool) -> Option<Box<dyn Stages + '_>> {
        None
    }

    /// Applies all layers to the rows of this rank's own nodes, as one of several ranks; the result has as
    /// many rows. All ranks together compute what [`Model::forward`] does with `slices.block` in each layer.
    ///
    /// # Errors
    /// As [`Model::layer`], if a rank fails, or if the model has no such form.
    fn forward_sliced<'b>(&self, tape: &mut Tape<'b>, slices: &Slices<'b>, x: Var) -> Result<Var> {
        match self.stages(tape.is_sparse(x)) {
            Some(model) => stages::forward(model.as_ref(), tape, slices, x),
            None => Err(no_columns(self.name())),
        }
    }

    /// Applies all layers, one block each, to the rows of the first block's sources.
    ///
    /// # Errors
    /// A usage error if there is not one block a layer, or shapes disagree.
    fn forward<'b>(&self, tape: &mut Tape<'b>, blocks: &'b [Arc<Block>], x: Var) -> Result<Var> {
        if blocks.len() != self.num_layers() {
            return Err(Error::usage(format!(
                "{} blocks for the {} layers of {}",
                blocks.len(),
                self.num_layers(),
                self.name()
            ))
            .hint(
                "sample one hop a layer: as many fan-outs as model.layers or model.propagations",
            ));
        }
        let mut x = x;
        for (index, block) in blocks.iter().enumerate() {
            x = self.layer(tape, index, block, x)?;
        }
        Ok(x)
    }
}

/// Builds the model `config` describes, and its parameters filled from `key`.
///
/// # Errors
/// A usage error if the name is unknown (the nearest known one is the hint) or a value is outside
/// its range.
pub fn build(config: &ModelConfig, key: Key) -> Result<(Box<dyn Model>, Params)> {
    let mut params = ParamsBuilder::new(key);
    let model = add(config, &mut params)?;
    Ok((model, params.build()))
}

/// As [`build`], beside other parameters.
///
/// # Errors
/// As [`build`].
pub fn add(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Box<dyn Model>> {
    if !names().contains(&config.name.as_str()) {
        let error = unknown("model", &config.name, names());
        return Err(match typed::names().contains(&config.name.as_str()) {
            true => Error::usage(format!("model '{}' needs a graph with types", config.name))
                .hint("set task.node_type, the type of the nodes to classify"),
            false => error,
        });
    }
    config.check()?;
    if config.decoupled {
        return decoupled::build(config, params);
    }
    Ok(match config.name.as_str() {
        "gat" => Box::new(gat::build(config, params)?),
        "gcn" => Box::new(gcn::build(config, params)),
        "gin" => Box::new(gin::build(config, params)),
        "mlp" => Box::new(mlp::build(config, params)),
        "ngnn" => Box::new(ngnn::build(config, params)),
        "sgc" => Box::new(sgc::Sgc::new(config, params)),
        _ => Box::new(sage::build(config, params)),
    })
}

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["gat", "gcn", "gin", "mlp", "ngnn", "sage", "sgc"]
}

/// Refuses models that ranks cannot share out by columns, see [`Model::forward_sliced`].
///
/// # Errors
/// A usage error that names the model.
pub fn check_columns(config: &ModelConfig) -> Result<()> {
    match (config.name.as_str(), config.aggregator) {
        // An LSTM mixes columns.
        ("sage", Aggregator::Lstm) => Err(no_columns("sage")),
        ("gat" | "gcn" | "gin" | "mlp" | "sage" | "sgc", _) => Ok(()),
        (other, _) => Err(no_columns(other)),
    }
}

fn no_columns(model: &str) -> Error {
    Error::usage(format!("{model} does not train by columns"))
        .hint("train.strategy = 'tensor' knows gcn, sage (mean, max-pool), gin, gat, sgc and mlp")
}

/// Multiply-adds of a matrix product that take as long as one of a gathered row: products run
/// from cache, gathers from memory.
const PRODUCT_SPEEDUP: usize = 32;

/// Whether a linear map from `in_dim` to `out_dim` columns should come before the aggregation over
/// `block`: always for sparse input (the product makes it dense), else when rows get narrower by
/// it and mapping all sources instead of the destinations does not cost more than that saves.
pub fn transform_first(
    tape: &Tape<'_>,
    block: &Block,
    x: Var,
    in_dim: usize,
    out_dim: usize,
) -> bool {
    if tape.is_sparse(x) {
        return true;
    }
    let extra_rows = block.num_src() - block.num_dst();
    let saved = in_dim.saturating_sub(out_dim) * block.num_edges() * PRODUCT_SPEEDUP;
    in_dim > out_dim && extra_rows * in_dim * out_dim <= saved
}
