//! Models as row-wise stages, with column-wise message passing between them.
//!
//! A stage is all computation on single nodes: receiving the aggregated messages, and making the
//! next ones. So nodes can be processed in any row blocks, by any ranks, and recomputed in the
//! backward pass instead of being saved.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

pub use super::attention_propagation::AttentionPropagation;
use super::slices::Slices;
use super::teleport::mix;
use crate::kernel::elementwise::copy;
use crate::ops::list_attention::Attention;
use crate::ops::pass::{Operator, Passing};
use crate::{Mode, Reduce, Tape, Tensor, Var};

/// Rows of a stage that are made at a time where no backward pass comes.
const EVALUATED: usize = 1 << 14;

/// The inputs of a stage for some nodes, one row each.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    /// The aggregate of the previous stage's messages; the model's input in the first stage.
    pub passed: Var,
    /// Values that the previous stage kept.
    pub kept: Option<Var>,
}

/// The outputs of a stage for some nodes, one row each.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// Messages to pass; the logits in the last stage.
    pub sent: Var,
    /// Further values of the same nodes that the next stage reads.
    pub kept: Option<Var>,
}

/// A column-wise message-passing operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pass {
    /// Maximum over neighbors.
    Max,
    /// Weighted sum over neighbors.
    Linear(Linear),
    /// Sum over neighbors weighted by attention, whose scores follow the messages in a row: of inference, and of training
    /// in chunks.
    Attention(Attention),
    /// Several sums weighted by attention that is computed once, from scores that follow the messages in a row: of training
    /// in chunks.
    Propagation(AttentionPropagation),
}

/// Sums over neighbors, one or several times: `H ← (1 - α) P H + α H⁰`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// P.
    pub operator: Operator,
    /// Number of propagations.
    pub times: usize,
    /// APPNP's α.
    pub teleport: f32,
}

impl Pass {
    pub(super) fn once(operator: Operator) -> Self {
        Self::Linear(Linear { operator, times: 1, teleport: 0.0 })
    }

    /// Number of random keys that it draws.
    pub fn draws(self) -> u64 {
        match self {
            Self::Attention(_) | Self::Propagation(_) => 1,
            Self::Max | Self::Linear(_) => 0,
        }
    }

    /// Width of what arrives where so many columns are sent.
    pub fn width(self, sent: usize) -> usize {
        match self {
            Self::Attention(attention) => attention.heads * attention.width,
            Self::Propagation(propagation) => sent - propagation.scores(),
            Self::Max | Self::Linear(_) => sent,
        }
    }

    /// Passes the rows that all sources of `block` sent.
    ///
    /// # Panics
    /// If there is another number of rows.
    pub fn apply<'b>(self, tape: &mut Tape<'b>, block: &'b Block, first: Var) -> Var {
        let Linear { operator, times, teleport } = match self {
            Self::Max => return tape.spmm(block, first, Reduce::Max, None),
            Self::Attention(attention) => return attention.of_block(tape, block, first),
            Self::Propagation(propagation) => return propagation.apply(tape, block, first),
            Self::Linear(linear) => linear,
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

/// A model of row-wise stages and column-wise passes in turn.
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

    /// The message-passing operator after stage `index`.
    fn pass(&self, index: usize) -> Pass;
}

/// All stages over this rank's own nodes, and all passes over its feature slice. Values that no
/// later operation and no backward pass reads are released: over a whole graph they are large.
pub(super) fn forward<'b>(
    model: &dyn Stages,
    tape: &mut Tape<'b>,
    slices: &Slices<'b>,
    x: Var,
) -> Result<Var> {
    let mut rows = Incoming { passed: x, kept: None };
    for index in 0..model.passes() {
        let made = stage(model, tape, index, slices.ids_after(index), rows)?;
        if let Some((_, first)) = slices.input.filter(|(x, _)| *x == made.sent) {
            first.note(made.kept != Some(made.sent));
        }
        release(tape, rows, made);
        let pass = model.pass(index);
        let apply = |tape: &mut Tape<'b>, block, x| pass.apply(tape, block, x);
        let passed = slices.pass(tape, index, made.sent, apply)?;
        let left = slices.ids_after(index + 1).len();
        let kept = made.kept.map(|kept| tape.head_rows(kept, left));
        for made in [Some(made.sent), made.kept].into_iter().flatten() {
            if Some(made) != kept {
                tape.release(made);
            }
        }
        rows = Incoming { passed, kept };
    }
    let made = stage(model, tape, model.passes(), slices.ids_after(model.passes()), rows)?;
    release(tape, rows, made);
    Ok(made.sent)
}

/// Stage `index`. Where no backward pass comes, it makes some rows at a time, so that of the values in it, which are the
/// widest, only these are in memory.
fn stage<'b>(
    model: &dyn Stages,
    tape: &mut Tape<'b>,
    index: usize,
    ids: &'b [u64],
    rows: Incoming,
) -> Result<Outgoing> {
    let is_sparse = rows.kept.is_some_and(|kept| tape.is_sparse(kept));
    if tape.is_training() || index == 0 || is_sparse || ids.len() <= EVALUATED {
        return model.stage(tape, index, ids, rows);
    }
    let mut sent = None;
    let mut kept = None;
    let mut keeps_sent = false;
    for first in (0..ids.len()).step_by(EVALUATED) {
        let range = first..ids.len().min(first + EVALUATED);
        let mut own = Tape::new(tape.params(), Mode::Eval);
        let mut some = |rows: Var| own.dense(rows_of(tape.value(rows), range.clone()));
        let given = Incoming { passed: some(rows.passed), kept: rows.kept.map(some) };
        let made = model.stage(&mut own, index, &ids[range], given)?;
        put(&mut sent, ids.len(), first, own.value(made.sent));
        keeps_sent = made.kept == Some(made.sent);
        if let Some(rows) = made.kept.filter(|_| !keeps_sent) {
            put(&mut kept, ids.len(), first, own.value(rows));
        }
    }
    let sent = tape.dense(sent.expect("there are rows"));
    let kept = if keeps_sent { Some(sent) } else { kept.map(|kept| tape.dense(kept)) };
    Ok(Outgoing { sent, kept })
}

/// Successive rows of `x`.
fn rows_of(x: &Tensor, range: Range<usize>) -> Tensor {
    let cols = x.cols();
    let mut rows = Tensor::scratch(range.len(), cols);
    copy(rows.data_mut(), &x.data()[range.start * cols..range.end * cols]);
    rows
}

/// Puts `rows` into a matrix of `count` rows, from row `first` on; the first time, there is none yet.
fn put(all: &mut Option<Tensor>, count: usize, first: usize, rows: &Tensor) {
    let cols = rows.cols();
    let all = all.get_or_insert_with(|| Tensor::scratch(count, cols));
    copy(&mut all.data_mut()[first * cols..(first + rows.rows()) * cols], rows.data());
}

/// Releases a stage's inputs, except those it handed on.
fn release(tape: &mut Tape<'_>, rows: Incoming, made: Outgoing) {
    for given in [Some(rows.passed), rows.kept].into_iter().flatten() {
        if given != made.sent && Some(given) != made.kept {
            tape.release(given);
        }
    }
}
