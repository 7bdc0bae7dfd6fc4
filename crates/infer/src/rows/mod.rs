//! Rows between two layers: in memory, or in a file.

mod file;
mod memory;

use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;
use rayon::prelude::*;

use crate::budget::Budget;
use crate::needed::Needed;

/// Rows copied per task.
const TASK_ROWS: usize = 256;

/// The output of a layer, by node type.
#[derive(Debug, Default)]
pub struct Before {
    types: Vec<Option<(Needed, Values)>>,
}

/// Rows of one layer and type, in the order of needed nodes.
#[derive(Debug)]
enum Values {
    Memory(memory::Rows),
    File(file::Rows),
}

impl Values {
    fn width(&self) -> usize {
        match self {
            Self::Memory(rows) => rows.width,
            Self::File(rows) => rows.width,
        }
    }

    fn all(&self) -> &[f32] {
        match self {
            Self::Memory(rows) => &rows.values,
            Self::File(rows) => rows.values(),
        }
    }
}

impl Before {
    /// Width of the rows of a node type; 0 if the layer has none of it.
    pub fn width(&self, node_type: usize) -> usize {
        self.types.get(node_type).and_then(Option::as_ref).map_or(0, |(_, values)| values.width())
    }

    /// Number of node types.
    pub fn num_types(&self) -> usize {
        self.types.len()
    }

    /// The places of nodes and their rows, one after the other; none if the layer has none of the type.
    pub fn table(&self, node_type: usize) -> Option<(&Needed, &[f32])> {
        self.types.get(node_type)?.as_ref().map(|(needed, values)| (needed, values.all()))
    }

    /// The rows of `nodes`, in their order.
    ///
    /// # Errors
    /// If the layer was not computed for one of them.
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
        let Some((needed, values)) = self.types.get(node_type).and_then(Option::as_ref) else {
            return match nodes.first() {
                Some(&node) => Err(missing(node)),
                None => Ok(Tensor::zeros(0, 0)),
            };
        };
        let (width, all) = (values.width(), values.all());
        let mut out = Tensor::scratch(nodes.len(), columns.len());
        if columns.is_empty() {
            return Ok(out);
        }
        let tasks = out.data_mut().par_chunks_mut(TASK_ROWS * columns.len());
        tasks.zip(nodes.par_chunks(TASK_ROWS)).try_for_each(|(out, nodes)| {
            for (out, &node) in out.chunks_exact_mut(columns.len()).zip(nodes) {
                let place = needed.place(node).ok_or_else(|| missing(node))?;
                let first = place * width;
                out.copy_from_slice(&all[first + columns.start..first + columns.end]);
            }
            Ok(())
        })?;
        Ok(out)
    }
}

/// The output of a layer while it is computed.
pub struct After<'a> {
    budget: &'a Budget,
    /// Bytes of further rows that may be in memory.
    left: u64,
    types: Vec<Option<(Needed, Writer)>>,
}

enum Writer {
    Memory(memory::Rows),
    File(file::Writer),
}

impl<'a> After<'a> {
    /// Rows of the nodes `needed` of each type; `left` bytes of them may be in memory.
    pub fn new(budget: &'a Budget, types: usize, left: u64) -> Self {
        Self { budget, left, types: (0..types).map(|_| None).collect() }
    }

    /// Appends the rows of the next nodes of a type.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append(&mut self, node_type: usize, needed: &Needed, rows: &Tensor) -> Result<()> {
        let slot = &mut self.types[node_type];
        if slot.is_none() {
            let bytes = 4 * needed.len() as u64 * rows.cols() as u64;
            let writer = if bytes <= self.left {
                self.left -= bytes;
                Writer::Memory(memory::Rows::with_capacity(needed.len(), rows.cols()))
            } else {
                Writer::File(file::Writer::create(self.budget.scratch(), rows.cols())?)
            };
            *slot = Some((needed.clone(), writer));
        }
        match slot.as_mut().map(|(_, writer)| writer) {
            Some(Writer::Memory(all)) => {
                all.values.extend_from_slice(rows.data());
                Ok(())
            }
            Some(Writer::File(file)) => file.append(rows.data()),
            None => Ok(()),
        }
    }

    /// The finished layer, and the bytes of it that are in files.
    ///
    /// # Errors
    /// If a file cannot be written or mapped.
    pub fn finish(self) -> Result<(Before, u64)> {
        let mut spilled = 0;
        let of = |slot: Option<(Needed, Writer)>| -> Result<Option<(Needed, Values)>> {
            Ok(match slot {
                None => None,
                Some((needed, Writer::Memory(rows))) => Some((needed, Values::Memory(rows))),
                Some((needed, Writer::File(file))) => {
                    let rows = file.finish()?;
                    spilled += 4 * rows.values().len() as u64;
                    Some((needed, Values::File(rows)))
                }
            })
        };
        let types = self.types.into_iter().map(of).collect::<Result<_>>()?;
        Ok((Before { types }, spilled))
    }
}
