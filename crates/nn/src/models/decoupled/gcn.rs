//! Propagation as in GCN (Kipf & Welling, ICLR 2017).

use std::sync::Arc;

use gnarl_graph::blocks::Block;

use super::propagation::Propagation;
use crate::ops::pass::{Operator, Passing};
use crate::{Tape, Var};

/// The symmetric normalization, which depends on degrees only and not on features.
pub(super) struct Gcn;

impl Propagation for Gcn {
    const NAME: &'static str = "decoupled gcn";
    const LINEAR: Option<Operator> = Some(Operator::Gcn);
    type Weights<'b> = Arc<Passing<'b>>;

    fn weigh<'b>(&self, _: &mut Tape<'b>, block: &'b Block, _: Var) -> Arc<Passing<'b>> {
        Arc::new(Passing::new(Operator::Gcn, block))
    }

    fn pass<'b>(
        &self,
        tape: &mut Tape<'b>,
        _: &'b Block,
        weights: &Arc<Passing<'b>>,
        x: Var,
    ) -> Var {
        tape.pass(weights, x)
    }
}
