//! Orders in which the edges of a type are read: as they are stored, or list after list.

use gnarl_common::error::{Error, Result};
use gnarl_graph::{CHUNK_EDGES, Dataset, DatasetEdges, EdgeChunk, EdgeStream, Narrow, Triple};

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
    indptr: Narrow,
    indices: Narrow,
    /// Row of each edge; none if rows equal positions.
    rows: Option<Narrow>,
    destination: u64,
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
    /// If there are no lists, or they have other edges.
    pub(crate) fn new(dataset: &Dataset, triple: &Triple, count: u64) -> Result<Self> {
        let column = |name: &str| {
            let column = dataset.edge_column(triple, name)?;
            column.map(|column| Narrow::of(&column)).transpose()
        };
        let needed = |name: &str| {
            let lacks = || {
                let dir = dataset.dir().display();
                Error::invalid(format!("{dir}: {triple}: column {name} is missing"))
            };
            column(name)?.ok_or_else(lacks)
        };
        let indptr = needed("csc.indptr")?;
        let indices = needed("csc.indices")?;
        let found = indices.len() as u64;
        if found != count || indptr.is_empty() || indptr.get(indptr.len() as u64 - 1) != count {
            return Err(Error::invalid(format!(
                "{}: {triple}: in-neighbor lists of {found} edges for {count}",
                dataset.dir().display()
            )));
        }
        let rows = column("csc.edge")?;
        Ok(Self { indptr, indices, rows, destination: 0, position: 0, forgotten: 0 })
    }
}

impl EdgeOrder for ByList {
    fn next(&mut self, edges: &mut EdgeChunk, rows: &mut Vec<u64>) -> Result<bool> {
        edges.clear();
        rows.clear();
        let indptr = self.indptr.as_slice();
        let indices = self.indices.as_slice();
        let end = (self.position + CHUNK_EDGES).min(self.indices.len());
        while self.position < end {
            let last = indptr.get(self.destination as usize + 1) as usize;
            let list = self.position..last.min(end);
            edges.src.extend(indices.range(list.clone()));
            edges.dst.resize(edges.src.len(), self.destination);
            match &self.rows {
                Some(edge) => rows.extend(edge.as_slice().range(list.clone())),
                None => rows.extend(list.clone().map(|position| position as u64)),
            }
            self.position = list.end;
            if self.position == last {
                self.destination += 1;
            }
        }
        if self.position - self.forgotten >= FORGET {
            self.indices.forget(self.forgotten..self.position);
            self.forgotten = self.position;
        }
        Ok(!edges.is_empty())
    }
}
