//! Orders in which the edges of a type are read: as they are stored, or list after list.

use gnarl_common::error::{Error, Result};
use gnarl_graph::{CHUNK_EDGES, Csc, Dataset, DatasetEdges, EdgeChunk, EdgeStream, Triple};

/// One pass over the edges of a type.
pub(crate) trait EdgeOrder {
    /// Replaces `edges` by the next ones, and `rows` by their rows in the edge columns; `false` when there are no more.
    ///
    /// # Errors
    /// If they cannot be read.
    fn next(&mut self, edges: &mut EdgeChunk, rows: &mut Vec<u64>) -> Result<bool>;
}

/// Edges by their rows.
pub(crate) struct ByRow {
    stream: DatasetEdges,
    row: u64,
}

impl ByRow {
    pub(crate) fn new(dataset: &Dataset, triple: &Triple) -> Result<Self> {
        Ok(Self { stream: dataset.edges_of(triple)?, row: 0 })
    }
}

impl EdgeOrder for ByRow {
    fn next(&mut self, edges: &mut EdgeChunk, rows: &mut Vec<u64>) -> Result<bool> {
        let more = self.stream.next_chunk(edges)?;
        rows.clear();
        rows.extend(self.row..self.row + edges.len() as u64);
        self.row += edges.len() as u64;
        Ok(more)
    }
}

/// Edges by their destinations, those of one by their sources: the order of in-neighbor lists.
pub(crate) struct ByList {
    csc: Csc,
    destination: u32,
    position: usize,
    /// Positions before this one are no longer in memory.
    forgotten: usize,
}

/// Edges whose pages are released together.
const FORGET: usize = 1 << 22;

impl ByList {
    /// The edges of `triple`, of which there are `count`.
    ///
    /// # Errors
    /// If the lists have other edges, or ids do not fit 32 bits.
    pub(crate) fn new(dataset: &Dataset, triple: &Triple, count: u64) -> Result<Self> {
        let csc = dataset.csc(triple)?;
        if csc.num_edges() as u64 != count {
            let found = csc.num_edges();
            return Err(Error::invalid(format!(
                "{}: {triple}: in-neighbor lists of {found} edges for {count}",
                dataset.dir().display()
            )));
        }
        Ok(Self { csc, destination: 0, position: 0, forgotten: 0 })
    }
}

impl EdgeOrder for ByList {
    fn next(&mut self, edges: &mut EdgeChunk, rows: &mut Vec<u64>) -> Result<bool> {
        edges.clear();
        rows.clear();
        let indptr = self.csc.indptr.as_slice();
        let end = (self.position + CHUNK_EDGES).min(self.csc.num_edges());
        while self.position < end {
            let last = indptr.get(self.destination as usize + 1) as usize;
            let list = self.position..last.min(end);
            edges.src.extend(self.csc.indices[list.clone()].iter().copied().map(u64::from));
            edges.dst.resize(edges.src.len(), self.destination.into());
            match &self.csc.edge {
                Some(edge) => rows.extend(edge.as_slice().range(list.clone())),
                None => rows.extend(list.clone().map(|position| position as u64)),
            }
            self.position = list.end;
            if self.position == last {
                self.destination += 1;
            }
        }
        if self.position - self.forgotten >= FORGET {
            self.csc.indices.forget(self.forgotten..self.position);
            self.forgotten = self.position;
        }
        Ok(!edges.is_empty())
    }
}
