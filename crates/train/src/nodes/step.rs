//! Forward, loss and backward of one batch.

use gnarl_graph::rng::Key;
use gnarl_graph::{Labels, Result};
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Var};
use gnarl_sample::MiniBatch;

use super::Prepared;
use super::loss::{add_loss, targets_of};
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
    let targets = targets_of(labels, &prepared.targets);
    let loss = add_loss(&mut tape, logits, rows, &targets, weights);
    let sum = f64::from(tape.value(loss).data()[0]);
    tape.backward(loss, grads)?;
    Ok(BatchLoss { sum, weight: rows.len() as f64 })
}

/// Puts a batch's input on the tape.
pub(crate) fn input(tape: &mut Tape<'_>, input: &Input) -> Var {
    match input {
        Input::Dense(rows) => tape.dense(rows.clone()),
        Input::Sparse(rows) => tape.sparse(rows.clone()),
    }
}

/// Prepares blocks for backward. The input layer's transpose is needed by few models; they make it when
/// they do.
pub(crate) fn turn_round(batch: &MiniBatch) {
    batch.blocks.iter().skip(1).for_each(|block| {
        block.transpose();
    });
}
