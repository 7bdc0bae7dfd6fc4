//! Models: stacks of message-passing layers over blocks.
//!
//! In: one block per layer and the features of the first block's sources. Out: logits of the last
//! block's destinations. The same layers serve full-graph training (square blocks), sampled
//! mini-batches (bipartite blocks, fewer edges than the whole-graph degree says) and subgraphs
//! with normalization weights (GraphSAINT); inference calls them one at a time.
//!
//! Every model is one file that builds its parameters and defines its message passing; the code
//! shared by stacks of layers (checks, activation, dropout after all layers but the last, dropout
//! on the input where the configuration or the paper says so) is in one place. Features are
//! transformed before they are aggregated where that is less work: see [`transform_first`]. In the
//! decoupled form of a model all of them are transformed first.
//!
//! ```
//! use std::sync::Arc;
//! use gnarl_common::rng::Key;
//! use gnarl_nn::models::{self, ModelConfig};
//! use gnarl_nn::{Mode, Tape, Tensor};
//! use gnarl_graph::blocks::{Block, NodeInfo};
//!
//! // Two nodes with edges to each other, in both layers.
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
//! # Ok::<(), gnarl_common::Error>(())
//! ```

mod attention;
mod attention_propagation;
pub mod config;
mod decoupled;
mod edge_input;
mod gat;
mod gatv2;
mod gcn;
mod gin;
mod head_slice;
pub mod heterogeneous;
mod mlp;
mod model;
mod ngnn;
mod relation_layer;
mod sage;
mod sgc;
mod slices;
mod stack;
pub mod stages;
mod teleport;
mod transform;

pub use config::{Aggregator, Decomposition, ModelConfig, OF_EDGE_FEATURES, Softmax};
pub use model::Model;
pub use slices::{Remembered, Slices};
pub use stages::Stages;
pub use transform::transform_first;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use model::{edges_are_whole, lstm_mixes, no_slices, scores_mix};

use crate::{Params, ParamsBuilder};

/// Builds the model that `config` describes, and its parameters initialized from `key`.
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
        return Err(match heterogeneous::names().contains(&config.name.as_str()) {
            true => Error::usage(format!("model '{}' requires a heterogeneous graph", config.name))
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
        "gatv2" => Box::new(gatv2::build(config, params)?),
        "gcn" => Box::new(gcn::build(config, params)),
        "gin" => Box::new(gin::build(config, params)),
        "mlp" => Box::new(mlp::build(config, params)),
        "ngnn" => Box::new(ngnn::build(config, params)),
        "sgc" => Box::new(sgc::Sgc::new(config, params)),
        "sage" => Box::new(sage::build(config, params)),
        // A name without its arm would train another model.
        name => return Err(unknown("model", name, names())),
    })
}

/// The model names that [`build`] accepts.
pub fn names() -> &'static [&'static str] {
    &["gat", "gatv2", "gcn", "gin", "mlp", "ngnn", "sage", "sgc"]
}

/// Rejects models without a tensor-parallel form, see [`Model::forward_sliced`].
///
/// # Errors
/// A usage error with the reason.
pub fn check_columns(config: &ModelConfig) -> Result<()> {
    match (config.name.as_str(), config.aggregator) {
        (name @ ("ngnn" | "sage"), Aggregator::Lstm) => Err(lstm_mixes(name)),
        ("gatv2", _) => Err(scores_mix()),
        _ if config.edge_features => Err(edges_are_whole()),
        (name, _) if names().contains(&name) => Ok(()),
        (other, _) => Err(no_slices(other)),
    }
}
