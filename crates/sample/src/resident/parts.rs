//! Nodes and edges of the parts that come into memory.

use gnarl_common::{Buf, Result};
use gnarl_partition::LoadedBucket;

/// The nodes of a part.
#[derive(Debug, Clone)]
pub struct PartNodes {
    /// Number of the part.
    pub part: usize,
    /// Dataset ids of the nodes of each type, ascending.
    pub ids: Vec<Buf<u64>>,
    /// In-degrees in the whole graph over each edge type, of the nodes of the type where it ends.
    pub degrees: Vec<Buf<u32>>,
}

/// Edge buckets of the parts.
pub trait Buckets: Sync {
    /// Number of edges of a type from part `i` to part `j` of a bucket (i, j).
    fn len(&self, edge_type: usize, bucket: (usize, usize)) -> usize;

    /// Reads buckets (i, j), the edges of a type from part `i` to part `j`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, edge_type: usize, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>>;
}
