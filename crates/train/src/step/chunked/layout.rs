//! The layout of all nodes' values: by rank, and within a rank by row blocks and column blocks.

use std::ops::Range;

use gnarl_common::threads::even_share;

/// The layout that all ranks agree on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub nodes: usize,
    pub rank: usize,
    pub ranks: usize,
    /// Row blocks of each rank. Those with the same number, of all ranks, are a chunk: destinations
    /// whose messages are aggregated, and exchanged, at the same time.
    pub pieces: usize,
    /// Maximum columns of a column block.
    pub panel: usize,
}

impl Layout {
    /// The node range of `rank`.
    pub fn rows(&self, rank: usize) -> Range<usize> {
        even_share(self.nodes, rank, self.ranks)
    }

    /// The nodes of one of its row blocks.
    pub fn piece(&self, rank: usize, piece: usize) -> Range<usize> {
        let rows = self.rows(rank);
        let piece = even_share(rows.len(), piece, self.pieces);
        rows.start + piece.start..rows.start + piece.end
    }

    /// Column blocks of each rank's slice of `cols` columns: equally many on all ranks, some of
    /// them perhaps empty.
    pub fn panels(&self, cols: usize) -> usize {
        cols.div_ceil(self.ranks).div_ceil(self.panel).max(1)
    }

    /// Columns of a rank's column block.
    pub fn columns(&self, cols: usize, rank: usize, panel: usize) -> Range<usize> {
        let own = even_share(cols, rank, self.ranks);
        let panel = even_share(own.len(), panel, self.panels(cols));
        own.start + panel.start..own.start + panel.end
    }
}
