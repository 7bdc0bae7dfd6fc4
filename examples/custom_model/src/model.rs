//! The model: a residual network that adds what neighbors say, layer by layer.

use gnarl::graph::blocks::Block;
use gnarl::nn::models::{Model, ModelConfig};
use gnarl::nn::{Activation, Init, ParamId, ParamsBuilder, Reduce, Tape, Var};
use gnarl::{Error, Result};

/// A linear map's weight and bias.
type Linear = (ParamId, ParamId);

/// `h ← h + dropout(relu(mean(h of the neighbors) · W + b))` in every layer, between a linear map
/// of the input before the first and one to the classes after the last.
pub struct ResidualMean {
    input: Linear,
    layers: Vec<Linear>,
    output: Linear,
    dropout: f32,
}

impl ResidualMean {
    /// Adds the model's parameters to `params`. `config` is the run's `[model]`, with the widths of features and
    /// outputs filled in.
    pub fn new(config: &ModelConfig, params: &mut ParamsBuilder) -> Self {
        let mut linear = |name: &str, rows, cols| {
            let weight = params.add(format!("{name}.weight"), rows, cols, Init::XavierUniform);
            (weight, params.add(format!("{name}.bias"), 1, cols, Init::Zeros))
        };
        Self {
            input: linear("input", config.in_dim, config.hidden),
            layers: (0..config.layers)
                .map(|i| linear(&format!("layer{i}"), config.hidden, config.hidden))
                .collect(),
            output: linear("output", config.hidden, config.out_dim),
            dropout: config.dropout,
        }
    }
}

impl Model for ResidualMean {
    fn name(&self) -> &str {
        "residual-mean"
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
        if tape.shape(x).0 != block.num_src() {
            return Err(Error::usage("a layer takes one row for each source of its block"));
        }
        let x = match index {
            0 => tape.linear(x, self.input.0, Some(self.input.1), Activation::Relu),
            _ => x,
        };
        // Destinations come first among the sources.
        let own = tape.head_rows(x, block.num_dst());
        let (weight, bias) = self.layers[index];
        let heard = tape.spmm(block, x, Reduce::Mean, None);
        let heard = tape.linear(heard, weight, Some(bias), Activation::Relu);
        let heard = tape.dropout(heard, self.dropout, block.ids());
        let sum = tape.add(own, heard);
        if index + 1 < self.layers.len() {
            return Ok(sum);
        }
        Ok(tape.linear(sum, self.output.0, Some(self.output.1), Activation::None))
    }
}
