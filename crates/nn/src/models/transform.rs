//! The order of transformation and aggregation.

use gnarl_graph::blocks::Block;

use crate::{Tape, Var};

/// Multiply-adds of a matrix product that take as long as one of a gathered row: products run
/// from cache, gathers from memory.
pub(super) const PRODUCT_SPEEDUP: usize = 32;

/// Returns whether a linear map from `in_dim` to `out_dim` columns should come before the
/// aggregation over `block`: always for sparse input (the product makes it dense), else when rows
/// get narrower by it and mapping all sources instead of the destinations does not cost more than
/// that saves.
pub fn transform_first(
    tape: &Tape<'_>,
    block: &Block,
    x: Var,
    in_dim: usize,
    out_dim: usize,
) -> bool {
    if tape.is_sparse(x) {
        return true;
    }
    let extra_rows = block.num_src() - block.num_dst();
    let saved = in_dim.saturating_sub(out_dim) * block.num_edges() * PRODUCT_SPEEDUP;
    in_dim > out_dim && extra_rows * in_dim * out_dim <= saved
}
