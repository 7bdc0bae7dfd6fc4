//! Passes over lists by all threads, with one outcome.

use std::ops::Range;

use gnarl_common::error::Result;
use rayon::prelude::*;

use super::lists::{Lists, Piece};

/// Lists of fewer words are passed by one thread, as the overhead of others would be more than they
/// save.
const SMALL_WORDS: u64 = 1 << 20;
/// Blocks of a pass, unless their pieces are too many.
const BLOCKS: usize = 64;
/// Most pieces of a block: 16 MiB.
const MOST_PIECES: usize = 64;
/// Lists of as many words are read in their order: 1 GiB.
const CACHED_WORDS: u64 = 1 << 28;

/// A pass over lists with a state that each block of pieces changes.
///
/// The pieces of a block are decided about at once, from the state before the block: the outcome is
/// the same for any number of threads.
pub(super) trait Pass: Sync {
    /// The decisions about a piece.
    type Decided: Send;

    /// Returns whether the lists of these nodes are read at all.
    fn wants(&self, _nodes: Range<u32>) -> bool {
        true
    }

    /// Decides about the nodes of a piece.
    fn decide(&self, piece: &Piece) -> Self::Decided;

    /// Changes the state by the decisions about a block, whose pieces ascend.
    fn apply(&mut self, block: &[(Piece, Self::Decided)]);
}

impl Lists {
    /// Runs a pass over all lists.
    ///
    /// The pieces of a block are far apart, because nodes near each other are often neighbors, and
    /// would be decided about without each other; lists too large to be cached are read in order.
    pub fn run<P: Pass>(&self, pass: &mut P) -> Result<()> {
        let words = self.words();
        if words < SMALL_WORDS {
            let mut buffer = Vec::new();
            return (0..self.pieces()).try_for_each(|piece| {
                let decided = self.decide(pass, piece, &mut buffer)?;
                pass.apply(decided.as_slice());
                Ok(())
            });
        }
        let size = (self.pieces() / BLOCKS).clamp(1, MOST_PIECES);
        let blocks = self.pieces().div_ceil(size);
        let mut buffers = vec![Vec::new(); size];
        for block in 0..blocks {
            let of_block = |i: usize| match words {
                0..CACHED_WORDS => block + i * blocks,
                _ => block * size + i,
            };
            let decide = |(i, words)| match of_block(i) {
                piece if piece < self.pieces() => self.decide(pass, piece, words),
                _ => Ok(None),
            };
            let decided = buffers.par_iter_mut().enumerate().map(decide);
            let decided = decided.collect::<Result<Vec<_>>>()?.into_iter().flatten();
            pass.apply(&decided.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn decide<'a, P: Pass>(
        &'a self,
        pass: &P,
        piece: usize,
        words: &'a mut Vec<u32>,
    ) -> Result<Option<(Piece<'a>, P::Decided)>> {
        if !pass.wants(self.nodes(piece)) {
            return Ok(None);
        }
        let piece = self.read(piece, words)?;
        let decided = pass.decide(&piece);
        Ok(Some((piece, decided)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists::ListsWriter;
    use super::*;

    /// Records the nodes seen.
    struct Record {
        seen: Vec<u32>,
        last: u32,
        blocks: usize,
    }

    impl Pass for Record {
        type Decided = (usize, u64);

        fn wants(&self, nodes: Range<u32>) -> bool {
            nodes.start < self.last
        }

        fn decide(&self, piece: &Piece) -> Self::Decided {
            let mut sum = 0;
            piece.for_each(|_, ids, _| sum += ids.iter().map(|&id| u64::from(id)).sum::<u64>());
            (self.seen.len(), sum)
        }

        fn apply(&mut self, block: &[(Piece, Self::Decided)]) {
            let before = self.seen.len();
            for (piece, (seen, sum)) in block {
                assert_eq!(*seen, before, "decided from the state before the block");
                let expected = |v: u32| length(v) as u64 * u64::from(v);
                assert_eq!(*sum, piece.nodes().map(expected).sum::<u64>());
                self.seen.extend(piece.nodes());
            }
            assert!(self.seen[before..].is_sorted());
            self.blocks += usize::from(!block.is_empty());
        }
    }

    fn length(node: u32) -> usize {
        node as usize % 7
    }

    #[test]
    fn passes_decide_about_a_block_from_the_state_before_it() {
        for (nodes, in_order) in [(90_000, true), (900_000, false)] {
            let mut writer = ListsWriter::create(&std::env::temp_dir(), nodes, false).unwrap();
            for node in 0..nodes as u32 {
                writer.push(&[node; 7][..length(node)], &[]).unwrap();
            }
            let lists = writer.finish().unwrap();
            let last = nodes as u32 / 2;
            let mut record = Record { seen: Vec::new(), last, blocks: 0 };
            lists.run(&mut record).unwrap();
            assert!(record.blocks >= 30, "{} blocks", record.blocks);
            assert_eq!(record.seen.is_sorted(), in_order);
            record.seen.sort_unstable();
            let count = record.seen.len() as u32;
            assert!((last..last + 4096).contains(&count), "{count} of {last}");
            assert_eq!(record.seen, (0..count).collect::<Vec<_>>(), "each node once");
            let of_piece = |piece: &Piece| u64::from(piece.nodes().end - piece.nodes().start);
            assert_eq!(lists.sum(of_piece).unwrap(), nodes as u64);
        }
    }
}
