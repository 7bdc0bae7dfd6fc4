//! Models that are stacks of layers of one kind.

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Block;

use super::ModelConfig;
use super::model::{Model, no_slices};
use super::slices::Slices;
use super::stages::{self, Incoming, Outgoing, Pass, Stages};
use crate::{Activation, Tape, Var};

/// The steps after a layer's message passing: none after the last one.
#[derive(Debug, Clone, Copy)]
pub(super) struct After {
    pub(super) activation: Activation,
    /// Dropout probability.
    pub(super) dropout: f32,
}

impl After {
    /// Drops values of `y`, the result of `block`.
    pub(super) fn drop<'b>(self, tape: &mut Tape<'b>, block: &'b Block, y: Var) -> Var {
        tape.dropout(y, self.dropout, block.ids())
    }
}

/// One kind of layer: its parameters and its message passing.
pub(super) trait Layer: Send + Sync {
    /// Name of the model made of this layer.
    const NAME: &'static str;
    /// Activation of the model's paper.
    const ACTIVATION: Activation = Activation::Relu;
    /// True if the paper drops values of the model's input as well.
    const DROPS_INPUT: bool = false;

    /// Width of the input.
    fn input(&self) -> usize;

    /// Maps the rows of the sources of `block`, of width [`Layer::input`], to its destinations and
    /// applies `after`.
    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var;

    /// A stack of this layer as stages, see [`Model::stages`].
    fn stages(_stack: &Stack<Self>, _sparse: bool) -> Option<Box<dyn Stages + '_>>
    where
        Self: Sized,
    {
        None
    }

    /// A stack of this layer as stages, see [`Model::scored_stages`].
    fn scored_stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>>
    where
        Self: Sized,
    {
        Self::stages(stack, sparse)
    }

    /// Message passing of layer `index` in tensor parallelism, for layers without stages, see
    /// [`Model::forward_sliced`]; `None` if unsupported.
    fn apply_sliced<'b>(
        &self,
        _tape: &mut Tape<'b>,
        _slices: &Slices<'b>,
        _index: usize,
        _x: Var,
        _after: After,
    ) -> Result<Option<Var>> {
        Ok(None)
    }
}

/// A model of layers of one kind, with activation and dropout between them.
pub(super) struct Stack<L> {
    config: ModelConfig,
    pub(super) layers: Vec<L>,
}

impl<L: Layer> Stack<L> {
    pub(super) fn new(config: &ModelConfig, layers: Vec<L>) -> Self {
        Self { config: config.clone(), layers }
    }

    /// The steps after layer `index`.
    pub(super) fn after(&self, index: usize) -> After {
        if index + 1 == self.layers.len() {
            return After { activation: Activation::None, dropout: 0.0 };
        }
        let activation = self.config.activation.unwrap_or(L::ACTIVATION);
        After { activation, dropout: self.config.dropout }
    }

    /// Checks the input `x` of layer `index`, rows of the nodes with these dataset ids, and applies
    /// input dropout before the first layer.
    pub(super) fn begin<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        ids: &'b [u64],
        x: Var,
    ) -> Result<Var> {
        check_rows(L::NAME, tape, index, ids.len(), x, self.layers[index].input())?;
        if index > 0 {
            return Ok(x);
        }
        let paper = if L::DROPS_INPUT { self.config.dropout } else { 0.0 };
        Ok(tape.dropout(x, self.config.input_dropout.unwrap_or(paper), ids))
    }
}

impl<L: Layer> Model for Stack<L> {
    fn name(&self) -> &str {
        L::NAME
    }

    fn num_layers(&self) -> usize {
        self.layers.len()
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let x = self.begin(tape, index, block.ids(), x)?;
        Ok(self.layers[index].apply(tape, block, x, self.after(index)))
    }

    fn stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        L::stages(self, sparse)
    }

    fn scored_stages(&self, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        L::scored_stages(self, sparse)
    }

    fn is_layered(&self, sparse: bool) -> bool {
        L::stages(self, sparse).is_none_or(|stages| stages.passes() == self.layers.len())
    }

    fn forward_sliced<'b>(&self, tape: &mut Tape<'b>, slices: &Slices<'b>, x: Var) -> Result<Var> {
        if let Some(stages) = L::stages(self, tape.is_sparse(x)) {
            return stages::forward(stages.as_ref(), tape, slices, x);
        }
        self.layers.iter().enumerate().try_fold(x, |x, (index, layer)| {
            let x = self.begin(tape, index, slices.ids_after(index), x)?;
            let passed = layer.apply_sliced(tape, slices, index, x, self.after(index))?;
            passed.ok_or_else(|| no_slices(L::NAME))
        })
    }
}

/// A layer split into sending, a column-wise pass, and receiving.
pub(super) trait StagedLayer: Layer + Sized {
    /// Width of messages of a layer that does not map first, and of one that does.
    fn dims(&self) -> (usize, usize);

    /// The messages of nodes and the values they keep. `narrow` if they are mapped before they are
    /// sent.
    fn send(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Outgoing;

    /// The message-passing operator.
    fn pass(&self) -> Pass;

    /// The output from the aggregated messages, through the activation.
    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, narrow: bool, act: Activation) -> Var;
}

/// A stack whose stages each receive one layer's messages and send the next one's.
pub(super) struct StackStages<'m, L> {
    pub stack: &'m Stack<L>,
    /// True if the input is sparse.
    pub sparse: bool,
}

impl<L: StagedLayer> StackStages<'_, L> {
    /// Returns whether rows are mapped before messages pass: the fewer columns, the less there is
    /// to exchange. Sparse ones must be.
    fn narrow(&self, index: usize) -> bool {
        let (input, output) = self.stack.layers[index].dims();
        output < input || (index == 0 && self.sparse)
    }
}

impl<L: StagedLayer> Stages for StackStages<'_, L> {
    fn passes(&self) -> usize {
        self.stack.layers.len()
    }

    fn stage<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        ids: &'b [u64],
        rows: Incoming,
    ) -> Result<Outgoing> {
        let (stack, layers) = (self.stack, &self.stack.layers);
        let x = match index.checked_sub(1) {
            None => stack.begin(tape, 0, ids, rows.passed)?,
            Some(before) => {
                let After { activation, dropout } = stack.after(before);
                let layer = &layers[before];
                let y = layer.receive(tape, rows, self.narrow(before), activation);
                tape.dropout_last(y, dropout, ids)
            }
        };
        let Some(layer) = layers.get(index) else { return Ok(Outgoing { sent: x, kept: None }) };
        Ok(layer.send(tape, x, self.narrow(index)))
    }

    fn pass(&self, index: usize) -> Pass {
        self.stack.layers[index].pass()
    }
}

/// Checks `x` against the block and the width of the layer.
pub(super) fn check_input(
    model: &str,
    tape: &Tape<'_>,
    index: usize,
    block: &Block,
    x: Var,
    width: usize,
) -> Result<()> {
    check_rows(model, tape, index, block.num_src(), x, width)
}

/// Checks the number of rows of some nodes against `wanted`.
pub(super) fn check_rows(
    model: &str,
    tape: &Tape<'_>,
    index: usize,
    wanted: usize,
    x: Var,
    width: usize,
) -> Result<()> {
    let (rows, cols) = tape.shape(x);
    if (rows, cols) == (wanted, width) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "layer {index} of {model}: expected {wanted} rows of {width} values, found {rows} of {cols}"
    ))
    .hint("check that the features belong to this dataset: model.in_dim is their width"))
}
