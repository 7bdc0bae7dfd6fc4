//! Mini-batches of heterogeneous graphs in which all types share one order of nodes.

use std::ops::Range;
use std::sync::Arc;

use super::Block;
#[cfg(doc)]
use super::NodeInfo;

/// A mini-batch of a heterogeneous graph whose nodes of all types are rows of one matrix, and whose
/// layers are one block each.
///
/// Rows are in the order in which nodes were reached: the seeds, then what each hop added, by type.
/// So, as without types, the nodes of every block are a prefix of the input nodes, and destination
/// `i` is source `i`.
#[derive(Debug)]
pub struct FusedBatch {
    /// Blocks from the input layer to the output layer.
    ///
    /// [`NodeInfo::ids`] are dataset ids in a graph of one node type; otherwise numbers that the
    /// type's name and the dataset id decide. [`NodeInfo::degrees`] are over all edge types.
    pub blocks: Vec<FusedBlock>,
    /// What the rows are, one segment after the other.
    pub segments: Vec<Segment>,
    /// Row of each seed, of one type after the other.
    pub targets: Vec<u32>,
}

/// A layer of a [`FusedBatch`].
#[derive(Debug)]
pub struct FusedBlock {
    /// The edges of all types; those of each destination ascend by edge type, and so are a range
    /// for each.
    pub block: Arc<Block>,
    /// Number of each edge's type.
    pub edge_types: Vec<u16>,
    /// Position of each edge among those of its type in the layer.
    pub edges: Vec<u32>,
    /// In-degree in the whole graph over one edge type, for each destination and edge type by which
    /// it receives messages, in the order of the edges.
    pub group_degrees: Vec<u32>,
}

/// Successive rows that are nodes of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Number of the type.
    pub node_type: usize,
    /// Which of its input nodes.
    pub nodes: Range<usize>,
}
