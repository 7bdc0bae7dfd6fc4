//! Forward, loss and backward of one batch.

use gnarl_graph::rng::Key;
use gnarl_graph::{Labels, Result};
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Var};

use super::Prepared;
use crate::learner::BatchLoss;
use crate::pipeline::Input;

/// Adds the gradient of the summed loss of a batch's targets to `grads`. Dividing by the weight
/// of the whole step is left to the caller, so that parts of a step add up.
///
/// `key` stands for the run's seed and the step: together with layer and node it decides what
/// dropout drops.
///
/// # Errors
/// If shapes disagree.
pub(super) fn batch_gradient(
    model: &dyn Model,
    params: &Params,
    labels: &Labels,
    prepared: &Prepared,
    key: Key,
    grads: &mut [f32],
) -> Result<BatchLoss> {
    let mut tape = Tape::new(params, Mode::Train { key });
    let x = input(&mut tape, &prepared.input);
    let logits = model.forward(&mut tape, &prepared.batch.blocks, x)?;
    let weights = prepared.batch.target_weights.as_deref();
    let rows = &prepared.batch.targets;
    let loss = loss(&mut tape, logits, (rows, &prepared.targets), labels, weights);
    let sum = f64::from(tape.value(loss).data()[0]);
    tape.backward(loss, grads)?;
    Ok(BatchLoss { sum, weight: rows.len() as f64 })
}

/// The summed loss of `logits` in some rows, which are those of some nodes.
pub(crate) fn loss(
    tape: &mut Tape<'_>,
    logits: Var,
    (rows, nodes): (&[u32], &[u32]),
    labels: &Labels,
    weights: Option<&[f32]>,
) -> Var {
    match labels {
        Labels::Single { classes, .. } => {
            let classes: Vec<u32> =
                nodes.iter().map(|&v| classes[v as usize].max(0) as u32).collect();
            tape.cross_entropy(logits, rows, &classes, weights, 1.0)
        }
        Labels::Multi { values, tasks } => {
            let row = |&v: &u32| &values[v as usize * tasks..(v as usize + 1) * tasks];
            let targets: Vec<f32> = nodes.iter().flat_map(row).map(|&b| f32::from(b)).collect();
            tape.bce_with_logits(logits, rows, &targets, weights, 1.0)
        }
    }
}

/// Puts a batch's input on the tape.
pub(crate) fn input(tape: &mut Tape<'_>, input: &Input) -> Var {
    match input {
        Input::Dense(rows) => tape.dense(rows.clone()),
        Input::Sparse(rows) => tape.sparse(rows.clone()),
    }
}
