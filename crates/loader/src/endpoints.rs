//! Endpoints of the edges of a batch.

use crate::negatives::Negatives;

/// The edges that batches of a loader are around, but for their endpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EdgeKind {
    /// The node type of sources.
    pub source_type: usize,
    /// The node type of destinations.
    pub destination_type: usize,
    /// The negatives that batches bring.
    pub negatives: Negatives,
    /// The edges that neighborhoods leave out.
    pub left_out: Option<LeftOut>,
}

/// The edges of a batch as sampled edges, by which a model would see what it is to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// The edge type of the batch's edges.
    pub edge_type: usize,
    /// The edge type that has them the other way round, too.
    pub reversed: Option<usize>,
}

/// The nodes of an example or a negative, by seed type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub sources: Vec<u32>,
    pub destinations: Vec<u32>,
    pub negative_sources: Vec<u32>,
    pub negative_destinations: Vec<u32>,
}
