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

/// Scores of attention in a row, behind its other columns: one a head as a source, and then one a head as a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scores {
    None,
    /// The columns are so many heads side by side. Column blocks have the scores of those that their columns belong to.
    OfHeads(usize),
    /// All column blocks have the scores of all of so many heads.
    Whole(usize),
}

impl Scores {
    /// Number of scores in a row.
    pub fn count(self) -> usize {
        match self {
            Self::None => 0,
            Self::OfHeads(heads) | Self::Whole(heads) => 2 * heads,
        }
    }
}

/// The columns of rows that are sent or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    /// Columns that ranks and column blocks share.
    pub split: usize,
    /// The scores that follow them.
    pub scores: Scores,
}

impl Columns {
    /// Columns without scores.
    pub fn plain(split: usize) -> Self {
        Self { split, scores: Scores::None }
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

    /// Number of values of a row in all column blocks of all ranks.
    pub fn values(&self, columns: Columns) -> usize {
        let blocks = (0..self.ranks)
            .flat_map(|rank| (0..self.column_blocks(columns)).map(move |block| (rank, block)));
        let of_block = |(rank, block)| self.columns(columns, rank, block);
        blocks.flat_map(of_block).map(|range| range.len()).sum()
    }

    /// The columns of a rank's column block, and those of the scores in it.
    pub fn columns(&self, columns: Columns, rank: usize, column_block: usize) -> Vec<Range<usize>> {
        let Columns { split, scores } = columns;
        let own = self.split(split, rank, column_block);
        let (heads, touched) = match scores {
            Scores::None => return vec![own],
            Scores::OfHeads(heads) => (heads, heads_in(&own, split / heads)),
            Scores::Whole(heads) => (heads, 0..heads),
        };
        let scores = |first: usize| first + touched.start..first + touched.end;
        vec![own, scores(split), scores(split + heads)]
    }
}
