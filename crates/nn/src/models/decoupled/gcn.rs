//! Propagation as in GCN (Kipf & Welling, ICLR 2017).

use std::sync::Arc;

use gnarl_graph::Result;
use gnarl_sample::Block;

use super::Propagation;
use crate::models::slices::Slices;
use crate::ops::gcn::GcnNorm;
use crate::{Tape, Var};

/// The symmetric normalisation, which knows the degrees of nodes and nothing of rows.
pub(super) struct Gcn;

impl Propagation for Gcn {
    const NAME: &'static str = "decoupled gcn";
    type Weights = Arc<GcnNorm>;

    fn weigh<'b>(&self, _: &mut Tape<'b>, block: &'b Block, _: Var) -> Arc<GcnNorm> {
        Arc::new(GcnNorm::of(block))
    }

    fn weigh_sliced<'b>(
        &self,
        _: &mut Tape<'b>,
        slices: &Slices<'b>,
        _: Var,
    ) -> Result<Arc<GcnNorm>> {
        Ok(Arc::new(GcnNorm::of(slices.block)))
    }

    fn pass<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        weights: &Arc<GcnNorm>,
        x: Var,
    ) -> Var {
        tape.gcn_norm_by(block, x, weights.clone())
    }
}
