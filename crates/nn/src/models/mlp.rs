//! A multilayer perceptron, a baseline on features alone.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::ModelConfig;
use super::stack::{After, Layer, Stack};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use crate::{Init, ParamId, ParamsBuilder, Tape, Var};

/// A linear map of each node's own features; edges play no part.
pub(super) struct Mlp {
    weight: ParamId,
    bias: ParamId,
    input: usize,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Mlp> {
    let layer = |i| {
        let (input, output) = config.dims(i);
        let weight = params.add(format!("layer{i}.weight"), input, output, Init::XavierUniform);
        let bias = params.add(format!("layer{i}.bias"), 1, output, Init::Zeros);
        Mlp { weight, bias, input }
    };
    Stack::new(config, (0..config.layers).map(layer).collect())
}

impl Stack<Mlp> {
    /// All layers on the rows of the nodes with these dataset ids.
    ///
    /// # Errors
    /// A usage error if `x` has another shape.
    pub(super) fn rows<'b>(&self, tape: &mut Tape<'b>, ids: &'b [u64], x: Var) -> Result<Var> {
        self.layers.iter().enumerate().try_fold(x, |x, (index, layer)| {
            let x = self.begin(tape, index, ids, x)?;
            Ok(layer.map(tape, ids, x, self.after(index)))
        })
    }
}

impl Mlp {
    fn map<'b>(&self, tape: &mut Tape<'b>, ids: &'b [u64], x: Var, after: After) -> Var {
        let y = tape.linear(x, self.weight, Some(self.bias), after.activation);
        tape.dropout_last(y, after.dropout, ids)
    }
}

impl Layer for Mlp {
    const NAME: &'static str = "mlp";

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let own = tape.head_rows(x, block.num_dst());
        self.map(tape, block.ids(), own, after)
    }

    fn stages(stack: &Stack<Self>, _: bool) -> Option<Box<dyn Stages + '_>> {
        Some(Box::new(Dense(stack)))
    }
}

/// One stage without message passing.
struct Dense<'m>(&'m Stack<Mlp>);

impl Stages for Dense<'_> {
    fn passes(&self) -> usize {
        0
    }

    fn stage<'b>(
        &self,
        tape: &mut Tape<'b>,
        _: usize,
        ids: &'b [u64],
        rows: Incoming,
    ) -> Result<Outgoing> {
        Ok(Outgoing { sent: self.0.rows(tape, ids, rows.passed)?, kept: None })
    }

    fn pass(&self, _: usize) -> Pass {
        unreachable!("a perceptron passes nothing")
    }
}
