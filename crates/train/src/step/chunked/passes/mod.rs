//! Passes of messages over column blocks of all nodes, one file per kind.

mod attention;
mod linear;

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;
use gnarl_nn::Tensor;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::ops::pass::{Operator, Passing};

use self::attention::AttentionPass;
use self::linear::LinearPass;

/// A pass of messages over some columns of all nodes.
pub(super) trait ColumnPass: Sync {
    /// Number of heads whose scores, as sources and as destinations, are behind the columns that are sent.
    fn heads(&self) -> usize {
        0
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
    fn forward(&self, columns: Range<usize>, key: Option<Key>, sent: Tensor) -> Box<dyn Part + '_>;

    /// Passes back the gradient of what was received. The block `sent` is there if the pass reads it.
    fn backward(
        &self,
        columns: Range<usize>,
        key: Option<Key>,
        sent: Option<Tensor>,
        grad: Tensor,
    ) -> Box<dyn Part + '_>;
}

/// A column block of all nodes before the last step of a pass.
pub(super) trait Part {
    /// The last step: the rows from `first` on, as many as fit into `out`.
    fn rows(&self, first: usize, out: &mut [f32]);
}

/// The passes of `model` over `block`.
///
/// # Errors
/// A usage error if a pass does not go by column blocks.
pub(super) fn of<'a>(model: &dyn Stages, block: &'a Block) -> Result<Vec<Box<dyn ColumnPass + 'a>>> {
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
            Ok(Box::new(LinearPass { passing: passing(linear.operator), linear }) as Box<_>)
        }
        Pass::Attention(attention) => Ok(Box::new(AttentionPass { block, attention }) as Box<_>),
        Pass::Max => Err(Error::usage("max aggregation does not support chunks")
            .hint("leave out tensor.memory and tensor.chunks, or use another aggregator")),
    };
    (0..model.passes()).map(pass).collect()
}
