//! Dropout of coefficients while they are computed.

use gnarl_graph::blocks::Block;

use super::Drawn;
use crate::ops::dropout::Mask;

/// The mask of the coefficients of a block's edges.
pub(super) struct Kept<'b> {
    /// Dataset ids of sources, the destinations before the others.
    ids: &'b [u64],
    mask: Option<Mask>,
    /// Number of the first head.
    first: usize,
}

impl<'b> Kept<'b> {
    /// The mask of the edges of `block`.
    pub fn new(block: &'b Block, Drawn { key, first }: Drawn, dropout: f32) -> Self {
        let mask = key.filter(|_| dropout != 0.0).map(|key| Mask::new(key, dropout));
        Self { ids: block.ids(), mask, first }
    }

    /// The factors of the coefficients of the edges from `source` to `destination`, one a head.
    #[inline(always)]
    pub fn of(&self, source: usize, destination: usize) -> impl Fn(usize) -> f32 {
        let first = self.first;
        let drawn = self.mask.map(|mask| {
            let mask = mask.narrowed(self.ids[destination]);
            (mask, mask.row(self.ids[source]))
        });
        move |head| drawn.map_or(1.0, |(mask, row)| mask.factor(row, (first + head) as u32))
    }
}
