//! Models: stacks of message-passing layers over blocks.
//!
//! In: one block a layer and the input rows of the first block's sources. Out: logits of the last
//! block's destinations. The same layers serve full-graph training (square blocks), sampled
//! mini-batches (bipartite blocks, fewer edges than the whole-graph degree says) and subgraphs
//! with normalisation weights (GraphSAINT); inference calls them one at a time.
//!
//! Every model is one file that builds its parameters and implements [`Model`]. A layer passes
//! messages and, unless it is the last, applies activation and dropout; the first layer applies
//! dropout to its input as well where the configuration or the paper says so. Rows are transformed
//! before they are aggregated where that is less work: see [`transform_first`].
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

pub mod config;
mod gat;
mod gcn;
mod gin;
mod ngnn;
mod sage;
mod sgc;

pub use config::{Aggregator, ModelConfig};

use std::sync::Arc;

use gnarl_graph::error::{Error, Result};
use gnarl_graph::rng::Key;
use gnarl_sample::Block;

use crate::registry::unknown_name;
use crate::{Activation, Params, ParamsBuilder, Tape, Var};

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
            .hint("sample one hop a layer: as many fan-outs as model.layers"));
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
    if !names().contains(&config.name.as_str()) {
        return Err(unknown_name("model", &config.name, names()));
    }
    config.check()?;
    let mut params = ParamsBuilder::new(key);
    let model: Box<dyn Model> = match config.name.as_str() {
        "gat" => Box::new(gat::Gat::new(config, &mut params)?),
        "gcn" => Box::new(gcn::Gcn::new(config, &mut params)),
        "gin" => Box::new(gin::Gin::new(config, &mut params)),
        "ngnn" => Box::new(ngnn::Ngnn::new(config, &mut params)),
        "sgc" => Box::new(sgc::Sgc::new(config, &mut params)),
        _ => Box::new(sage::Sage::new(config, &mut params)),
    };
    Ok((model, params.build()))
}

/// The names [`build`] knows.
pub fn names() -> &'static [&'static str] {
    &["gat", "gcn", "gin", "ngnn", "sage", "sgc"]
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

/// Checks `x` against the block and the width of the layer.
fn check_input(
    model: &str,
    tape: &Tape<'_>,
    index: usize,
    block: &Block,
    x: Var,
    width: usize,
) -> Result<()> {
    let (rows, cols) = tape.shape(x);
    if (rows, cols) == (block.num_src(), width) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "layer {index} of {model} got {rows} rows of {cols} values for {} sources of width {width}",
        block.num_src()
    ))
    .hint("model.in_dim is the width of the features; check that they belong to this dataset"))
}

/// The activation after layer `index`: none after the last.
fn activation_of(config: &ModelConfig, index: usize, paper: Activation) -> Activation {
    if index + 1 == config.layers { Activation::None } else { config.activation.unwrap_or(paper) }
}

/// Dropout on the input of the first layer; `paper` is what the model does unless told otherwise.
fn drop_input<'b>(
    config: &ModelConfig,
    tape: &mut Tape<'b>,
    index: usize,
    block: &'b Block,
    x: Var,
    paper: f32,
) -> Var {
    let p = config.input_dropout.unwrap_or(paper);
    if index == 0 { tape.dropout(x, p, block.ids()) } else { x }
}

/// The probability with which layer `index` drops what it puts out: 0 for the last.
fn output_dropout(config: &ModelConfig, index: usize) -> f32 {
    if index + 1 == config.layers { 0.0 } else { config.dropout }
}
