//! How the rows and columns of all nodes are cut: by ranks, and within a rank by pieces and panels.

use std::ops::Range;

use gnarl_common::threads::even_share;

/// Cuts that all ranks agree on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub nodes: usize,
    pub rank: usize,
    pub ranks: usize,
    /// Pieces of each rank's rows. The pieces with the same number, of all ranks, are a chunk: destinations
    /// whose messages are summed up, and exchanged, at the same time.
    pub pieces: usize,
    /// Most columns of a panel.
    pub panel: usize,
}

impl Layout {
    /// The nodes whose rows are `rank`'s.
    pub fn rows(&self, rank: usize) -> Range<usize> {
        even_share(self.nodes, rank, self.ranks)
    }

    /// The nodes of one of its pieces.
    pub fn piece(&self, rank: usize, piece: usize) -> Range<usize> {
        let rows = self.rows(rank);
        let piece = even_share(rows.len(), piece, self.pieces);
        rows.start + piece.start..rows.start + piece.end
    }

    /// Panels of each rank's share of `cols` columns: as many on all ranks, some of them perhaps empty.
    pub fn panels(&self, cols: usize) -> usize {
        cols.div_ceil(self.ranks).div_ceil(self.panel).max(1)
    }

    /// Columns of a rank's panel.
    pub fn columns(&self, cols: usize, rank: usize, panel: usize) -> Range<usize> {
        let own = even_share(cols, rank, self.ranks);
        let panel = even_share(own.len(), panel, self.panels(cols));
        own.start + panel.start..own.start + panel.end
    }
}
