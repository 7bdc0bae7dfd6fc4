//! GATv2 (Brody, Alon and Yahav, ICLR 2022).

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::ModelConfig;
use super::attention::{Attention, Heads};
use super::edge_input::EdgeInput;
use super::stack::{After, Layer, Stack};
use crate::{Activation, Init, ParamId, ParamsBuilder, Tape, Var};

/// Multi-head attention whose scores come after the nonlinearity (eq. 7): `aᵀ LeakyReLU(W_s h_s + W_d h_d)`, so that
/// the ranking of sources depends on the destination. Heads are side by side in hidden layers, their mean in the last;
/// dropout on layer inputs and on attention coefficients, ELU between layers. With edge features `W_e e` is a third term.
pub(super) struct GatV2 {
    source: ParamId,
    destination: ParamId,
    scores: ParamId,
    bias: ParamId,
    edges: Option<EdgeInput>,
    input: usize,
    heads: Heads,
    attention: Attention,
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Result<Stack<GatV2>> {
    Heads::check(config)?;
    let layers = (0..config.layers).map(|i| GatV2::new(config, i, params)).collect();
    Ok(Stack::new(config, layers))
}

impl GatV2 {
    fn new(config: &ModelConfig, i: usize, params: &mut ParamsBuilder) -> Self {
        let (input, output) = config.dims(i);
        let heads = Heads::of(config, i);
        let mut add =
            |part: &str, rows, cols, init| params.add(format!("layer{i}.{part}"), rows, cols, init);
        Self {
            source: add("source", input, heads.cols(), Init::XavierUniform),
            destination: add("destination", input, heads.cols(), Init::XavierUniform),
            scores: add("attn", heads.count, heads.width, Init::XavierUniform),
            bias: add("bias", 1, output, Init::Zeros),
            edges: EdgeInput::new(config, i, heads.cols(), params),
            input,
            heads,
            attention: Attention::new(config),
        }
    }
}

impl Layer for GatV2 {
    const NAME: &'static str = "gatv2";
    const ACTIVATION: Activation = Activation::Elu;
    const DROPS_INPUT: bool = true;

    fn input(&self) -> usize {
        self.input
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let block = self.attention.edges(block);
        let of_source = tape.linear(x, self.source, None, Activation::None);
        let of_destination = if tape.is_sparse(x) {
            let all = tape.linear(x, self.destination, None, Activation::None);
            tape.head_rows(all, block.num_dst())
        } else {
            let own = tape.head_rows(x, block.num_dst());
            tape.linear(own, self.destination, None, Activation::None)
        };
        let joined = match &self.edges {
            None => {
                let rows = (of_source, of_destination);
                tape.attend_dynamic(block, rows, self.scores, self.attention.constants())
            }
            Some(edges) => {
                let sums = tape.sddmm_add(block, of_source, of_destination);
                let of_edge = edges.of(tape, block);
                let sums = tape.add(sums, of_edge);
                let sums = tape.activation(sums, Activation::LeakyRelu(self.attention.slope()));
                let scores = tape.head_scores(sums, self.scores);
                let attention = tape.edge_softmax(block, scores);
                let attention = tape.edge_dropout(block, attention, self.attention.dropout());
                tape.spmm_weighted(block, of_source, attention)
            }
        };
        let y = self.heads.finish(tape, joined, self.bias, after.activation);
        after.drop(tape, block, y)
    }
}
