//! NGNN (Song et al., "Network In Graph Neural Network", 2021) over GraphSAGE.

use gnarl_graph::error::Result;
use gnarl_sample::Block;

use super::sage::Convolution;
use super::{Model, ModelConfig, activation_of, check_input, drop_input, output_dropout};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// GraphSAGE whose hidden layers go through one more linear map and activation: eq. 2 with one
/// inner layer, `h' = σ(σ(conv(h)) W + b)`. The last layer is a plain convolution.
pub(super) struct Ngnn {
    config: ModelConfig,
    convolutions: Vec<Convolution>,
    inner: Vec<(ParamId, ParamId)>,
}

impl Ngnn {
    pub(super) fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let convolutions = (0..config.layers)
            .map(|i| Convolution::new(config.aggregator, i, config.dims(i), params))
            .collect();
        let inner = (0..config.layers - 1)
            .map(|i| {
                let name = format!("layer{i}.inner.weight");
                let weight = params.add(name, config.hidden, config.hidden, Init::XavierUniform);
                (weight, params.add(format!("layer{i}.inner.bias"), 1, config.hidden, Init::Zeros))
            })
            .collect();
        Self { config: config.clone(), convolutions, inner }
    }
}

impl Model for Ngnn {
    fn name(&self) -> &str {
        "ngnn"
    }

    fn num_layers(&self) -> usize {
        self.convolutions.len()
    }

    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b Block,
        x: Var,
    ) -> Result<Var> {
        let layer = &self.convolutions[index];
        check_input("ngnn", tape, index, block, x, layer.input())?;
        let x = drop_input(&self.config, tape, index, block, x, 0.0);
        let act = activation_of(&self.config, index, Activation::Relu);
        let y = layer.apply(tape, block, x, act, 0.0);
        let Some(&(weight, bias)) = self.inner.get(index) else { return Ok(y) };
        let y = tape.linear(y, weight, Some(bias), act);
        Ok(tape.dropout(y, output_dropout(&self.config, index), block.ids()))
    }
}
