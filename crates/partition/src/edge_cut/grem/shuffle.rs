//! The edges of a stream, distributed at random to chunks on disk.

use std::io::{Read, Seek, SeekFrom, Write};

use gnarl_common::error::{Error, Result};
use gnarl_common::prefetch;
use gnarl_common::rng::{Key, mix};
use gnarl_graph::{EdgeChunk, EdgeStream};
use tempfile::SpooledTempFile;

use super::pipeline::pipeline;

/// Edges kept in memory instead of on disk: graphs this small need no file.
const SPOOL: usize = 16 << 20;

/// Largest number of edges of a chunk that are written together.
const MAX_BLOCK: u64 = 1 << 13;

/// Prefetch distance in edges, for the degrees of endpoints.
const AHEAD: usize = 32;

/// An edge by the ids of its endpoints.
pub(super) type Pair = [u32; 2];

/// A stream's edges in chunks, each a uniform sample: edge `i` is in the chunk drawn for `i`, so
/// that a file sorted by node is as good as one in random order. Self loops are left out.
///
/// Of a symmetric graph one direction is enough: chunks then have as many edges as they would have
/// otherwise, and are half as many. A sum of hashes detects symmetry without another pass: it is 0
/// if the ids of all ascending edges are those of all descending ones, and hardly ever else; then
/// nothing worse happens than that some edges go unseen.
///
/// One nameless file in the directory for temporary files (`TMPDIR`), 8 bytes an edge, in blocks
/// of one chunk each. Memory: a block for each chunk while it is written, nothing after.
pub(super) struct Chunks {
    file: SpooledTempFile,
    piles: Vec<Pile>,
    /// Piles of each chunk.
    of: Vec<[usize; 2]>,
    /// Edges of a full block.
    block: usize,
}

/// The ascending edges of a chunk, or the descending ones.
#[derive(Debug, Clone, Default)]
struct Pile {
    /// Numbers of its blocks.
    blocks: Vec<u32>,
    /// Edges.
    size: u64,
    /// Edges of a block that is not full yet.
    open: Vec<Pair>,
}

impl Chunks {
    /// Distributes the edges of `stream` to `count` chunks with about `memory` bytes; counts
    /// the in-edges of each node in `degree`, as far as it reaches.
    pub(super) fn deal(
        stream: &mut dyn EdgeStream,
        count: usize,
        seed: u64,
        memory: u64,
        degree: &mut [u32],
    ) -> Result<Self> {
        let block = (memory / 16 / count as u64).clamp(64, MAX_BLOCK) as usize;
        let file = tempfile::spooled_tempfile(SPOOL);
        let piles = vec![Pile::default(); 2 * count + 1];
        let mut chunks = Self { file, piles, of: Vec::new(), block };
        let key = Key::new(seed).with(0x6772_656d);
        let mut row = 0;
        let mut written = 0;
        let mut balance = 0u64;
        stream.reset()?;
        let read = |edges: &mut EdgeChunk| stream.next_chunk(edges);
        pipeline(read, |edges| {
            for (i, (u, v)) in edges.iter().enumerate() {
                if let Some(&next) = edges.dst.get(i + AHEAD) {
                    prefetch::item(degree, next as usize);
                }
                if let Some(degree) = degree.get_mut(v as usize) {
                    *degree = degree.saturating_add(1);
                }
                let chunk = key.below(row, count as u64) as usize;
                row += 1;
                let hash = mix(u.min(v) << 32 | u.max(v));
                balance = balance.wrapping_add(if u < v { hash } else { hash.wrapping_neg() });
                if u != v {
                    let pile = chunk + if u < v { 0 } else { count };
                    let open = &mut chunks.piles[pile].open;
                    open.push([u as u32, v as u32]);
                    if open.len() == block {
                        chunks.write(pile, &mut written)?;
                    }
                }
            }
            Ok(())
        })?;
        for pile in 0..2 * count {
            if !chunks.piles[pile].open.is_empty() {
                chunks.write(pile, &mut written)?;
            }
            chunks.piles[pile].open = Vec::new();
        }
        let both = |chunk| [chunk, chunk + count];
        // The last pile stays empty: it pairs with an odd last chunk.
        let two = |chunk| [chunk, if chunk + 1 < count { chunk + 1 } else { 2 * count }];
        chunks.of = if balance == 0 {
            (0..count).step_by(2).map(two).collect()
        } else {
            (0..count).map(both).collect()
        };
        Ok(chunks)
    }

    /// Number of chunks.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Number of edges.
    pub(super) fn edges(&self) -> u64 {
        self.of.iter().flatten().map(|&pile| self.piles[pile].size).sum()
    }

    /// Edges of the largest chunk.
    pub(super) fn largest(&self) -> usize {
        let sizes =
            self.of.iter().map(|piles| piles.iter().map(|&pile| self.piles[pile].size).sum());
        sizes.max().unwrap_or(0u64) as usize
    }

    fn write(&mut self, pile: usize, written: &mut u32) -> Result<()> {
        let pile = &mut self.piles[pile];
        pile.size += pile.open.len() as u64;
        pile.blocks.push(*written);
        *written += 1;
        // A pile's last block may be short; the next one begins where a full one would.
        pile.open.resize(self.block, [0; 2]);
        let written = self.file.write_all(bytemuck::cast_slice(&pile.open)).map_err(failed);
        pile.open.clear();
        written
    }

    /// Replaces `edges` by those of `chunk`.
    pub(super) fn read(&mut self, chunk: usize, edges: &mut Vec<Pair>) -> Result<()> {
        let piles = self.of[chunk].map(|pile| &self.piles[pile]);
        edges.clear();
        edges.reserve_exact(self.largest());
        edges.resize(piles.iter().map(|pile| pile.size as usize).sum(), [0; 2]);
        let mut rest = edges.as_mut_slice();
        for pile in piles {
            let (edges, after) = rest.split_at_mut(pile.size as usize);
            for (edges, &number) in edges.chunks_mut(self.block).zip(&pile.blocks) {
                let from = number as u64 * 8 * self.block as u64;
                self.file.seek(SeekFrom::Start(from)).map_err(failed)?;
                self.file.read_exact(bytemuck::cast_slice_mut(edges)).map_err(failed)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Calls `visit` with the edges of each chunk, in order, reading one ahead.
    pub(super) fn each(&mut self, mut visit: impl FnMut(&[Pair]) -> Result<()>) -> Result<()> {
        let mut numbers = 0..self.len();
        let read = |edges: &mut Vec<Pair>| match numbers.next() {
            Some(number) => self.read(number, edges).map(|()| true),
            None => Ok(false),
        };
        pipeline(read, |edges| visit(edges))
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io(std::env::temp_dir(), error)
        .context("shuffling edges for grem")
        .hint("8 bytes per edge are required there; TMPDIR sets another directory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn every_edge_is_in_one_chunk_of_about_equal_ones() {
        let edges: Vec<(u64, u64)> = (0..50_000).map(|i| (i + 1, i / 3)).collect();
        let mut stream = MemoryEdges::new(50_001, edges.clone()).unwrap();
        for memory in [0, 1 << 30] {
            let mut chunks = Chunks::deal(&mut stream, 7, 1, memory, &mut []).unwrap();
            let (mut all, mut chunk) = (Vec::new(), Vec::new());
            for i in 0..chunks.len() {
                chunks.read(i, &mut chunk).unwrap();
                assert!((6800..7500).contains(&chunk.len()), "{}", chunk.len());
                all.extend(chunk.iter().map(|&[u, v]| (u as u64, v as u64)));
            }
            all.sort_unstable();
            assert_eq!(all, edges);
        }
    }

    #[test]
    fn one_direction_of_edges_in_both_is_dealt_and_in_edges_are_counted() {
        let one: Vec<(u64, u64)> = (0..5000).map(|i| (i / 3, i + 1)).collect();
        let both: Vec<(u64, u64)> = one.iter().flat_map(|&(u, v)| [(v, u), (u, v)]).collect();
        for (edges, least) in [(&both[..], 1.0), (&both[1..], 2.0), (&one[..], 1.0)] {
            let mut stream = MemoryEdges::new(5001, edges.iter().copied()).unwrap();
            let mut degree = vec![0; 5001];
            let mut chunks = Chunks::deal(&mut stream, 5, 1, 1 << 20, &mut degree).unwrap();
            let (mut seen, mut chunk) = (Vec::new(), Vec::new());
            for i in 0..chunks.len() {
                chunks.read(i, &mut chunk).unwrap();
                seen.extend(chunk.iter().map(|&[u, v]| (u.min(v) as u64, u.max(v) as u64)));
            }
            // Each edge has one direction in the piles that are read, if all have two.
            let all = if least > 1.0 { edges.len() } else { one.len() };
            assert_eq!((chunks.edges() as usize, seen.len()), (all, all));
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, one);
            let into = |v: u32| edges.iter().filter(|edge| edge.1 == v as u64).count() as u32;
            assert!([0, 1, 100, 5000].into_iter().all(|v| degree[v as usize] == into(v)));
        }
    }
}
