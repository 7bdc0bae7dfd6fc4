//! Stacks of heterogeneous layers of one kind.

use gnarl_common::error::Result;
use gnarl_graph::blocks::Schema;

use super::input::Input;
use super::model::{HeteroModel, Source};
use super::slices::{HeteroSlices, WholeRelations};
use crate::models::ModelConfig;
use crate::models::stack::{After, check_input};
use crate::{Activation, ParamsBuilder, RelBlock, Span, Tape, Var};

/// One kind of layer: its parameters and its message passing.
pub(super) trait HeteroLayer: Send + Sync {
    /// Name of the model made of this layer.
    const NAME: &'static str;
    /// Activation after the projection of features to the width of hidden layers.
    const PROJECTED: Activation = Activation::None;

    /// Maps the rows of the sources of `block` to its destinations and applies `after`.
    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var>;

    /// Message passing in tensor parallelism, see [`HeteroModel::forward_sliced`].
    ///
    /// # Errors
    /// If a rank fails, or the layer mixes columns where it aggregates.
    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var>;

    /// See [`HeteroModel::prepare_sliced`].
    fn prepare(&self, _graph: &WholeRelations) {}
}

/// A model of layers of one kind, with activation and dropout between them.
pub(super) struct HeteroStack<L> {
    config: ModelConfig,
    input: Input,
    layers: Vec<L>,
}

impl<L: HeteroLayer> HeteroStack<L> {
    pub fn new(
        config: &ModelConfig,
        (schema, sources): (&Schema, &[Source]),
        params: &mut ParamsBuilder,
        mut layer: impl FnMut(usize, &mut ParamsBuilder) -> Result<L>,
    ) -> Result<Self> {
        let input = Input::new(schema, sources, config.in_dim, L::PROJECTED, params);
        let layers = (0..config.layers).map(|i| layer(i, params)).collect::<Result<_>>()?;
        Ok(Self { config: config.clone(), input, layers })
    }

    /// Drops values of `x` if it is the model's input; a key is drawn in every layer.
    fn drop_input<'b>(&self, tape: &mut Tape<'b>, index: usize, ids: &'b [u64], x: Var) -> Var {
        let dropped = if index == 0 { self.config.input_dropout.unwrap_or(0.0) } else { 0.0 };
        tape.dropout(x, dropped, ids)
    }

    fn after(&self, index: usize) -> After {
        if index + 1 == self.layers.len() {
            return After { activation: Activation::None, dropout: 0.0 };
        }
        let activation = self.config.activation.unwrap_or(Activation::Relu);
        After { activation, dropout: self.config.dropout }
    }
}

impl<L: HeteroLayer> HeteroModel for HeteroStack<L> {
    fn name(&self) -> &str {
        L::NAME
    }

    fn num_layers(&self) -> usize {
        self.layers.len()
    }

    fn input<'b>(
        &self,
        tape: &mut Tape<'b>,
        spans: &'b [Span],
        rows: &[Option<Var>],
    ) -> Result<Var> {
        self.input.apply(tape, spans, rows)
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b RelBlock,
        x: Var,
    ) -> Result<Var> {
        check_input(L::NAME, tape, index, block.block(), x, self.config.dims(index).0)?;
        let x = self.drop_input(tape, index, block.block().ids(), x);
        self.layers[index].apply(tape, block, x, self.after(index))
    }

    fn forward_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        rows: &[Option<Var>],
    ) -> Result<Var> {
        let mut x = self.input.apply(tape, slices.graph.own(), rows)?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = self.drop_input(tape, index, slices.ids, x);
            x = layer.apply_sliced(tape, slices, x, self.after(index))?;
        }
        Ok(x)
    }

    fn prepare_sliced(&self, graph: &WholeRelations) {
        self.layers.iter().for_each(|layer| layer.prepare(graph));
    }
}
