//! Batches in the types that tensors of indices have.

use std::ops::Range;
use std::sync::Arc;

use gnarl_graph::blocks::Schema;

use crate::rows::{FeatureRows, LabelRows};

/// A batch: nodes and edges of each type in the order of the schema.
#[derive(Debug, PartialEq)]
pub struct Batch {
    /// The node and edge types.
    pub schema: Arc<Schema>,
    /// Number of the seeds' node type.
    pub seed_type: usize,
    /// The seeds among all of the loader, in the order of the epoch: places in the list that the loader was given.
    pub input_ids: Vec<i64>,
    /// The nodes of each type.
    pub nodes: Vec<BatchNodes>,
    /// The edges of each type.
    pub edges: Vec<BatchEdges>,
    /// The time of each seed, in temporal sampling.
    pub seed_times: Option<Vec<i64>>,
    /// The edges that the batch is around, if it is around edges.
    pub links: Option<BatchLinks>,
}

/// The edges that a batch is made around, and negatives, as positions among the nodes of their types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchLinks {
    /// Sources.
    pub sources: Vec<i64>,
    /// Destinations.
    pub destinations: Vec<i64>,
    /// Sources of negatives; none where those of the edges are kept.
    pub negative_sources: Vec<i64>,
    /// Destinations of negatives.
    pub negative_destinations: Vec<i64>,
}

/// The nodes of one type in a batch.
#[derive(Debug, Default, PartialEq)]
pub struct BatchNodes {
    /// Dataset ids: seeds in their order, then the nodes that each hop reached first.
    pub ids: Vec<i64>,
    /// Features, a row of values each, if asked for and there are any.
    pub features: Option<FeatureRows>,
    /// Labels, if asked for and there are any.
    pub labels: Option<LabelRows>,
    /// Times, if there are any.
    pub times: Option<Vec<i64>>,
    /// The seed whose tree each node is in, where each seed has one.
    pub trees: Option<Vec<i64>>,
    /// Number of seeds, and of the nodes of each hop.
    pub of_hop: Vec<i64>,
}

/// The edges of one type in a batch.
#[derive(Debug, Default, PartialEq)]
pub struct BatchEdges {
    /// Positions of all sources, then of all destinations: two rows of a matrix.
    pub ends: Vec<i64>,
    /// Row of each edge in the dataset; none of edges from parts.
    pub ids: Option<Vec<i64>>,
    /// Features, a row of values each, if asked for and there are any.
    pub features: Option<FeatureRows>,
    /// Weights, if there are any.
    pub weights: Option<Vec<f32>>,
    /// Times, if there are any.
    pub times: Option<Vec<i64>>,
    /// Number of edges of each hop.
    pub of_hop: Vec<i64>,
}

impl BatchEdges {
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Positions of the sources.
    pub fn sources(&self) -> &[i64] {
        &self.ends[..self.len()]
    }

    /// Positions of the destinations.
    pub fn destinations(&self) -> &[i64] {
        &self.ends[self.len()..]
    }
}

impl Batch {
    /// Number of seeds.
    pub fn num_seeds(&self) -> usize {
        self.input_ids.len()
    }

    /// The seeds among the nodes of their type.
    pub fn seeds(&self) -> Range<usize> {
        0..self.num_seeds()
    }
}
