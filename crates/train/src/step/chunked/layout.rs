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
    pub row_blocks: usize,
    /// Maximum columns of a column block.
    pub column_block: usize,
}

impl Layout {
    /// The node range of `rank`.
    pub fn rows(&self, rank: usize) -> Range<usize> {
        even_share(self.nodes, rank, self.ranks)
    }

    /// The nodes of one of its row blocks.
    pub fn row_block(&self, rank: usize, row_block: usize) -> Range<usize> {
        let rows = self.rows(rank);
        let row_block = even_share(rows.len(), row_block, self.row_blocks);
        rows.start + row_block.start..rows.start + row_block.end
    }

    /// Column blocks of each rank's slice of `cols` columns: equally many on all ranks, some of
    /// them perhaps empty.
    pub fn column_blocks(&self, cols: usize) -> usize {
        cols.div_ceil(self.ranks).div_ceil(self.column_block).max(1)
    }

    /// Columns of a rank's column block.
    pub fn columns(&self, cols: usize, rank: usize, column_block: usize) -> Range<usize> {
        let own = even_share(cols, rank, self.ranks);
        let column_block = even_share(own.len(), column_block, self.column_blocks(cols));
        own.start + column_block.start..own.start + column_block.end
    }
}
