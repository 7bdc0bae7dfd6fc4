//! The trait of passes over column blocks.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::{Mode, Tensor};

use crate::step::chunked::layout::Scores;

/// Forward or backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::step::chunked) enum Direction {
    Forward,
    Backward,
}

/// A pass of messages over some columns of all nodes.
pub(in crate::step::chunked) trait ColumnPass: Sync {
    /// The pass of the model.
    fn pass(&self) -> Pass;

    /// The scores behind the columns that are sent.
    fn scores(&self) -> Scores {
        scores_of(self.pass())
    }

    /// Number of propagations.
    fn propagations(&self) -> usize {
        match self.pass() {
            Pass::Linear(linear) => linear.times,
            Pass::Propagation(propagation) => propagation.times,
            Pass::Attention(_) | Pass::Max => 1,
        }
    }

    /// Number of random keys that it draws.
    fn draws(&self) -> u64 {
        self.pass().draws()
    }

    /// Returns whether the backward pass reads what was sent: all do but linear ones.
    fn reads_sent(&self) -> bool {
        !matches!(self.pass(), Pass::Linear(_))
    }

    /// Passes the block `sent`, which has these columns.
    ///
    /// # Errors
    /// Those of operations.
    fn forward(&self, columns: Range<usize>, random: Random, sent: Tensor) -> Made<'_>;

    /// Passes back the gradient of what was received. The block `sent` is there if the pass reads it.
    ///
    /// # Errors
    /// Those of operations.
    fn backward(
        &self,
        columns: Range<usize>,
        random: Random,
        sent: Option<Tensor>,
        grad: Tensor,
    ) -> Made<'_>;
}

/// A pass over a column block.
pub(in crate::step::chunked) type Made<'p> = Result<Box<dyn Part + 'p>>;

/// The random draws of a pass.
#[derive(Clone, Copy)]
pub(in crate::step::chunked) struct Random {
    pub mode: Mode,
    /// Number of draws of the step before it.
    pub draws: u64,
}

/// A column block of all nodes before the last step of a pass.
pub(in crate::step::chunked) trait Part {
    /// The last step: the rows from `first` on, as many as fit into `out`.
    fn rows(&self, first: usize, out: &mut [f32]);
}

/// The scores behind the columns that a pass is given.
pub(in crate::step::chunked) fn scores_of(pass: Pass) -> Scores {
    match pass {
        Pass::Linear(_) | Pass::Max => Scores::None,
        Pass::Attention(attention) => Scores::OfHeads(attention.heads),
        Pass::Propagation(propagation) => Scores::Whole(propagation.heads),
    }
}
