//! The trait of heterogeneous models, and their names.

use gnarl_common::error::{Error, Result};

use super::slices::{HeteroSlices, WholeRelations};
use crate::{RelBlock, Span, Tape, Var};

/// The input of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Features of this many values.
    Features(usize),
    /// Embeddings of [`ModelConfig::input_width`](crate::models::ModelConfig::input_width) values.
    Embeddings,
}

/// A stack of message-passing layers over heterogeneous graphs. Parameters live in
/// [`Params`](crate::Params), not in the model.
pub trait HeteroModel: Send + Sync {
    /// The name the configuration uses.
    fn name(&self) -> &str;

    /// Number of layers, one block each.
    fn num_layers(&self) -> usize;

    /// Builds one matrix of [`ModelConfig::input_width`] columns from the inputs of each node type,
    /// in the order of `spans` ([`RelBlock::sources`] of the first block).
    ///
    /// [`ModelConfig::input_width`]: crate::models::ModelConfig::input_width
    ///
    /// # Errors
    /// A usage error if a type's rows are missing or have another shape than model and spans ask for.
    fn input<'b>(
        &self,
        tape: &mut Tape<'b>,
        spans: &'b [Span],
        rows: &[Option<Var>],
    ) -> Result<Var>;

    /// Applies layer `index`: `x` has `block.num_src()` rows, the result `block.num_dst()`. The last
    /// layer yields logits.
    ///
    /// # Errors
    /// A usage error if `x` has another shape than layer and block ask for.
    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b RelBlock,
        x: Var,
    ) -> Result<Var>;

    /// Applies all layers, one block each, to the inputs of each node type.
    ///
    /// # Errors
    /// A usage error if there is not one block a layer, or shapes disagree.
    fn forward<'b>(
        &self,
        tape: &mut Tape<'b>,
        blocks: &'b [RelBlock],
        rows: &[Option<Var>],
    ) -> Result<Var> {
        if blocks.len() != self.num_layers() {
            let found = blocks.len();
            let layers = self.num_layers();
            let name = self.name();
            return Err(Error::usage(format!(
                "model '{name}' has {layers} layers, but the batch has {found} blocks"
            ))
            .hint("sample one hop a layer: as many fan-outs as model.layers"));
        }
        let mut x = self.input(tape, blocks[0].sources(), rows)?;
        for (index, block) in blocks.iter().enumerate() {
            x = self.layer(tape, index, block, x)?;
        }
        Ok(x)
    }

    /// Applies all layers to this rank's own nodes, in tensor parallelism; the result has a row for
    /// each. All ranks together compute [`HeteroModel::forward`] with the whole graph in every
    /// layer.
    ///
    /// # Errors
    /// As [`HeteroModel::forward`], if a rank fails, or if the model mixes columns where it
    /// aggregates.
    fn forward_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        rows: &[Option<Var>],
    ) -> Result<Var>;

    /// Builds the transposes that [`HeteroModel::forward_sliced`] and its backward pass need of
    /// `graph`, so that the compute stage finds them ready.
    fn prepare_sliced(&self, _graph: &WholeRelations) {}
}

/// The model names that [`build`](super::build) accepts.
pub fn names() -> &'static [&'static str] {
    &["hetero", "hgt", "mlp", "rgat", "rgcn"]
}
