//! The trait of propagations.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use crate::models::Slices;
use crate::ops::pass::Operator;
use crate::{Activation, Tape, Var};

/// How messages pass over edges.
pub(super) trait Propagation: Send + Sync {
    /// The name of the model.
    const NAME: &'static str;
    /// The activation of the dense layers.
    const ACTIVATION: Activation = Activation::Relu;
    /// Whether weights depend on rows, and so each hop needs `H⁰` of its sources.
    const READS_ROWS: bool = false;
    /// What it is if weights know nothing of rows.
    const LINEAR: Option<Operator> = None;
    /// The weights of edges, as all propagations share them.
    type Weights<'b>;

    /// The weights of a block's edges, from the rows of `H⁰` of its sources.
    fn weigh<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, rows: Var) -> Self::Weights<'b>;

    /// Those of all edges, as one of several ranks, from own rows, where they depend on rows.
    ///
    /// # Errors
    /// If a rank fails.
    fn weigh_sliced<'b>(
        &self,
        _tape: &mut Tape<'b>,
        _slices: &Slices<'b>,
        _rows: Var,
    ) -> Option<Result<Self::Weights<'b>>> {
        None
    }

    /// One propagation over some columns of all sources.
    fn pass<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        weights: &Self::Weights<'b>,
        x: Var,
    ) -> Var;
}
