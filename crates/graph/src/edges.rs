//! Edge streams: edges in chunks, readable again from the start, without holding the graph.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gnarl_common::{DType, Error, Result, ResultExt, integrity};

use crate::column::ColumnSpec;

/// A chunk of edges, and the buffer that is refilled.
#[derive(Debug, Clone, Default)]
pub struct EdgeChunk {
    /// Source ids.
    pub src: Vec<u64>,
    /// Destination ids, as many.
    pub dst: Vec<u64>,
}

impl EdgeChunk {
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.src.len()
    }

    /// Returns whether the chunk has no edges.
    pub fn is_empty(&self) -> bool {
        self.src.is_empty()
    }

    /// Clears the edges, keeping the buffers.
    pub fn clear(&mut self) {
        self.src.clear();
        self.dst.clear();
    }

    /// The edges as pairs.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.src.iter().copied().zip(self.dst.iter().copied())
    }
}

/// Default chunk size of a stream: 1 MiB of ids, inside a core's L2 cache.
pub const CHUNK_EDGES: usize = 1 << 16;

/// A graph as a sequence of edges.
pub trait EdgeStream: Send {
    /// Number of nodes; every id is below it.
    fn num_nodes(&self) -> u64;
    /// Number of edges in one pass.
    fn num_edges(&self) -> u64;
    /// Goes back to the first edge.
    fn reset(&mut self) -> Result<()>;
    /// Replaces the chunk's edges by the next ones; `false` when there are no more.
    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool>;

    /// Calls `visit` with every edge from the start to the end.
    fn for_each(&mut self, visit: &mut dyn FnMut(u64, u64)) -> Result<()>
    where
        Self: Sized,
    {
        for_each_edge(self, visit)
    }
}

/// Runs over a whole stream from its start.
pub fn for_each_edge(stream: &mut dyn EdgeStream, visit: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let mut chunk = EdgeChunk::default();
    stream.reset()?;
    while stream.next_chunk(&mut chunk)? {
        for (src, dst) in chunk.iter() {
            visit(src, dst);
        }
    }
    Ok(())
}

/// Edges in memory.
#[derive(Debug, Clone)]
pub struct MemoryEdges {
    num_nodes: u64,
    edges: EdgeChunk,
    chunk: usize,
    next: usize,
}

impl MemoryEdges {
    /// A stream over the given edges.
    ///
    /// # Errors
    /// If an id is not below `num_nodes`, naming its row.
    pub fn new(num_nodes: u64, edges: impl IntoIterator<Item = (u64, u64)>) -> Result<Self> {
        let (src, dst): (Vec<u64>, Vec<u64>) = edges.into_iter().unzip();
        for (row, &id) in src.iter().enumerate().chain(dst.iter().enumerate()) {
            if id >= num_nodes {
                return Err(Error::invalid(format!(
                    "edge {row}: id {id} is not below the number of nodes, {num_nodes}"
                )));
            }
        }
        Ok(Self { num_nodes, edges: EdgeChunk { src, dst }, chunk: CHUNK_EDGES, next: 0 })
    }
}

impl EdgeStream for MemoryEdges {
    fn num_nodes(&self) -> u64 {
        self.num_nodes
    }

    fn num_edges(&self) -> u64 {
        self.edges.len() as u64
    }

    fn reset(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        let end = (self.next + self.chunk).min(self.edges.len());
        chunk.clear();
        chunk.src.extend_from_slice(&self.edges.src[self.next..end]);
        chunk.dst.extend_from_slice(&self.edges.dst[self.next..end]);
        self.next = end;
        Ok(!chunk.is_empty())
    }
}

/// Reads an id column in order through a buffer, so that the file's pages do not count as the
/// process's memory.
pub(crate) struct IdReader {
    path: PathBuf,
    file: BufReader<File>,
    start: u64,
    dtype: DType,
    left: u64,
    rows: u64,
    bytes: Vec<u8>,
    check: Option<Check>,
}

/// A bound of ids, and the checksum of those read so far.
struct Check {
    nodes: u64,
    expected: u32,
    found: crc32fast::Hasher,
}

impl IdReader {
    pub(crate) fn open(dir: &Path, spec: &ColumnSpec) -> Result<Self> {
        if !matches!(spec.dtype, DType::U32 | DType::U64) {
            let path = dir.join(&spec.file);
            return Err(Error::invalid(format!("{}: not an id column", path.display())));
        }
        Self::of_bits(dir, spec)
    }

    /// Reads a column of one value a row, of 2, 4 or 8 bytes, by its bits.
    pub(crate) fn of_bits(dir: &Path, spec: &ColumnSpec) -> Result<Self> {
        let path = dir.join(&spec.file);
        let header = spec.header(&path)?;
        let mut file = BufReader::with_capacity(1 << 18, File::open(&path).at(&path)?);
        file.seek(SeekFrom::Start(header.offset)).at(&path)?;
        let rows = header.shape[0];
        let bytes = Vec::new();
        Ok(Self {
            path,
            file,
            start: header.offset,
            dtype: spec.dtype,
            left: rows,
            rows,
            bytes,
            check: None,
        })
    }

    /// The reader of ids below `nodes`: reading fails where one is not, and at the end if the checksum differs.
    pub(crate) fn checked(self, spec: &ColumnSpec, nodes: u64) -> Self {
        let check = Check { nodes, expected: spec.crc32, found: crc32fast::Hasher::new() };
        Self { check: Some(check), ..self }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn rewind(&mut self) -> Result<()> {
        self.left = self.rows;
        if let Some(check) = &mut self.check {
            check.found.reset();
        }
        self.file.seek(SeekFrom::Start(self.start)).at(&self.path).map(drop)
    }

    /// Appends up to `limit` values plus `offset` to `out`; returns their number.
    pub(crate) fn read(&mut self, limit: usize, offset: u64, out: &mut Vec<u64>) -> Result<usize> {
        let count = (limit as u64).min(self.left) as usize;
        self.bytes.resize(count * self.dtype.size(), 0);
        self.file.read_exact(&mut self.bytes).at(&self.path)?;
        let before = out.len();
        match self.dtype.size() {
            2 => {
                let words = self.bytes.as_chunks().0.iter();
                out.extend(words.map(|&b| u64::from(u16::from_le_bytes(b)) + offset));
            }
            4 => {
                let words = self.bytes.as_chunks().0.iter();
                out.extend(words.map(|&b| u64::from(u32::from_le_bytes(b)) + offset));
            }
            _ => {
                let words = self.bytes.as_chunks().0.iter();
                // Larger ones than there can be are found below.
                out.extend(words.map(|&b| u64::from_le_bytes(b).saturating_add(offset)));
            }
        }
        self.left -= count as u64;
        if let Some(check) = &mut self.check {
            let nodes = check.nodes + offset;
            if out[before..].iter().fold(0, |most, &id| most.max(id)) >= nodes && count > 0 {
                let row = out[before..].iter().position(|&id| id >= nodes).unwrap_or(0);
                let path = self.path.display();
                let id = out[before + row] - offset;
                let row = self.rows - self.left - count as u64 + row as u64;
                let expected = check.nodes;
                return Err(Error::invalid(format!(
                    "{path}: row {row} holds {id}, expected a node below {expected}"
                ))
                .hint("the file is damaged, or is not one that gnarl wrote"));
            }
            check.found.update(&self.bytes);
            if self.left == 0 && check.found.clone().finalize() != check.expected {
                return Err(integrity::damaged(&self.path));
            }
        }
        Ok(count)
    }
}

/// The edges of a dataset, type after type, in graph-wide ids.
pub struct DatasetEdges {
    num_nodes: u64,
    num_edges: u64,
    types: Vec<TypeReader>,
    current: usize,
}

pub(crate) struct TypeReader {
    pub(crate) src: IdReader,
    pub(crate) dst: IdReader,
    pub(crate) src_offset: u64,
    pub(crate) dst_offset: u64,
}

impl DatasetEdges {
    pub(crate) fn new(num_nodes: u64, types: Vec<TypeReader>) -> Self {
        let num_edges = types.iter().map(|t| t.src.rows()).sum();
        Self { num_nodes, num_edges, types, current: 0 }
    }
}

impl EdgeStream for DatasetEdges {
    fn num_nodes(&self) -> u64 {
        self.num_nodes
    }

    fn num_edges(&self) -> u64 {
        self.num_edges
    }

    fn reset(&mut self) -> Result<()> {
        self.current = 0;
        for t in &mut self.types {
            t.src.rewind()?;
            t.dst.rewind()?;
        }
        Ok(())
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        chunk.clear();
        while let Some(t) = self.types.get_mut(self.current) {
            if t.src.read(CHUNK_EDGES, t.src_offset, &mut chunk.src)? > 0 {
                t.dst.read(CHUNK_EDGES, t.dst_offset, &mut chunk.dst)?;
                return Ok(true);
            }
            self.current += 1;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_edges_can_be_read_twice() {
        let edges: Vec<(u64, u64)> = (0..100_000).map(|i| (i % 10, i % 7)).collect();
        let mut stream = MemoryEdges::new(10, edges.clone()).unwrap();
        for _ in 0..2 {
            let mut seen = Vec::new();
            stream.for_each(&mut |s, d| seen.push((s, d))).unwrap();
            assert_eq!(seen, edges);
        }
        assert!(MemoryEdges::new(3, [(0, 1), (2, 3)]).unwrap_err().to_string().contains("edge 1"));
    }
}
