//! Features of edges as an input of layers (DistDGLv2, eq. 1).

use gnarl_graph::blocks::Block;

use super::ModelConfig;
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Tensor, Var};

/// The linear map of a layer's edge features.
pub(super) struct EdgeInput {
    weight: ParamId,
    bias: Option<ParamId>,
    width: usize,
}

impl EdgeInput {
    /// That of layer `i` to `cols` values an edge; none where the model reads no edge features.
    pub fn new(
        config: &ModelConfig,
        i: usize,
        cols: usize,
        params: &mut ParamsBuilder,
    ) -> Option<Self> {
        let width = config.edge_dim;
        config.edge_features.then(|| {
            let name = format!("layer{i}.edge");
            Self { weight: params.add(name, width, cols, Init::XavierUniform), bias: None, width }
        })
    }

    /// The same with a bias.
    pub fn with_bias(self, i: usize, cols: usize, params: &mut ParamsBuilder) -> Self {
        let bias = params.add(format!("layer{i}.edge_bias"), 1, cols, Init::Zeros);
        Self { bias: Some(bias), ..self }
    }

    /// The mapped features of the edges of `block`: a row an edge.
    ///
    /// # Panics
    /// If edges have no features, or of another width: what a model is given is checked before.
    pub fn of(&self, tape: &mut Tape<'_>, block: &Block) -> Var {
        let features = block.edge_features().expect("a block with edge features");
        assert_eq!(features.width, self.width, "width of edge features");
        let rows = Tensor::from_vec(block.num_edges(), features.width, features.values.clone());
        let rows = tape.dense(rows);
        tape.linear(rows, self.weight, self.bias, Activation::None)
    }
}
