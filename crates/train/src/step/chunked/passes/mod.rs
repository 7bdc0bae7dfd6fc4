//! Passes of messages over column blocks of all nodes, one file per kind.

mod attention;
mod column_pass;
mod linear;
mod taped;

use std::sync::Arc;

use gnarl_graph::blocks::Block;
use gnarl_nn::models::Stages;
use gnarl_nn::models::stages::Pass;
use gnarl_nn::ops::pass::{Operator, Passing};

use self::attention::AttentionPass;
pub(super) use self::column_pass::{ColumnPass, Direction, Made, Part, Random, scores_of};
use self::linear::LinearPass;
use self::taped::TapedPass;

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
