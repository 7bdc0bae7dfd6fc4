//! R-GCN (Schlichtkrull et al., ESWC 2018).

use gnarl_common::error::{Error, Result};
use gnarl_graph::blocks::Schema;

use super::Source;
use super::slices::{HeteroSlices, WholeRelations};
use super::stack::{HeteroLayer, HeteroStack};
use crate::models::stack::After;
use crate::models::{Decomposition, ModelConfig};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, RelBlock, Tape, Tensor, Var};

/// `h_i = W_0 x_i + Σ_r W_r · mean of x_j over the neighbors j of i by r` (eq. 2, with c_{i,r} the
/// number of neighbors, or the weighted mean). In a sample the mean is over the sampled.
pub(super) struct Rgcn {
    pub(super) weights: Weights,
    /// A matrix, or with [`Weights::OneHot`] the coefficients of the bases.
    own: ParamId,
    bias: ParamId,
    /// Input and output width of the layer.
    pub(super) dims: (usize, usize),
    /// Number of bases, if there are any.
    pub(super) bases: usize,
}

/// The parameters of the edge types' matrices.
pub(super) enum Weights {
    /// `relations·in × out`, one below the other.
    Each(ParamId),
    /// Coefficients `relations × bases` of bases `bases × in·out`.
    Bases(ParamId, ParamId),
    /// Coefficients `relations × bases` of bases that are slices of each node's embedding.
    OneHot(ParamId),
    /// `relations·in/blocks × out`: in block `b` of the diagonal, columns `b·out/blocks..`.
    Blocks(ParamId, usize),
}

pub(super) fn build(
    config: &ModelConfig,
    schema: &Schema,
    sources: &[Source],
    params: &mut ParamsBuilder,
) -> Result<HeteroStack<Rgcn>> {
    let relations = schema.edge_types().len();
    HeteroStack::new(config, (schema, sources), params, |i, params| {
        Rgcn::new(config, relations, i, params)
    })
}

impl Rgcn {
    pub(super) fn new(
        config: &ModelConfig,
        relations: usize,
        i: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let (input, output) = config.dims(i);
        let glorot = Init::Uniform((6.0 / (input + output) as f32).sqrt());
        let bases = config.bases;
        let mut add =
            |part: &str, rows, cols, init| params.add(format!("layer{i}.{part}"), rows, cols, init);
        if i == 0 && config.one_hot {
            // Relations and self loops share the bases, as in the paper.
            let glorot = Init::Uniform((6.0 / (relations + 1 + bases) as f32).sqrt());
            let weights = Weights::OneHot(add("coefficients", relations, bases, glorot));
            let own = add("self.coefficients", 1, bases, glorot);
            let bias = add("bias", 1, output, Init::Zeros);
            return Ok(Self { weights, own, bias, dims: (input, output), bases });
        }
        let weights = match config.decomposition {
            Decomposition::None => Weights::Each(add("weight", relations * input, output, glorot)),
            Decomposition::Basis => {
                // Sums of bases then vary as much as the bases.
                let deviation = Init::Normal((1.0 / bases as f32).sqrt());
                let coefficients = add("coefficients", relations, bases, deviation);
                Weights::Bases(coefficients, add("bases", bases, input * output, glorot))
            }
            Decomposition::Block => {
                let blocks = blocks_of(config, i)?;
                let fan = Init::Uniform((6.0 * blocks as f32 / (input + output) as f32).sqrt());
                Weights::Blocks(add("blocks", relations * input / blocks, output, fan), blocks)
            }
        };
        let own = add("self.weight", input, output, Init::XavierUniform);
        let bias = add("bias", 1, output, Init::Zeros);
        Ok(Self { weights, own, bias, dims: (input, output), bases })
    }

    /// The self-loop term of each node.
    pub(super) fn own(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        if let Weights::OneHot(_) = self.weights {
            let coefficients = tape.param(self.own);
            let matrix = self.select_bases(tape, coefficients);
            let y = tape.matmul(x, matrix);
            let bias = tape.param(self.bias);
            return tape.add_row(y, bias);
        }
        tape.linear(x, self.own, Some(self.bias), Activation::None)
    }

    /// Matrices `in × out`, one below the other, that sum the slices of an embedding, one per
    /// basis, with the weights of each row of `coefficients`.
    fn select_bases(&self, tape: &mut Tape<'_>, coefficients: Var) -> Var {
        let (input, output) = self.dims;
        let values = input * output;
        let mut parts = Tensor::zeros(self.bases, values);
        for basis in 0..self.bases {
            let part = &mut parts.data_mut()[basis * values..][..values];
            for column in 0..output {
                part[(basis * output + column) * output + column] = 1.0;
            }
        }
        let parts = tape.dense(parts);
        let sums = tape.matmul(coefficients, parts);
        let rows = tape.shape(sums).0 * input;
        tape.reshape(sums, rows, output)
    }

    /// The matrices of all edge types, one below the other, and the number of their blocks.
    pub(super) fn matrices(&self, tape: &mut Tape<'_>) -> (Var, usize) {
        match self.weights {
            Weights::Each(weights) => (tape.param(weights), 1),
            Weights::Blocks(weights, blocks) => (tape.param(weights), blocks),
            Weights::OneHot(coefficients) => {
                let coefficients = tape.param(coefficients);
                (self.select_bases(tape, coefficients), 1)
            }
            Weights::Bases(coefficients, bases) => {
                let (coefficients, bases) = (tape.param(coefficients), tape.param(bases));
                let sums = tape.matmul(coefficients, bases);
                let ((relations, values), output) = (tape.shape(sums), self.dims.1);
                (tape.reshape(sums, relations * values / output, output), 1)
            }
        }
    }
}

/// Number of blocks of layer `i`: 1 in the last layer if its width, the number of classes, is not a
/// multiple.
fn blocks_of(config: &ModelConfig, i: usize) -> Result<usize> {
    let (input, output) = config.dims(i);
    let blocks = config.bases;
    if !input.is_multiple_of(blocks) {
        return Err(Error::usage(format!(
            "invalid model.hidden '{}': expected a multiple of model.bases = {blocks}",
            config.hidden
        ))
        .hint("model.bases is the number of diagonal blocks"));
    }
    Ok(if output.is_multiple_of(blocks) { blocks } else { 1 })
}

impl HeteroLayer for Rgcn {
    const NAME: &'static str = "rgcn";

    fn apply<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b RelBlock,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let reduce = if block.weights().is_some() { Reduce::Sum } else { Reduce::Mean };
        let heard = tape.spmm(block.groups(), x, reduce, block.weights().cloned());
        let (weights, blocks) = self.matrices(tape);
        let messages = tape.span_linear_heads(heard, weights, block.spans(), blocks);
        let sum = tape.spmm(block.destinations(), messages, Reduce::Sum, None);
        let own = tape.head_rows(x, block.num_dst());
        let own = self.own(tape, own);
        let y = tape.add(own, sum);
        let y = tape.activation(y, after.activation);
        Ok(after.drop(tape, block.block(), y))
    }

    fn apply_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        after: After,
    ) -> Result<Var> {
        let heard = self.heard_sliced(tape, slices, x)?;
        let own = self.own(tape, x);
        let y = tape.add(own, heard);
        let y = tape.activation(y, after.activation);
        Ok(tape.dropout(y, after.dropout, slices.ids))
    }

    fn prepare(&self, graph: &WholeRelations) {
        Rgcn::prepare(self, graph);
    }
}
