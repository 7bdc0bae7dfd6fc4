//! The ranks of an inference.

use gnarl_common::Result;
use gnarl_engine::Communicator;

use super::owners::Owners;
use crate::bits::set_in;

/// Rows of a message, of all its receivers together.
const ROWS: usize = 1 << 14;

/// The ranks of an inference.
#[derive(Clone, Copy)]
pub struct Peers<'a> {
    pub(super) comm: &'a dyn Communicator,
    pub(super) owners: &'a dyn Owners,
}

impl<'a> Peers<'a> {
    /// The ranks of `comm`, which own nodes as `owners` says on each of them.
    pub fn new(comm: &'a dyn Communicator, owners: &'a dyn Owners) -> Self {
        Self { comm, owners }
    }

    /// Returns whether this is the first rank, which is given the rows.
    pub fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// This rank.
    pub(crate) fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Returns whether this rank computes a node.
    pub(super) fn owns(&self, node_type: usize, node: u32) -> bool {
        self.owners.rank_of(node_type, node) == self.comm.rank()
    }

    /// The nodes among those whose bits are set, by type, that this rank computes.
    pub(crate) fn own(&self, mut bits: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        for (node_type, bits) in bits.iter_mut().enumerate() {
            for node in set_in(&bits.clone()).filter(|&node| !self.owns(node_type, node)) {
                bits[node as usize / 64] &= !(1 << (node % 64));
            }
        }
        bits
    }

    /// Rows of a message to one of the ranks.
    pub(super) fn rows(&self) -> usize {
        (ROWS / self.comm.size()).max(1)
    }

    /// The sums of counts over all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn sums<const N: usize>(&self, mut counts: [u64; N]) -> Result<[u64; N]> {
        let all = self.comm.all_gather("inference: counts", bytemuck::cast_slice(&counts))?;
        counts.fill(0);
        for bytes in all {
            for (sum, &bytes) in counts.iter_mut().zip(bytes.as_chunks().0) {
                *sum += u64::from_le_bytes(bytes);
            }
        }
        Ok(counts)
    }

    /// The numbers of all ranks, one after the other.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn all_of(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let all = self.comm.all_gather("inference: numbers", bytemuck::cast_slice(numbers))?;
        let each = all.iter().flat_map(|bytes| bytes.as_chunks().0);
        Ok(each.map(|&bytes| u64::from_le_bytes(bytes)).collect())
    }

    /// The largest of numbers of all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub(crate) fn largest<const N: usize>(&self, mut numbers: [f64; N]) -> Result<[f64; N]> {
        let all = self.comm.all_gather("inference: times", bytemuck::cast_slice(&numbers))?;
        for bytes in all {
            for (most, &bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *most = f64::from_le_bytes(bytes).max(*most);
            }
        }
        Ok(numbers)
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// If a rank fails, or is late.
    pub(crate) fn meet(&self) -> Result<()> {
        self.comm.barrier("inference: a part of a layer")
    }
}
