//! GIN (Xu et al., ICLR 2019).

use std::sync::Arc;

use gnarl_graph::blocks::Block;

use super::edge_input::EdgeInput;
use super::relation_layer::{Aggregation, RelationLayer};
use super::stack::{After, Layer, Stack, StackStages, StagedLayer};
use super::stages::{Incoming, Outgoing, Pass, Stages};
use super::{ModelConfig, transform_first};
use crate::ops::pass::{Operator, Passing, whole_sum_weights};
use crate::{Activation, Init, ParamId, ParamsBuilder, Reduce, Tape, Var};

/// `h' = MLP((1 + ε) h + Σ_u h_u)`, eq. 4.1, with learnable ε and a two-layer MLP as wide as the
/// layer's output. In a sampled block the sum stands for the whole neighborhood: it is scaled by
/// whole-graph degree over sampled edges. With edge features a neighbor's message is
/// `ReLU(h_u + W_e e + b)` (GINE: Hu et al., ICLR 2020, §5.1).
pub(super) struct Gin {
    eps: ParamId,
    inner: (ParamId, ParamId),
    outer: (ParamId, ParamId),
    edges: Option<EdgeInput>,
    /// Width of the input and of the MLP's hidden layer.
    dims: (usize, usize),
}

pub(super) fn build(config: &ModelConfig, params: &mut ParamsBuilder) -> Stack<Gin> {
    let mut linear = |name: String, input, output| {
        let weight = params.add(format!("{name}.weight"), input, output, Init::XavierUniform);
        (weight, params.add(format!("{name}.bias"), 1, output, Init::Zeros))
    };
    let mlp = |i| {
        let (input, output) = config.dims(i);
        let inner = linear(format!("layer{i}.mlp0"), input, config.hidden);
        (inner, linear(format!("layer{i}.mlp1"), config.hidden, output))
    };
    let mlps: Vec<_> = (0..config.layers).map(mlp).collect();
    let layer = |(i, (inner, outer))| {
        let eps = params.add(format!("layer{i}.eps"), 1, 1, Init::Zeros);
        let (input, hidden) = (config.dims(i).0, config.hidden);
        let edges = EdgeInput::new(config, i, input, params);
        let edges = edges.map(|edges| edges.with_bias(i, input, params));
        Gin { eps, inner, outer, edges, dims: (input, hidden) }
    };
    Stack::new(config, mlps.into_iter().enumerate().map(layer).collect())
}

/// `(1 + ε) x` of the destinations plus the sum over neighbors.
fn sum_with_self<'b>(tape: &mut Tape<'b>, block: &'b Block, x: Var, eps: ParamId) -> Var {
    let neighbors = tape.pass(&Arc::new(Passing::new(Operator::Sum, block)), x);
    let own = tape.head_rows(x, block.num_dst());
    add_own(tape, own, neighbors, eps)
}

/// The same where the feature of an edge is added to its source before a ReLU.
fn sum_of_edges<'b>(
    tape: &mut Tape<'b>,
    block: &'b Block,
    (x, edges): (Var, &EdgeInput),
    eps: ParamId,
) -> Var {
    let x = if tape.is_sparse(x) { tape.densify(x) } else { x };
    let of_source = tape.gather_rows(x, block.indices());
    let of_edge = edges.of(tape, block);
    let messages = tape.add(of_source, of_edge);
    let messages = tape.activation(messages, Activation::Relu);
    let neighbors = tape.sum_edges(block, messages, whole_sum_weights(block));
    let own = tape.head_rows(x, block.num_dst());
    add_own(tape, own, neighbors, eps)
}

fn add_own(tape: &mut Tape<'_>, own: Var, neighbors: Var, eps: ParamId) -> Var {
    let eps = tape.param(eps);
    let extra = tape.scale_by(own, eps);
    let own = tape.add(own, extra);
    tape.add(own, neighbors)
}

impl Layer for Gin {
    const NAME: &'static str = "gin";

    fn input(&self) -> usize {
        self.dims.0
    }

    fn apply<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, x: Var, after: After) -> Var {
        let (inner, outer) = (self.inner, self.outer);
        let middle = if let Some(edges) = &self.edges {
            let mixed = sum_of_edges(tape, block, (x, edges), self.eps);
            tape.linear(mixed, inner.0, Some(inner.1), Activation::Relu)
        } else if transform_first(tape, block, x, self.dims.0, self.dims.1) {
            let x = tape.linear(x, inner.0, None, Activation::None);
            let mixed = sum_with_self(tape, block, x, self.eps);
            let bias = tape.param(inner.1);
            let mixed = tape.add_row(mixed, bias);
            tape.activation(mixed, Activation::Relu)
        } else {
            let mixed = sum_with_self(tape, block, x, self.eps);
            tape.linear(mixed, inner.0, Some(inner.1), Activation::Relu)
        };
        let y = tape.linear(middle, outer.0, Some(outer.1), after.activation);
        after.drop(tape, block, y)
    }

    fn stages(stack: &Stack<Self>, sparse: bool) -> Option<Box<dyn Stages + '_>> {
        let of_nodes = stack.layers.iter().all(|layer| layer.edges.is_none());
        of_nodes.then(|| Box::new(StackStages { stack, sparse }) as Box<dyn Stages>)
    }
}

impl RelationLayer for Stack<Gin> {
    fn aggregation(&self) -> Option<Aggregation<'_>> {
        Some(Aggregation::Reduce(Reduce::Sum))
    }

    fn widths(&self) -> (Option<usize>, usize) {
        let (input, hidden) = self.layers[0].dims;
        (Some(input), hidden)
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        tape.linear(x, self.layers[0].inner.0, None, Activation::None)
    }

    fn receive(&self, tape: &mut Tape<'_>, x: Var, aggregate: Var, mapped: bool) -> Var {
        let kept = Some(if mapped { self.send(tape, x) } else { x });
        let rows = Incoming { passed: aggregate, kept };
        self.layers[0].receive(tape, rows, mapped, Activation::None)
    }
}

impl StagedLayer for Gin {
    fn dims(&self) -> (usize, usize) {
        self.dims
    }

    fn send(&self, tape: &mut Tape<'_>, x: Var, narrow: bool) -> Outgoing {
        if !narrow {
            return Outgoing { sent: x, kept: Some(x) };
        }
        let sent = tape.linear(x, self.inner.0, None, Activation::None);
        tape.release(x);
        Outgoing { sent, kept: Some(sent) }
    }

    fn pass(&self) -> Pass {
        Pass::once(Operator::Sum)
    }

    fn receive(&self, tape: &mut Tape<'_>, rows: Incoming, narrow: bool, act: Activation) -> Var {
        let own = rows.kept.unwrap_or(rows.passed);
        let mixed = add_own(tape, own, rows.passed, self.eps);
        let middle = if narrow {
            let bias = tape.param(self.inner.1);
            let mixed = tape.add_row_last(mixed, bias);
            tape.activation_last(mixed, Activation::Relu)
        } else {
            let middle = tape.linear(mixed, self.inner.0, Some(self.inner.1), Activation::Relu);
            tape.release(mixed);
            middle
        };
        let y = tape.linear(middle, self.outer.0, Some(self.outer.1), act);
        tape.release(middle);
        y
    }
}
