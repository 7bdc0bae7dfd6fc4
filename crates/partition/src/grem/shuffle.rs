//! The edges of a stream, dealt at random into chunks on disk.

use std::io::{Read, Seek, SeekFrom, Write};

use gnarl_graph::error::{Error, Result};
use gnarl_graph::rng::Key;
use gnarl_graph::{EdgeChunk, EdgeStream};
use tempfile::SpooledTempFile;

use super::pipeline::pipeline;

/// Edges kept in memory instead of on disk: graphs this small need no file.
const SPOOL: usize = 16 << 20;

/// Largest number of edges of a chunk that are written together.
const MAX_BLOCK: u64 = 1 << 13;

/// An edge by the ids of its ends.
pub(super) type Pair = [u32; 2];

/// A stream's edges in chunks, each a uniform sample: edge `i` is in the chunk drawn for `i`, so
/// that a file sorted by node is as good as one in random order. Self loops are left out.
///
/// One nameless file in the directory for temporary files (`TMPDIR`), 8 bytes an edge, in blocks
/// of one chunk each. Memory: a block for each chunk while it is written, nothing after.
pub(super) struct Chunks {
    file: SpooledTempFile,
    /// Numbers of each chunk's blocks.
    blocks: Vec<Vec<u32>>,
    /// Edges of each chunk.
    sizes: Vec<u64>,
    /// Edges of a full block.
    block: usize,
}

impl Chunks {
    /// Deals the edges of `stream` into `count` chunks, holding about `memory` bytes.
    pub(super) fn deal(
        stream: &mut dyn EdgeStream,
        count: usize,
        seed: u64,
        memory: u64,
    ) -> Result<Self> {
        let block = (memory / 8 / count as u64).clamp(64, MAX_BLOCK) as usize;
        let file = tempfile::spooled_tempfile(SPOOL);
        let blocks = vec![Vec::new(); count];
        let mut chunks = Self { file, blocks, sizes: vec![0; count], block };
        let (key, mut row, mut written) = (Key::new(seed).with(0x6772_656d), 0, 0);
        let mut open: Vec<Vec<Pair>> = vec![Vec::new(); count];
        stream.reset()?;
        let read = |edges: &mut EdgeChunk| stream.next_chunk(edges);
        pipeline(read, |edges| {
            for (u, v) in edges.iter() {
                let chunk = key.below(row, count as u64) as usize;
                row += 1;
                if u != v {
                    open[chunk].push([u as u32, v as u32]);
                    if open[chunk].len() == block {
                        chunks.write(chunk, &mut open[chunk], &mut written)?;
                    }
                }
            }
            Ok(())
        })?;
        for (chunk, edges) in open.iter_mut().enumerate().filter(|(_, edges)| !edges.is_empty()) {
            chunks.write(chunk, edges, &mut written)?;
        }
        Ok(chunks)
    }

    /// Number of chunks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    fn write(&mut self, chunk: usize, edges: &mut Vec<Pair>, written: &mut u32) -> Result<()> {
        self.sizes[chunk] += edges.len() as u64;
        self.blocks[chunk].push(*written);
        *written += 1;
        // A chunk's last block may be short; the next one begins where a full one would.
        edges.resize(self.block, [0; 2]);
        let written = self.file.write_all(bytemuck::cast_slice(edges)).map_err(failed);
        edges.clear();
        written
    }

    /// Replaces `edges` by those of `chunk`.
    pub(super) fn read(&mut self, chunk: usize, edges: &mut Vec<Pair>) -> Result<()> {
        let size = self.sizes[chunk] as usize;
        edges.resize(size, [0; 2]);
        for (edges, &number) in edges.chunks_mut(self.block).zip(&self.blocks[chunk]) {
            let from = number as u64 * 8 * self.block as u64;
            self.file.seek(SeekFrom::Start(from)).map_err(failed)?;
            self.file.read_exact(bytemuck::cast_slice_mut(edges)).map_err(failed)?;
        }
        Ok(())
    }

    /// Calls `visit` with the edges of the given chunks, in order, reading one ahead.
    pub(super) fn each(
        &mut self,
        mut numbers: impl Iterator<Item = usize> + Send,
        mut visit: impl FnMut(&[Pair]) -> Result<()>,
    ) -> Result<()> {
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
        .hint("it needs 8 bytes an edge there; TMPDIR chooses another directory")
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
            let mut chunks = Chunks::deal(&mut stream, 7, 1, memory).unwrap();
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
}
