//! The number of parts.

use gnarl_common::error::{Error, Result};
use gnarl_graph::Manifest;

/// Number of parts: given, or from the workers' memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// A given number.
    Count(usize),
    /// Some workers on each of some machines, see [`TwoLevel`](crate::TwoLevel).
    Levels {
        /// Number of machines.
        machines: usize,
        /// Workers on each.
        workers: usize,
    },
    /// The number that the workers' memory requires (CATGNN §3.2).
    Auto(Workers),
}

/// The workers that will train on the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Number of workers, q.
    pub count: usize,
    /// Bytes of memory of each, M.
    pub memory: u64,
    /// Bytes of it that training itself uses, T; two thirds of M if `None` (CATGNN §3.4).
    pub reserved: Option<u64>,
}

impl Parts {
    /// Machines and workers on each, where there are two levels.
    pub(crate) fn levels(self) -> Option<[usize; 2]> {
        match self {
            Self::Levels { machines, workers } => Some([machines, workers]),
            _ => None,
        }
    }

    /// The number of parts for data of `size` bytes: one a worker if they all fit into q·(M − T),
    /// else the smallest p with size / p ≤ M − T.
    ///
    /// # Errors
    /// If there are no workers or training leaves them no memory.
    pub fn resolve(self, size: u64) -> Result<usize> {
        let workers = match self {
            Self::Count(parts) => return Ok(parts),
            Self::Levels { machines, workers } => return Ok(machines.saturating_mul(workers)),
            Self::Auto(workers) => workers,
        };
        let Workers { count, memory, reserved } = workers;
        let room = memory.saturating_sub(reserved.unwrap_or((memory as u128 * 2 / 3) as u64));
        if count == 0 || room == 0 {
            return Err(Error::usage(format!(
                "{count} workers of {memory} bytes leave no room for a graph of {size} bytes"
            ))
            .hint(
                "automatic parts require at least one worker with more memory than training uses",
            ));
        }
        let smallest = usize::try_from(size.div_ceil(room)).unwrap_or(usize::MAX);
        Ok(smallest.max(count))
    }
}

/// Bytes of all columns of a dataset: the estimate of its size in memory (CATGNN §3.4).
pub(crate) fn data_size(manifest: &Manifest) -> u64 {
    let nodes = manifest.node_types.iter().flat_map(|t| &t.columns);
    let edges = manifest.edge_types.iter().flat_map(|t| &t.columns);
    nodes.chain(edges).map(|c| c.shape.iter().product::<u64>() * c.dtype.size() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_workers_then_memory() {
        let auto = |count, memory, reserved| Parts::Auto(Workers { count, memory, reserved });
        assert_eq!(auto(4, 300, None).resolve(400).unwrap(), 4);
        assert_eq!(auto(4, 300, None).resolve(401).unwrap(), 5);
        assert_eq!(auto(4, 300, Some(0)).resolve(1000).unwrap(), 4);
        assert_eq!(Parts::Count(7).resolve(1 << 40).unwrap(), 7);
        assert_eq!(auto(4, 300, Some(300)).resolve(1).unwrap_err().exit_code(), 2);
        assert_eq!(auto(0, 300, None).resolve(1).unwrap_err().exit_code(), 2);
    }
}
