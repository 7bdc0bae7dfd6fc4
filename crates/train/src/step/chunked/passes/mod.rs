//! Passes of messages over column blocks of all nodes, one file per kind.

mod attention;
mod linear;
mod taped;

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::ops::pass::{Operator, Passing};
use gnarl_nn::{Mode, Tensor};

use self::attention::AttentionPass;
use self::linear::LinearPass;
use self::taped::TapedPass;
use super::layout::Scores;

/// A pass of messages over some columns of all nodes.
pub(super) trait ColumnPass: Sync {
    /// The scores behind the columns that are sent.
    fn scores(&self) -> Scores {
        Scores::None
    }

    /// Number of propagations.
    fn propagations(&self) -> usize {
        1
    }

    /// Number of random keys that it draws.
    fn draws(&self) -> u64 {
        0
    }

    /// True if the backward pass reads what was sent.
    fn reads_sent(&self) -> bool {
        false
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
pub(super) type Made<'p> = Result<Box<dyn Part + 'p>>;

/// The random draws of a pass.
#[derive(Clone, Copy)]
pub(super) struct Random {
    pub mode: Mode,
    /// Number of draws of the step before it.
    pub draws: u64,
}

/// A column block of all nodes before the last step of a pass.
pub(super) trait Part {
    /// The last step: the rows from `first` on, as many as fit into `out`.
    fn rows(&self, first: usize, out: &mut [f32]);
}

/// The scores behind the columns that a pass is given.
pub(super) fn scores_of(pass: Pass) -> Scores {
    match pass {
        Pass::Linear(_) | Pass::Max => Scores::None,
        Pass::Attention(attention) => Scores::OfHeads(attention.heads),
        Pass::Propagation(propagation) => Scores::Whole(propagation.heads),
    }
}

/// The passes of `model` over `block`.
pub(super) fn of<'a>(model: &dyn Stages, block: &'a Block) -> Vec<Box<dyn ColumnPass + 'a>> {
    let mut made: Vec<(Operator, Arc<Passing<'a>>)> = Vec::new();
    let mut passing = |operator| {
        if let Some((_, passing)) = made.iter().find(|(other, _)| *other == operator) {
            return passing.clone();
        }
        let passing = Arc::new(Passing::new(operator, block));
        made.push((operator, passing.clone()));
        passing
    };
    let pass = |index| match model.pass(index) {
        Pass::Linear(linear) => {
            Box::new(LinearPass { passing: passing(linear.operator), linear }) as Box<_>
        }
        Pass::Attention(attention) => Box::new(AttentionPass { block, attention }) as Box<_>,
        pass @ (Pass::Max | Pass::Propagation(_)) => {
            Box::new(TapedPass::new(pass, block)) as Box<_>
        }
    };
    (0..model.passes()).map(pass).collect()
}
