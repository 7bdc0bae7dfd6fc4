//! Sweeps: one pass over all rows of the layer before in ascending order, which adds to the sums of many nodes.
//!
//! A range that gathers its inputs reads rows from anywhere: where they are beyond the memory for pages of files, each
//! costs a page. In-neighbors ascend, so the sums of as many nodes as memory holds can be made while the rows come by in
//! the order of the file, with the same additions. That reads the whole table once for each such stretch of nodes.

use std::str::FromStr;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::memory::available;
use gnarl_common::{Error, Result};
use gnarl_nn::Tensor;

use crate::budget::Budget;

/// Bytes read for a row that is not in memory: a page at least.
const PAGE: u64 = 4096;

/// The sums of a layer, made by sweeps.
pub trait Sweeper: Sync {
    /// Bytes of the table that a sweep reads, as far as it is in files.
    fn file_bytes(&self) -> u64;

    /// Returns whether a node has anything to add up; else its sum is zeros.
    fn adds_up(&self, node: u32) -> bool;

    /// Bytes of memory that the sum of such a node takes, with its list and place in it.
    fn node_bytes(&self, node: u32) -> usize;

    /// Number of rows that come by, and values of one.
    fn shape(&self) -> (usize, usize);

    /// Makes the sums of `nodes`, which ascend and all have something to add up: a row each, in `memory.sums`.
    ///
    /// # Errors
    /// If rows cannot be read, or lists are damaged.
    fn sweep(&self, nodes: &[u32], memory: &mut SweepMemory) -> Result<()>;
}

/// Memory of one sweep after the other: an allocator may keep what one has freed while the next one takes as much again.
#[derive(Debug, Default)]
pub struct SweepMemory {
    /// Of the sums.
    pub sums: Vec<f32>,
    /// Of a chunk of the rows that come by, and of the next one.
    pub chunks: [Vec<f32>; 2],
}

impl SweepMemory {
    /// Room within `memory` bytes for sweeps that make `sums` sums in all.
    pub(crate) fn within(memory: u64, sweeper: &dyn Sweeper, sums: usize) -> Self {
        let (rows, cols) = sweeper.shape();
        let room = |bytes: usize, rows: usize| Vec::with_capacity((bytes / 4).min(rows * cols));
        let chunk = || room(chunk_bytes(memory) / 2, rows);
        Self { sums: room(sum_bytes(memory), sums), chunks: [chunk(), chunk()] }
    }
}

/// The layers whose sums are made by sweeps. None of them changes the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sweeps {
    /// Those whose rows before are in files, beyond the memory for their pages, where that reads less.
    #[default]
    Auto,
    /// All that can be.
    Always,
    /// None.
    Never,
}

impl Sweeps {
    /// The names in commands, of [`Sweeps::Auto`], [`Sweeps::Always`] and [`Sweeps::Never`].
    pub const NAMES: [&'static str; 3] = ["auto", "always", "never"];

    /// Returns whether the sums of `nodes` are made by sweeps within `memory`, where `inputs` rows would be read otherwise.
    pub(crate) fn choose(
        self,
        sweeper: &dyn Sweeper,
        (nodes, inputs): (impl Iterator<Item = u32>, u64),
        (budget, memory): (&Budget, u64),
    ) -> bool {
        let table = sweeper.file_bytes();
        let pages = budget.pages(available().map(|memory| memory.left));
        match self {
            Self::Never => return false,
            Self::Always => return true,
            Self::Auto if table <= pages => return false,
            Self::Auto => (),
        }
        let sums: u64 = nodes.map(|node| bytes_of(sweeper, node) as u64).sum();
        let swept = sums.div_ceil(memory.max(1)).saturating_mul(table);
        let missing = 1.0 - pages as f64 / table as f64;
        (swept as f64) < inputs as f64 * PAGE as f64 * missing
    }
}

impl FromStr for Sweeps {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Auto, Self::Always, Self::Never];
        let found = all.into_iter().zip(Self::NAMES).find(|(_, name)| *name == text);
        found.map(|(sweeps, _)| sweeps).ok_or_else(|| unknown("choice", text, &Self::NAMES))
    }
}

/// Bytes of memory of a node of a stretch.
pub(crate) fn bytes_of(sweeper: &dyn Sweeper, node: u32) -> usize {
    // Its number, twice if it has a sum.
    if sweeper.adds_up(node) { 8 + sweeper.node_bytes(node) } else { 4 }
}

/// The sums of a stretch of nodes.
pub(crate) struct Swept {
    /// Those that have something to add up.
    nodes: Vec<u32>,
    cols: usize,
    memory: SweepMemory,
}

impl Swept {
    /// The sums of `nodes`, which ascend, by one sweep.
    ///
    /// # Errors
    /// Those of the sweep, or if it made another number of rows.
    pub fn new(sweeper: &dyn Sweeper, nodes: &[u32], mut memory: SweepMemory) -> Result<Self> {
        let nodes: Vec<u32> = nodes.iter().copied().filter(|&v| sweeper.adds_up(v)).collect();
        let (_, cols) = sweeper.shape();
        sweeper.sweep(&nodes, &mut memory)?;
        match memory.sums.len() == nodes.len() * cols {
            true => Ok(Self { nodes, cols, memory }),
            false => {
                let found = memory.sums.len();
                let nodes = nodes.len();
                Err(Error::invalid(format!("{found} values of sums of {cols} for {nodes} nodes")))
            }
        }
    }

    /// Gives the memory back.
    pub fn end(self) -> SweepMemory {
        self.memory
    }

    /// The sums of consecutive ones of the nodes.
    pub fn of(&self, nodes: &[u32]) -> Tensor {
        let cols = self.cols;
        let mut out = Tensor::zeros(nodes.len(), cols);
        if cols == 0 {
            return out;
        }
        let first = nodes.first().map_or(0, |first| self.nodes.partition_point(|v| v < first));
        let mut rows = (first..self.nodes.len()).peekable();
        for (node, out) in nodes.iter().zip(out.data_mut().chunks_exact_mut(cols)) {
            if let Some(row) = rows.next_if(|&row| self.nodes[row] == *node) {
                out.copy_from_slice(&self.memory.sums[row * cols..(row + 1) * cols]);
            }
        }
        out
    }
}

/// Bytes of the rows that come by, in a sweep within `memory`.
fn chunk_bytes(memory: u64) -> usize {
    (memory / 8) as usize
}

/// Bytes of the sums of a stretch of nodes in a sweep within `memory`.
pub(crate) fn sum_bytes(memory: u64) -> usize {
    (memory as usize - chunk_bytes(memory)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of so many bytes for each node over a table; odd nodes have nothing to add up.
    struct Table(u64, usize);

    impl Sweeper for Table {
        fn file_bytes(&self) -> u64 {
            self.0
        }

        fn adds_up(&self, node: u32) -> bool {
            node.is_multiple_of(2)
        }

        fn node_bytes(&self, _: u32) -> usize {
            self.1
        }

        fn shape(&self) -> (usize, usize) {
            (8, 1)
        }

        fn sweep(&self, nodes: &[u32], memory: &mut SweepMemory) -> Result<()> {
            memory.sums = nodes.iter().map(|&node| node as f32).collect();
            Ok(())
        }
    }

    #[test]
    fn nodes_without_a_sum_have_zeros() {
        let swept = Swept::new(&Table(0, 0), &[1, 2, 3, 4, 6, 7], SweepMemory::default()).unwrap();
        assert_eq!(swept.of(&[1, 2, 3]).data(), [0.0, 2.0, 0.0]);
        assert_eq!(swept.of(&[4, 6, 7]).data(), [4.0, 6.0, 0.0]);
        assert_eq!(swept.of(&[]).rows(), 0);
    }

    #[test]
    fn sweeps_are_made_where_they_read_less() {
        let beyond = 1 << 50;
        let choose = |sweeps: Sweeps, table, inputs| {
            sweeps.choose(&Table(table, 100), (0..1000, inputs), (&Budget::new(1 << 20), 10_000))
        };
        assert!(!choose(Sweeps::Auto, 1 << 10, u64::MAX / PAGE), "all of it stays in memory");
        assert!(choose(Sweeps::Auto, beyond, u64::MAX / PAGE));
        assert!(!choose(Sweeps::Auto, beyond, 1000), "few rows are read");
        assert!(choose(Sweeps::Always, 1 << 10, 1));
        assert!(!choose(Sweeps::Never, beyond, u64::MAX / PAGE));
    }
}
