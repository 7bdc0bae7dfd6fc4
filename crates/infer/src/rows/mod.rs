//! Rows between two layers: in memory, in a mapped file, or in chunks of a file behind a cache.

mod after;
mod cache;
mod chunks;
mod file;
mod in_order;
mod memory;
mod pieces;

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;
use rayon::prelude::*;

use crate::places::Places;

pub use after::After;
pub use cache::{Cache, CacheMemory, ChunkReads};
pub use in_order::InOrder;
pub(crate) use pieces::Kept;
#[cfg(test)]
pub(crate) use pieces::Piece;

/// Rows copied per task.
const TASK_ROWS: usize = 256;

/// The output of a layer, by node type.
#[derive(Debug, Default)]
pub struct Before {
    types: Vec<Option<(Places, Values)>>,
}

/// Rows of one layer and type, in the order of their places.
#[derive(Debug)]
enum Values {
    Memory(memory::Rows),
    File(file::Rows),
    Chunks(chunks::Rows),
}

impl Values {
    fn width(&self) -> usize {
        match self {
            Self::Memory(rows) => rows.width,
            Self::File(rows) => rows.width,
            Self::Chunks(rows) => rows.width(),
        }
    }
}

impl Before {
    /// Width of the rows of a node type; 0 if the layer has none of it.
    pub fn width(&self, node_type: usize) -> usize {
        self.of(node_type).map_or(0, |(_, values)| values.width())
    }

    /// Number of node types.
    pub fn num_types(&self) -> usize {
        self.types.len()
    }

    /// The places of nodes and their rows, one after the other; none if the layer has none of the type, or they are read
    /// by chunks.
    pub fn table(&self, node_type: usize) -> Option<(&Places, &[f32])> {
        let (places, values) = self.of(node_type)?;
        match values {
            Values::Memory(rows) => Some((places, &rows.values)),
            Values::File(rows) => Some((places, rows.values())),
            Values::Chunks(_) => None,
        }
    }

    /// Returns whether rows of a type are read by chunks, so that a range should read each row once.
    pub fn is_chunked(&self, node_type: usize) -> bool {
        matches!(self.of(node_type), Some((_, Values::Chunks(_))))
    }

    /// Returns whether rows of a type are in a file that is mapped.
    pub(crate) fn in_file(&self, node_type: usize) -> bool {
        matches!(self.of(node_type), Some((_, Values::File(_))))
    }

    /// Rows of a type in the order of its nodes, to be read one after the other; none if they are in another order, or
    /// are read by chunks.
    pub fn in_order(&self, node_type: usize) -> Option<InOrder<'_>> {
        let (places, values) = self.of(node_type)?;
        let (file, values) = match values {
            Values::Memory(rows) => (None, &rows.values[..]),
            Values::File(rows) => (Some(rows), rows.values()),
            Values::Chunks(_) => return None,
        };
        let width = self.width(node_type);
        places.is_ascending().then_some(InOrder { places, file, values, width })
    }

    /// The chunks read so far, of all types.
    pub fn chunk_reads(&self) -> ChunkReads {
        let mut all = ChunkReads::default();
        for (_, values) in self.types.iter().flatten() {
            if let Values::Chunks(rows) = values {
                all.add(rows.reads());
            }
        }
        all
    }

    /// The rows of `nodes`, in their order.
    ///
    /// # Errors
    /// If the layer was not computed for one of them, or a file cannot be read.
    pub fn gather(&self, node_type: usize, nodes: &[u32]) -> Result<Tensor> {
        self.gather_columns(node_type, nodes, 0..self.width(node_type))
    }

    /// Some columns of the rows of `nodes`.
    ///
    /// # Errors
    /// As [`Before::gather`].
    pub fn gather_columns(
        &self,
        node_type: usize,
        nodes: &[u32],
        columns: std::ops::Range<usize>,
    ) -> Result<Tensor> {
        let missing = |node: u32| {
            Error::invalid(format!(
                "node {node} of type {node_type} has no row of the layer before"
            ))
        };
        let Some((places, values)) = self.of(node_type) else {
            return match nodes.first() {
                Some(&node) => Err(missing(node)),
                None => Ok(Tensor::zeros(0, 0)),
            };
        };
        let place = |node: u32| places.place(node).ok_or_else(|| missing(node));
        let all = match values {
            Values::Memory(rows) => &rows.values,
            Values::File(rows) => rows.values(),
            Values::Chunks(rows) => {
                let places = nodes.iter().map(|&node| place(node)).collect::<Result<Vec<_>>>()?;
                return rows.gather(&places, columns);
            }
        };
        let width = values.width();
        let mut out = Tensor::scratch(nodes.len(), columns.len());
        if columns.is_empty() {
            return Ok(out);
        }
        let tasks = out.data_mut().par_chunks_mut(TASK_ROWS * columns.len());
        tasks.zip(nodes.par_chunks(TASK_ROWS)).try_for_each(|(out, nodes)| {
            for (out, &node) in out.chunks_exact_mut(columns.len()).zip(nodes) {
                let first = place(node)? * width;
                out.copy_from_slice(&all[first + columns.start..first + columns.end]);
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn of(&self, node_type: usize) -> Option<&(Places, Values)> {
        self.types.get(node_type)?.as_ref()
    }
}
