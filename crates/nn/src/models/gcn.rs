//! GCN (Kipf & Welling, ICLR 2017).

use gnarl_graph::error::Result;
use gnarl_sample::Block;

use super::{
    Model, ModelConfig, activation_of, check_input, drop_input, output_dropout, transform_first,
};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// `H' = σ(D̂^-½ Â D̂^-½ H W + b)`, eq. 2, with dropout on `H`.
pub(super) struct Gcn {
    config: ModelConfig,
    layers: Vec<(ParamId, ParamId)>,
}

impl Gcn {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let layers = (0..config.layers)
            .map(|i| {
                let (input, output) = config.dims(i);
                let weight =
                    params.add(format!("layer{i}.weight"), input, output, Init::XavierUniform);
                (weight, params.add(format!("layer{i}.bias"), 1, output, Init::Zeros))
            })
            .collect();
        Self { config: config.clone(), layers }
    }
}

impl Model for Gcn {
    fn name(&self) -> &str {
        "gcn"
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
        let (input, output) = self.config.dims(index);
        check_input("gcn", tape, index, block, x, input)?;
        let (weight, bias) = self.layers[index];
        let act = activation_of(&self.config, index, Activation::Relu);
        let x = drop_input(&self.config, tape, index, block, x, self.config.dropout);
        let y = if transform_first(tape, block, x, input, output) {
            let x = tape.linear(x, weight, None, Activation::None);
            let mixed = tape.gcn_norm(block, x);
            let bias = tape.param(bias);
            let sum = tape.add_row(mixed, bias);
            tape.activation(sum, act)
        } else {
            let mixed = tape.gcn_norm(block, x);
            tape.linear(mixed, weight, Some(bias), act)
        };
        Ok(tape.dropout(y, output_dropout(&self.config, index), block.ids()))
    }
}
