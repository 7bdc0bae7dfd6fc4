//! Models as stages over rows, with messages between them that pass over columns.
//!
//! A stage is all that a model does to the row of a node by itself: what comes of the messages it got, and
//! what it sends next. So rows can be worked on in any pieces, by any ranks, and once more in the backward
//! pass instead of being remembered.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use super::slices::Slices;
use crate::ops::pass::{Operator, Passing};
use crate::{Reduce, Tape, Var};

/// What a stage has of some nodes, one row each.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    /// What messages made of what the stage before sent; the model's input in the first.
    pub passed: Var,
    /// What the stage before kept.
    pub kept: Option<Var>,
}

/// What a stage makes of some nodes, one row each.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// What messages pass over; the logits in the last.
    pub sent: Var,
    /// What the next stage wants besides of the same nodes.
    pub kept: Option<Var>,
}

/// How messages pass over all columns alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pass {
    /// The largest value among those of the neighbours.
    Max,
    /// Sums.
    Linear(Linear),
}

/// Sums over neighbours, one or several times: `H ← (1 - α) P H + α H⁰`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// P.
    pub operator: Operator,
    /// How often.
    pub times: usize,
    /// APPNP's α.
    pub teleport: f32,
}

impl Pass {
    pub(super) fn once(operator: Operator) -> Self {
        Self::Linear(Linear { operator, times: 1, teleport: 0.0 })
    }

    fn apply<'b>(self, tape: &mut Tape<'b>, block: &'b Block, first: Var) -> Var {
        let Self::Linear(Linear { operator, times, teleport }) = self else {
            return tape.spmm(block, first, Reduce::Max, None);
        };
        let passing = Arc::new(Passing::new(operator, block));
        (0..times).fold(first, |x, _| {
            let passed = tape.pass(&passing, x);
            if x != first {
                tape.release(x);
            }
            mix(tape, passed, first, teleport)
        })
    }
}

/// What came of a propagation, which is released, and `H⁰` of the same nodes, put together.
pub(crate) fn mix(tape: &mut Tape<'_>, passed: Var, first: Var, teleport: f32) -> Var {
    if teleport == 0.0 {
        return passed;
    }
    let scaled = tape.scale(passed, 1.0 - teleport);
    tape.release(passed);
    let first = tape.scale(first, teleport);
    tape.add(scaled, first)
}

/// A model that is stages over rows and passes over columns in turn.
pub trait Stages: Send + Sync {
    /// Number of passes; there is one more stage.
    fn passes(&self) -> usize;

    /// Stage `index` of the nodes with these dataset ids.
    ///
    /// # Errors
    /// A usage error if rows have another shape than the stage asks for.
    fn stage<'b>(
        &self,
        tape: &mut Tape<'b>,
        index: usize,
        ids: &'b [u64],
        rows: Incoming,
    ) -> Result<Outgoing>;

    /// How messages pass after stage `index`.
    fn pass(&self, index: usize) -> Pass;
}

/// All stages over the rows of this rank's own nodes, and all passes over its columns. Nothing is left of
/// values that no later operation and no backward pass asks for: over a whole graph they are large.
pub(super) fn forward<'b>(
    model: &dyn Stages,
    tape: &mut Tape<'b>,
    slices: &Slices<'b>,
    x: Var,
) -> Result<Var> {
    let mut rows = Incoming { passed: x, kept: None };
    for index in 0..model.passes() {
        let made = model.stage(tape, index, slices.ids, rows)?;
        if let Some((_, first)) = slices.input.filter(|(x, _)| *x == made.sent) {
            first.note(made.kept != Some(made.sent));
        }
        release(tape, rows, made);
        let pass = model.pass(index);
        let passed = slices.pass(tape, made.sent, |tape, block, x| pass.apply(tape, block, x))?;
        if made.kept != Some(made.sent) {
            tape.release(made.sent);
        }
        rows = Incoming { passed, kept: made.kept };
    }
    let made = model.stage(tape, model.passes(), slices.ids, rows)?;
    release(tape, rows, made);
    Ok(made.sent)
}

/// Releases what a stage was given, but what it handed on.
fn release(tape: &mut Tape<'_>, rows: Incoming, made: Outgoing) {
    for given in [Some(rows.passed), rows.kept].into_iter().flatten() {
        if given != made.sent && Some(given) != made.kept {
            tape.release(given);
        }
    }
}
