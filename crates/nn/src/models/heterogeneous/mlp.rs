//! A multilayer perceptron, a baseline on features and embeddings alone.

use gnarl_common::error::Result;
use gnarl_graph::blocks::Schema;

use super::Source;
use super::slices::HeteroSlices;
use super::stack::{HeteroLayer, HeteroStack};
use crate::models::ModelConfig;
use crate::models::stack::After;
use crate::{Activation, Init, ParamId, ParamsBuilder, RelBlock, Tape, Var};

/// A linear map of each node's own input, after the projection of features.
pub(super) struct Mlp {
    weight: ParamId,
    bias: ParamId,
}

pub(super) fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<HeteroStack<Mlp>> {
    HeteroStack::new(config, (schema, sources), params, |i, params| {
        let (input, output) = config.dims(i);
        let weight = params.add(format!("layer{i}.weight"), input, output, Init::XavierUniform);
        let bias = params.add(format!("layer{i}.bias"), 1, output, Init::Zeros);
        Ok(Mlp { weight, bias })
    })
}

impl HeteroLayer for Mlp {
    const NAME: &'static str = "mlp";
    const PROJECTED: Activation = Activation::Relu;

    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let own = tape.head_rows(x, block.num_dst());
        let y = tape.linear(own, self.weight, Some(self.bias), after.activation);
        Ok(after.drop(tape, block.block(), y))
    }

    /// No message passing, and so no exchange.
    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let y = tape.linear(x, self.weight, Some(self.bias), after.activation);
        Ok(tape.dropout(y, after.dropout, slices.ids))
    }
}
