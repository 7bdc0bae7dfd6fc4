//! The trait of models.

use std::sync::Arc;

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Block;

use super::slices::Slices;
use super::stages::{self, Stages};
use crate::{Tape, Var};

/// A stack of message-passing layers. Parameters live in [`Params`](crate::Params), not in the model, so that
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

    /// The model as row-wise stages, of sparse input or dense, alternating with column-wise passes,
    /// if possible. None of the passes reads scores: see [`Model::scored_stages`] for those.
    fn stages(&self, _sparse: bool) -> Option<Box<dyn Stages + '_>> {
        None
    }

    /// The model as row-wise stages of inference and of training in chunks, whose passes may read scores beside the
    /// messages.
    fn scored_stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        self.stages(sparse)
    }

    /// The model as row-wise stages of training in chunks.
    fn chunk_stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        self.scored_stages(sparse)
    }

    /// Returns whether [`Model::forward_sliced`] passes messages of sparse input or dense once a layer, so that it can take a
    /// block for each layer.
    fn is_layered(&self, _sparse: bool) -> bool {
        false
    }

    /// Applies all layers to this rank's own nodes, in tensor parallelism; the result has a row for each of those that the last
    /// block leaves. All ranks together compute [`Model::forward`] with `slices.blocks`.
    ///
    /// # Errors
    /// As [`Model::layer`], if a rank fails, or if the model has no such form.
    fn forward_sliced<'b>(&self, tape: &mut Tape<'b>, slices: &Slices<'b>, x: Var) -> Result<Var> {
        match self.stages(tape.is_sparse(x)) {
            Some(model) => stages::forward(model.as_ref(), tape, slices, x),
            None => Err(no_slices(self.name())),
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

/// The refusal of a model without a tensor-parallel form.
pub(super) fn no_slices(model: &str) -> Error {
    Error::usage(format!("model '{model}' does not train by feature slices")).hint(
        "train.strategy = 'tensor' requires Model::stages or Model::forward_sliced; 'gradient' \
         supports all models",
    )
}

/// The refusal of a model that aggregates neighbors by an LSTM.
pub(super) fn lstm_mixes(model: &str) -> Error {
    Error::usage(format!(
        "model '{model}' with aggregator 'lstm' does not train by feature slices: the recurrence \
         mixes all features at every neighbor, so that a slice of them cannot be aggregated alone"
    ))
    .hint("set model.aggregator to 'mean' or 'max-pool', or train.strategy to 'gradient'")
}

/// The refusal of a model whose scores read all columns of both endpoints of an edge.
pub(super) fn scores_mix() -> Error {
    Error::usage(
        "model 'gatv2' does not train by feature slices: the score of an edge is made of all features \
         of both endpoints, after the nonlinearity",
    )
    .hint("use gat, or set train.strategy to 'gradient'")
}

/// The refusal of a model that reads features of edges, which belong to no rank's slice.
pub(super) fn edges_are_whole() -> Error {
    Error::usage("features of edges are not read in training by feature slices")
        .hint("leave out model.edge_features, or set train.strategy to 'gradient'")
}
