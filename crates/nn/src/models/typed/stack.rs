//! What all models with types share.

use gnarl_graph::error::Result;
use gnarl_sample::Schema;

use super::input::Input;
use super::{Source, TypedModel};
use crate::models::ModelConfig;
use crate::models::stack::{After, check_input};
use crate::{Activation, ParamsBuilder, RelBlock, Span, Tape, Var};

/// One kind of layer: its parameters, and how it passes messages.
pub(super) trait TypedLayer: Send + Sync {
    /// The name of the model made of it.
    const NAME: &'static str;
    /// What follows the map of features to the width of hidden layers.
    const PROJECTED: Activation = Activation::None;

    /// Maps the rows of the sources of `block` to its destinations and does what comes `after`.
    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var>;
}

/// A model of layers of one kind, with activation and dropout between them.
pub(super) struct TypedStack<L> {
    config: ModelConfig,
    input: Input,
    layers: Vec<L>,
}

impl<L: TypedLayer> TypedStack<L> {
    pub fn new(
        config: &ModelConfig,
        (schema, sources): (&Schema, &[Source]),
        params: &mut ParamsBuilder,
        mut layer: impl FnMut(usize, &mut ParamsBuilder) -> Result<L>,
    ) -> Result<Self> {
        let input = Input::new(schema, sources, config.hidden, L::PROJECTED, params);
        let layers = (0..config.layers).map(|i| layer(i, params)).collect::<Result<_>>()?;
        Ok(Self { config: config.clone(), input, layers })
    }

    fn after(&self, index: usize) -> After {
        if index + 1 == self.layers.len() {
            return After { activation: Activation::None, dropout: 0.0 };
        }
        let activation = self.config.activation.unwrap_or(Activation::Relu);
        After { activation, dropout: self.config.dropout }
    }
}

impl<L: TypedLayer> TypedModel for TypedStack<L> {
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
        check_input(L::NAME, tape, index, block.block(), x, self.config.hidden)?;
        let dropped = if index == 0 { self.config.input_dropout.unwrap_or(0.0) } else { 0.0 };
        let x = tape.dropout(x, dropped, block.block().ids());
        self.layers[index].apply(tape, block, x, self.after(index))
    }
}
