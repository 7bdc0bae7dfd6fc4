//! The trait of propagations.

use gnarl_common::Result;
use gnarl_graph::blocks::Block;

use crate::models::Slices;
use crate::models::stages::Pass;
use crate::ops::pass::Operator;
use crate::{Activation, Tape, Var};

/// The message-passing operator of a decoupled model.
pub(super) trait Propagation: Send + Sync {
    /// The name of the model.
    const NAME: &'static str;
    /// The activation of the dense layers.
    const ACTIVATION: Activation = Activation::Relu;
    /// True if weights depend on features, so that each hop needs `H⁰` of its sources.
    const READS_ROWS: bool = false;
    /// The operator if weights do not depend on features.
    const LINEAR: Option<Operator> = None;
    /// Edge weights, shared by all propagations.
    type Weights<'b>;

    /// The weights of a block's edges, from `H⁰` of its sources.
    fn weigh<'b>(&self, tape: &mut Tape<'b>, block: &'b Block, rows: Var) -> Self::Weights<'b>;

    /// The weights of all edges on one of several ranks, from own rows, where they depend on
    /// features.
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

    /// All propagations as one pass of rows with their scores behind them, where weights depend on those.
    fn with_scores(&self, _propagations: usize, _teleport: f32) -> Option<Pass> {
        None
    }

    /// Rows with their scores behind them.
    fn scored(&self, _tape: &mut Tape<'_>, rows: Var) -> Var {
        rows
    }

    /// One propagation over a feature slice of all sources.
    fn pass<'b>(
        &self,
        tape: &mut Tape<'b>,
        block: &'b Block,
        weights: &Self::Weights<'b>,
        x: Var,
    ) -> Var;
}
