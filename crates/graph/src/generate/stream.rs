//! Edges that are computed rather than read.

use std::ops::Range;

use gnarl_common::Result;
use rayon::prelude::*;

use crate::edges::{CHUNK_EDGES, EdgeChunk, EdgeStream};

/// A graph whose `i`-th draw is a pure function of `i`.
pub trait EdgeFunction: Send + Sync {
    /// Number of nodes; every id is below it.
    fn num_nodes(&self) -> u64;
    /// Number of draws.
    fn num_draws(&self) -> u64;
    /// Edges made by each draw: 2 when every edge comes with its reverse.
    fn edges_per_draw(&self) -> u64;
    /// Appends the edges of `draws`.
    fn draw(&self, draws: Range<u64>, chunk: &mut EdgeChunk);
}

/// Draws per task, independent of the number of threads.
const DRAWS: u64 = CHUNK_EDGES as u64;

/// Streams the edges of an [`EdgeFunction`] in the order of the draws. Chunks are computed by all
/// threads, a few at a time; the sequence does not depend on the number of threads.
pub struct DrawnEdges<F> {
    function: F,
    /// Chunks computed together; those from `ready` on have not been returned yet.
    chunks: Vec<EdgeChunk>,
    ready: usize,
    next: u64,
}

impl<F: EdgeFunction> DrawnEdges<F> {
    /// A stream over all draws.
    pub fn new(function: F) -> Self {
        Self { function, chunks: Vec::new(), ready: 0, next: 0 }
    }

    /// The edge function; frees the chunks.
    pub fn into_function(self) -> F {
        self.function
    }

    fn refill(&mut self) {
        let left = (self.function.num_draws() - self.next).div_ceil(DRAWS);
        let count = left.min(4 * rayon::current_num_threads() as u64) as usize;
        self.chunks.resize_with(count, EdgeChunk::default);
        let (function, first) = (&self.function, self.next);
        self.chunks.par_iter_mut().enumerate().for_each(|(i, chunk)| {
            let start = first + i as u64 * DRAWS;
            chunk.clear();
            function.draw(start..(start + DRAWS).min(function.num_draws()), chunk);
        });
        self.next = (first + count as u64 * DRAWS).min(self.function.num_draws());
        self.ready = 0;
    }
}

impl<F: EdgeFunction> EdgeStream for DrawnEdges<F> {
    fn num_nodes(&self) -> u64 {
        self.function.num_nodes()
    }

    fn num_edges(&self) -> u64 {
        self.function.num_draws() * self.function.edges_per_draw()
    }

    fn reset(&mut self) -> Result<()> {
        self.chunks.clear();
        (self.ready, self.next) = (0, 0);
        Ok(())
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        if self.ready == self.chunks.len() {
            self.refill();
        }
        chunk.clear();
        let Some(ready) = self.chunks.get_mut(self.ready) else { return Ok(false) };
        std::mem::swap(ready, chunk);
        self.ready += 1;
        Ok(true)
    }
}
