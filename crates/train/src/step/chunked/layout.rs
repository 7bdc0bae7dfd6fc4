//! The layout of all nodes' values: by rank, and within a rank by row blocks and column blocks.

use std::ops::Range;

use gnarl_common::threads::even_share;
use gnarl_nn::heads_in;

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

/// The columns of rows that are sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    /// Columns that ranks and column blocks share.
    pub split: usize,
    /// Number of heads that these columns make up, if scores follow them: one a head as a source, and then one as a
    /// destination. Every column block has the scores of the heads that its columns belong to.
    pub heads: usize,
}

impl Columns {
    /// Columns without scores.
    pub fn plain(split: usize) -> Self {
        Self { split, heads: 0 }
    }
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

    /// Column blocks of each rank's slice: equally many on all ranks, some of them perhaps empty.
    pub fn column_blocks(&self, columns: Columns) -> usize {
        columns.split.div_ceil(self.ranks).div_ceil(self.column_block).max(1)
    }

    /// A rank's column block of so many columns that are shared.
    pub fn split(&self, cols: usize, rank: usize, column_block: usize) -> Range<usize> {
        let own = even_share(cols, rank, self.ranks);
        let column_blocks = self.column_blocks(Columns::plain(cols));
        let column_block = even_share(own.len(), column_block, column_blocks);
        own.start + column_block.start..own.start + column_block.end
    }

    /// The columns of a rank's column block, and those of the scores in it.
    pub fn columns(&self, columns: Columns, rank: usize, column_block: usize) -> Vec<Range<usize>> {
        let Columns { split, heads } = columns;
        let own = self.split(split, rank, column_block);
        if heads == 0 {
            return vec![own];
        }
        let of = heads_in(&own, split / heads);
        let scores = |first: usize| first + of.start..first + of.end;
        vec![own, scores(split), scores(split + heads)]
    }
}
