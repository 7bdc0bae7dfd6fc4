//! The number of passes of a partitioner over the edges.

use gnarl_common::error::Result;
use gnarl_graph::{EdgeChunk, EdgeStream, MemoryEdges};

/// A stream that counts the edges read from it.
pub(super) struct Counted {
    edges: MemoryEdges,
    read: u64,
}

impl Counted {
    pub fn new(edges: MemoryEdges) -> Self {
        Self { edges, read: 0 }
    }

    /// Number of complete passes over the edges.
    pub fn passes(&self) -> f64 {
        self.read as f64 / self.edges.num_edges().max(1) as f64
    }
}

impl EdgeStream for Counted {
    fn num_nodes(&self) -> u64 {
        self.edges.num_nodes()
    }

    fn num_edges(&self) -> u64 {
        self.edges.num_edges()
    }

    fn reset(&mut self) -> Result<()> {
        self.edges.reset()
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        let more = self.edges.next_chunk(chunk)?;
        self.read += if more { chunk.src.len() as u64 } else { 0 };
        Ok(more)
    }
}
