//! Mini-batches of heterogeneous graphs in which all types share one order of nodes.

use std::ops::Range;
use std::sync::Arc;

use super::Block;
#[cfg(doc)]
use super::NodeInfo;

/// A mini-batch of a heterogeneous graph whose nodes of all types are rows of one matrix, and whose
/// layers are one block each.
///
/// Rows are in the order in which nodes were reached: the seeds, then the nodes added by each hop,
/// by type. So, as in homogeneous batches, the nodes of every block are a prefix of the input
/// nodes, and destination `i` is source `i`.
#[derive(Debug)]
pub struct FusedBatch {
    /// Blocks from the input layer to the output layer.
    ///
    /// [`NodeInfo::ids`] are dataset ids in a graph of one node type; otherwise hashes of the
    /// type's name and the dataset id. [`NodeInfo::degrees`] are over all edge types, or over the sampled ones and 0
    /// for nodes that are no destinations.
    pub blocks: Vec<FusedBlock>,
    /// Node types of the rows, one segment after the other.
    pub segments: Vec<Segment>,
    /// Row of each seed, of one type after the other.
    pub targets: Vec<u32>,
}

/// A layer of a [`FusedBatch`].
#[derive(Debug)]
pub struct FusedBlock {
    /// The edges of all types; those of each destination ascend by edge type, so that each type is
    /// a range.
    pub block: Arc<Block>,
    /// Type index of each edge.
    pub edge_types: Vec<u16>,
    /// Position of each edge among those of its type in the layer.
    pub edges: Vec<u32>,
    /// Whole-graph in-degree over one edge type, per destination and edge type with sampled edges,
    /// in the order of the edges.
    pub group_degrees: Vec<u32>,
}

/// Successive rows that are nodes of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the type.
    pub node_type: usize,
    /// Range of its input nodes.
    pub nodes: Range<usize>,
}
