//! Feature slices on several ranks give the outputs and gradients of whole graphs.

mod heterogeneous;
mod homogeneous;
mod ranks;

use gnarl_common::rng::Key;
use gnarl_nn::{Params, Tape, Tensor, Var};

/// Numbers of ranks: with five, some have no column of narrow layers, and no node of some types.
const RANKS: [usize; 4] = [1, 2, 3, 5];

/// An output, and the gradients of a loss of it.
#[derive(Debug, Default)]
struct Outcome {
    output: Vec<f32>,
    /// Of the parameters, which ranks add up.
    params: Vec<f32>,
    /// Of the inputs, by type of nodes.
    inputs: Vec<Vec<f32>>,
}

fn random(key: u64, rows: usize, cols: usize) -> Tensor {
    let values = (0..(rows * cols) as u64).map(|i| Key::new(key).normal(i) as f32);
    Tensor::from_vec(rows, cols, values.collect())
}

/// The outcome for the rows from `first` on of the output `y`, under a fixed random loss.
fn outcome(
    tape: &mut Tape<'_>,
    params: &Params,
    (y, first): (Var, usize),
    leaves: &[Option<Var>],
) -> Outcome {
    let output = tape.value(y).data().to_vec();
    let (rows, cols) = tape.shape(y);
    let left = random(4, 1, first + rows).data()[first..].to_vec();
    let (left, right) = (Tensor::from_vec(1, rows, left), random(5, cols, 1));
    let (left, right) = (tape.dense(left), tape.dense(right));
    let row = tape.matmul(left, y);
    let loss = tape.matmul(row, right);
    let mut grads = vec![0.0; params.len()];
    tape.backward(loss, &mut grads).unwrap();
    let grad = |leaf: &Option<Var>| {
        let grad = leaf.and_then(|leaf| tape.grad(leaf));
        grad.map_or_else(Vec::new, |grad| grad.data().to_vec())
    };
    Outcome { output, params: grads, inputs: leaves.iter().map(grad).collect() }
}

/// Asserts that the outcomes of all ranks are that of the whole graph, to rounding.
fn assert_same(label: &str, whole: &Outcome, ranks: Vec<Outcome>) {
    let mut all = Outcome { params: vec![0.0; whole.params.len()], ..Outcome::default() };
    all.inputs = vec![Vec::new(); whole.inputs.len()];
    for rank in ranks {
        all.output.extend(rank.output);
        all.params.iter_mut().zip(rank.params).for_each(|(sum, term)| *sum += term);
        all.inputs.iter_mut().zip(rank.inputs).for_each(|(all, own)| all.extend(own));
    }
    assert_close(label, "output", &all.output, &whole.output);
    assert_close(label, "gradients", &all.params, &whole.params);
    for (found, expected) in all.inputs.iter().zip(&whole.inputs) {
        assert_close(label, "gradients of inputs", found, expected);
    }
}

/// Within 1e-5 of the largest value expected, or of 1.
fn assert_close(label: &str, what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{label}: {what}");
    let scale = expected.iter().fold(1f32, |scale, value| scale.max(value.abs()));
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart <= 1e-5 * scale, "{label}: {what} differ by {apart}, of {scale}");
}
