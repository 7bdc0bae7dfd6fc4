//! A multilayer perceptron over head and tail.

use super::{EdgeRows, Head, HeadSizes};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// Layers over the embeddings of both endpoints and the edge features, concatenated; ReLU in
/// between.
pub(super) struct Mlp {
    /// Weight and bias of each layer.
    layers: Vec<(ParamId, ParamId)>,
}

impl Mlp {
    pub fn new(sizes: HeadSizes, hidden: usize, layers: usize, params: &mut ParamsBuilder) -> Self {
        let mut input = 2 * sizes.width + sizes.features;
        let mut layer = |i: usize| {
            let output = if i + 1 == layers { sizes.outputs } else { hidden };
            let weight =
                params.add(format!("decoder.weight{i}"), input, output, Init::XavierUniform);
            input = output;
            (weight, params.add(format!("decoder.bias{i}"), 1, output, Init::Zeros))
        };
        Self { layers: (0..layers).map(&mut layer).collect() }
    }
}

impl Head for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn forward(&self, tape: &mut Tape<'_>, edges: EdgeRows) -> Var {
        let mut parts = vec![edges.heads, edges.tails];
        parts.extend(edges.features);
        let mut x = tape.concat_cols(&parts);
        for (i, &(weight, bias)) in self.layers.iter().enumerate() {
            let last = i + 1 == self.layers.len();
            let activation = if last { Activation::None } else { Activation::Relu };
            x = tape.linear(x, weight, Some(bias), activation);
        }
        x
    }
}
