//! R-GCN whose dense layers all come before messages pass (NeutronTP, Ai et al., PVLDB 2024, section 4.1).
//!
//! Each node type has dense layers of its own, whose output `H⁰` is as wide as the model's. Then
//! `model.propagations` times `H' = (1 - α) P H + α H⁰`, α being `model.teleport` and `(P H)_i =
//! a_i,0 h_i + Σ_r a_i,r · mean of h_j over the neighbors j of i by r`. The parts `a_i` are a
//! softmax of one learned number per edge type that node i receives messages over, and one for
//! itself: rows of P add up to 1, whatever the number of edge types of a node. They are computed
//! once for all propagations.

use gnarl_common::error::Result;
use gnarl_graph::blocks::Schema;

use super::input::Input;
use super::slices::{HeteroSlices, WholeRelations};
use super::{HeteroModel, Source};
use crate::models::ModelConfig;
use crate::models::stack::check_input;
use crate::models::teleport::mix;
use crate::{Activation, Init, Lists, ParamId, ParamsBuilder, RelBlock, Span, Tape, Var};

const NAME: &str = "decoupled rgcn";

pub(super) struct DecoupledRgcn {
    config: ModelConfig,
    input: Input,
    /// Weights and biases of each dense layer, those of node types one below the other.
    dense: Vec<(ParamId, ParamId)>,
    /// One number per edge type, then one for self-loops.
    scores: ParamId,
}

impl DecoupledRgcn {
    pub fn new(
        config: &ModelConfig,
        schema: &Schema,
        sources: &[Source],
        params: &mut ParamsBuilder,
    ) -> Self {
        let input = Input::new(schema, sources, config.hidden, Activation::Relu, params);
        let types = schema.node_types().len();
        let layer = |i: usize| {
            let (input, output) = config.dims(i);
            let glorot = Init::Uniform((6.0 / (input + output) as f32).sqrt());
            let weight = params.add(format!("layer{i}.weight"), types * input, output, glorot);
            (weight, params.add(format!("layer{i}.bias"), types, output, Init::Zeros))
        };
        let dense = (0..config.layers).map(layer).collect();
        let scores = params.add("scores", schema.edge_types().len() + 1, 1, Init::Zeros);
        Self { config: config.clone(), input, dense, scores }
    }

    /// `H⁰` of the nodes with these ids and the types of `spans`.
    fn rows<'b>(&self, tape: &mut Tape<'b>, (ids, spans): (&'b [u64], &'b [Span]), x: Var) -> Var {
        let mut x = tape.dropout(x, self.config.input_dropout.unwrap_or(0.0), ids);
        for (index, &(weight, bias)) in self.dense.iter().enumerate() {
            let (weight, bias) = (tape.param(weight), tape.param(bias));
            x = tape.span_linear(x, weight, spans);
            x = tape.span_bias(x, bias, spans);
            if index + 1 < self.dense.len() {
                x = tape.activation(x, self.config.activation.unwrap_or(Activation::Relu));
                x = tape.dropout(x, self.config.dropout, ids);
            }
        }
        x
    }

    /// Returns whether `H⁰` is carried along with the previous hop's output.
    fn carries_first(&self) -> bool {
        self.config.teleport > 0.0
    }
}

impl HeteroModel for DecoupledRgcn {
    fn name(&self) -> &str {
        NAME
    }

    fn num_layers(&self) -> usize {
        self.config.blocks()
    }

    fn input<'b>(
        &self,
        tape: &mut Tape<'b>,
        spans: &'b [Span],
        rows: &[Option<Var>],
    ) -> Result<Var> {
        self.input.apply(tape, spans, rows)
    }

    /// The first layer includes the dense ones. All but the last output `H` and, where a later one
    /// needs it, `H⁰` beside it.
    fn layer<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        block: &'b RelBlock,
        x: Var,
    ) -> Result<Var> {
        let (carries, width) = (self.carries_first(), self.config.out_dim);
        let wanted = match index {
            0 => self.config.hidden,
            _ if carries => 2 * width,
            _ => width,
        };
        check_input(NAME, tape, index, block.block(), x, wanted)?;
        let (x, first) = match index {
            0 => {
                let rows = self.rows(tape, (block.block().ids(), block.sources()), x);
                (rows, rows)
            }
            _ if carries => (tape.slice_cols(x, 0, width), tape.slice_cols(x, width, width)),
            _ => (x, x),
        };
        let weights = block.mixing().weights(tape, self.scores);
        let passed = tape.spmm_weighted(block.mixing().edges(), x, weights);
        let first = tape.head_rows(first, block.num_dst());
        let y = mix(tape, passed, first, self.config.teleport);
        let last = index + 1 == self.num_layers();
        Ok(if carries && !last { tape.concat_cols(&[y, first]) } else { y })
    }

    /// Two exchanges whatever the number of propagations. Edge weights depend on no features, and
    /// every rank computes all of them.
    fn forward_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        rows: &[Option<Var>],
    ) -> Result<Var> {
        let own = slices.graph.own();
        let x = self.input.apply(tape, own, rows)?;
        let rows = self.rows(tape, (slices.ids, own), x);
        let mixing = slices.graph.block().mixing();
        let weights = mixing.weights(tape, self.scores);
        let first = tape.split(slices.nodes, rows)?;
        let mut x = first;
        for _ in 0..self.num_layers() {
            let passed = tape.spmm_weighted(mixing.edges(), x, weights);
            if x != first {
                tape.release(x);
            }
            x = mix(tape, passed, first, self.config.teleport);
        }
        tape.gather(slices.nodes, x, self.config.out_dim)
    }

    fn prepare_sliced(&self, graph: &WholeRelations) {
        graph.block().mixing().edges().transpose();
    }
}
