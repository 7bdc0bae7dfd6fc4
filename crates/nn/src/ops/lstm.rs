//! An LSTM over each destination's neighbors (Hochreiter & Schmidhuber, 1997), as GraphSAGE's
//! LSTM aggregator.

use gnarl_graph::blocks::Block;
use rayon::prelude::*;

use crate::kernel::gemm::{Heads, View};
use crate::kernel::math::{sigmoid, tanh};
use crate::kernel::precision::Precision;
use crate::kernel::products::{a_b, a_bt, add_at_b};
use crate::{ParamId, Tape, Tensor, Var};

/// Rows one task of the pointwise part works on.
const ROWS: usize = 128;

/// One position in the neighbor lists: the destinations that have that many neighbors.
struct Step {
    /// Source read by each of them.
    sources: Vec<u32>,
    /// Gates after their nonlinearities, `[i | f | g | o]`, a row a destination.
    gates: Tensor,
    /// Cell states.
    cells: Tensor,
    /// Hidden states.
    hidden: Tensor,
}

/// Destinations by falling number of neighbors (so that those still reading are a prefix), and
/// the sources read at each position.
fn schedule(block: &Block) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut order: Vec<u32> = (0..block.num_dst() as u32).collect();
    let degree = |d: u32| block.sources(d as usize).len();
    order.sort_by_key(|&d| std::cmp::Reverse(degree(d)));
    let longest = order.first().map_or(0, |&d| degree(d));
    let steps = (0..longest)
        .map(|t| {
            let reading = order.partition_point(|&d| degree(d) > t);
            order[..reading].iter().map(|&d| block.sources(d as usize)[t]).collect()
        })
        .collect();
    (order, steps)
}

impl<'b> Tape<'b> {
    /// The last hidden state of an LSTM that reads each destination's sources in stored order,
    /// from zero states; zeros for destinations without neighbors. Edge weights play no part.
    ///
    /// `z` holds `x · W_input + bias` of every source, `[i | f | g | o]` of `4 × width` columns;
    /// `recurrent` is `width × 4 width`. The result is `num_dst × width`.
    ///
    /// # Panics
    /// If the shapes disagree.
    pub fn lstm_neighbors(&mut self, block: &'b Block, z: Var, recurrent: ParamId) -> Var {
        let params = self.params();
        let width = params.shape(recurrent).0;
        assert_eq!(params.shape(recurrent), (width, 4 * width), "lstm: recurrent weight");
        assert_eq!(self.shape(z), (block.num_src(), 4 * width), "lstm: input of every source");
        let weight = params.get(recurrent);
        let (order, sources) = schedule(block);
        let mut steps: Vec<Step> = Vec::with_capacity(sources.len());
        for sources in sources {
            let step = forward_step(self.value(z), sources, steps.last(), weight, width);
            steps.push(step);
        }
        let mut y = Tensor::zeros(block.num_dst(), width);
        for (position, &d) in order.iter().enumerate() {
            let degree = block.sources(d as usize).len();
            if degree > 0 {
                y.data_mut()[d as usize * width..][..width]
                    .copy_from_slice(steps[degree - 1].hidden.row(position));
            }
        }
        self.push(y, true, move |grads, grad| {
            let to_z = grads.wants(z).then(|| Tensor::zeros(block.num_src(), 4 * width));
            let to_z = backward(block, &order, &steps, &grad, weight, to_z, |depth, h, dg| {
                let (h, dg) = (View::rows(h, width), View::rows(dg, 4 * width));
                let to_weight = grads.param(recurrent);
                add_at_b(PRECISION, to_weight, recurrent_product(width), depth, h, dg);
            });
            if let Some(to_z) = to_z {
                grads.add(z, to_z);
            }
        })
    }
}

/// Precision of the recurrence, whose rounding would add up from step to step.
const PRECISION: Precision = Precision::F32;

/// The shape of hidden states times the recurrent weight.
fn recurrent_product(width: usize) -> Heads {
    Heads { heads: 1, k: width, n: 4 * width }
}

fn forward_step(
    z: &Tensor,
    sources: Vec<u32>,
    previous: Option<&Step>,
    weight: &[f32],
    width: usize,
) -> Step {
    let rows = sources.len();
    let mut gates = Tensor::zeros(rows, 4 * width);
    let (mut cells, mut hidden) = (Tensor::scratch(rows, width), Tensor::scratch(rows, width));
    if let Some(previous) = previous {
        let (h, w) = (View::rows(previous.hidden.data(), width), View::rows(weight, 4 * width));
        a_b(PRECISION, gates.data_mut(), recurrent_product(width), h, w, |_| {});
    }
    let chunks = gates.data_mut().par_chunks_mut(ROWS * 4 * width);
    let states = cells.data_mut().par_chunks_mut(ROWS * width);
    let outputs = hidden.data_mut().par_chunks_mut(ROWS * width);
    chunks.zip(states).zip(outputs).enumerate().for_each(|(i, ((gates, cells), hidden))| {
        let rows = gates.chunks_exact_mut(4 * width).zip(cells.chunks_exact_mut(width));
        for (k, ((gates, cells), hidden)) in rows.zip(hidden.chunks_exact_mut(width)).enumerate() {
            let row = i * ROWS + k;
            let input = z.row(sources[row] as usize);
            gates.iter_mut().zip(input).for_each(|(g, z)| *g += z);
            let before = previous.map(|p| p.cells.row(row));
            for c in 0..width {
                let (input, forget) = (sigmoid(gates[c]), sigmoid(gates[width + c]));
                let (candidate, output) =
                    (tanh(gates[2 * width + c]), sigmoid(gates[3 * width + c]));
                cells[c] = forget * before.map_or(0.0, |b| b[c]) + input * candidate;
                hidden[c] = output * tanh(cells[c]);
                gates[c] = input;
                gates[width + c] = forget;
                gates[2 * width + c] = candidate;
                gates[3 * width + c] = output;
            }
        }
    });
    Step { sources, gates, cells, hidden }
}

/// Backpropagates from the last step to the first. `to_weight` receives, for every step but the
/// first, its rows, the hidden states before it and the gradient of its gates.
fn backward(
    block: &Block,
    order: &[u32],
    steps: &[Step],
    grad: &Tensor,
    weight: &[f32],
    mut to_z: Option<Tensor>,
    mut to_weight: impl FnMut(usize, &[f32], &[f32]),
) -> Option<Tensor> {
    let width = grad.cols();
    let mut to_hidden = Tensor::zeros(0, width);
    let mut to_cells = Tensor::zeros(0, width);
    for (t, step) in steps.iter().enumerate().rev() {
        let rows = step.sources.len();
        let (mut dh, mut dc) = (Tensor::zeros(rows, width), Tensor::zeros(rows, width));
        dh.data_mut()[..to_hidden.data().len()].copy_from_slice(to_hidden.data());
        dc.data_mut()[..to_cells.data().len()].copy_from_slice(to_cells.data());
        for row in to_hidden.rows()..rows {
            let d = order[row] as usize;
            debug_assert_eq!(block.sources(d).len(), t + 1);
            dh.data_mut()[row * width..][..width].copy_from_slice(grad.row(d));
        }
        let before = t.checked_sub(1).map(|t| &steps[t]);
        let to_gates = gates_backward(step, before, &dh, &mut dc);
        if let Some(to_z) = &mut to_z {
            let out = to_z.data_mut();
            for (row, &s) in step.sources.iter().enumerate() {
                let out = &mut out[s as usize * 4 * width..][..4 * width];
                out.iter_mut().zip(to_gates.row(row)).for_each(|(o, g)| *o += g);
            }
        }
        if let Some(before) = before {
            to_weight(rows, before.hidden.data(), to_gates.data());
            let mut back = Tensor::scratch(rows, width);
            let (dg, w) = (View::rows(to_gates.data(), 4 * width), View::rows(weight, 4 * width));
            a_bt(PRECISION, back.data_mut(), recurrent_product(width), dg, w);
            to_hidden = back;
            to_cells = dc;
        }
    }
    to_z
}

/// The gradient of one step's gates before their nonlinearities; updates `dc` from the gradient of
/// the step's cells that comes from later steps to that of the cells before.
fn gates_backward(step: &Step, before: Option<&Step>, dh: &Tensor, dc: &mut Tensor) -> Tensor {
    let width = dh.cols();
    let mut to_gates = Tensor::scratch(dh.rows(), 4 * width);
    let chunks = to_gates.data_mut().par_chunks_mut(ROWS * 4 * width);
    let states = dc.data_mut().par_chunks_mut(ROWS * width);
    chunks.zip(states).enumerate().for_each(|(i, (out, dc))| {
        let rows = out.chunks_exact_mut(4 * width).zip(dc.chunks_exact_mut(width));
        for (k, (out, dc)) in rows.enumerate() {
            let row = i * ROWS + k;
            let gates = step.gates.row(row);
            let cells = step.cells.row(row);
            let dh = dh.row(row);
            let before = before.map(|b| b.cells.row(row));
            for c in 0..width {
                let [input, forget, candidate, output] =
                    [0, 1, 2, 3].map(|gate| gates[gate * width + c]);
                let squashed = tanh(cells[c]);
                let d = dc[c] + dh[c] * output * (1.0 - squashed * squashed);
                out[c] = d * candidate * input * (1.0 - input);
                out[width + c] = d * before.map_or(0.0, |b| b[c]) * forget * (1.0 - forget);
                out[2 * width + c] = d * input * (1.0 - candidate * candidate);
                out[3 * width + c] = dh[c] * squashed * output * (1.0 - output);
                dc[c] = d * forget;
            }
        }
    });
    to_gates
}
