//! Heterogeneous blocks and batches.

use std::sync::{Arc, OnceLock};

use gnarl_graph::blocks::{Schema, Transpose};

use crate::scratch::Hop;

/// The edges of one type in a block, from nodes of its source type to nodes of its destination
/// type, in CSC form. Both count from 0 within their types.
#[derive(Debug)]
pub struct Relation {
    num_src: usize,
    indptr: Vec<u32>,
    indices: Vec<u32>,
    weights: Option<Vec<f32>>,
    degrees: Vec<u32>,
    transpose: OnceLock<Transpose>,
}

impl Relation {
    /// The edges found by a hop over one edge type; `degrees` are the destinations', `num_src` is
    /// known when all types are done.
    pub(super) fn new(hop: Hop, num_src: usize, degrees: Vec<u32>) -> Self {
        let Hop { indptr, indices, weights, .. } = hop;
        debug_assert_eq!(indptr.len(), degrees.len() + 1);
        Self { num_src, indptr, indices, weights, degrees, transpose: OnceLock::new() }
    }

    /// Number of destination nodes.
    pub fn num_dst(&self) -> usize {
        self.degrees.len()
    }

    /// Number of source nodes: all of the block's of that type.
    pub fn num_src(&self) -> usize {
        self.num_src
    }

    /// Number of edges.
    pub fn num_edges(&self) -> usize {
        self.indices.len()
    }

    /// Offsets of each destination's edges, `num_dst + 1` values.
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }

    /// Source of each edge.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The sources of destination `dst`.
    #[inline]
    pub fn sources(&self, dst: usize) -> &[u32] {
        &self.indices[self.indptr[dst] as usize..self.indptr[dst + 1] as usize]
    }

    /// Edge weights, where the edges of this type have them.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// In-degree of each destination over this edge type in the whole graph, not in the sample.
    pub fn degrees(&self) -> &[u32] {
        &self.degrees
    }

    /// Keeps the edges for which `keep` returns true, by source and destination.
    fn retain(&mut self, keep: impl Fn(usize, usize) -> bool) {
        let kept = |dst: usize, edge: u32| keep(self.indices[edge as usize] as usize, dst);
        let edges = |dst: usize| self.indptr[dst]..self.indptr[dst + 1];
        if (0..self.num_dst()).all(|dst| edges(dst).all(|edge| kept(dst, edge))) {
            return;
        }
        let (mut indptr, mut left) = (vec![0], Vec::with_capacity(self.indices.len()));
        for dst in 0..self.num_dst() {
            left.extend(edges(dst).filter(|&edge| kept(dst, edge)));
            indptr.push(left.len() as u32);
        }
        self.indices = left.iter().map(|&edge| self.indices[edge as usize]).collect();
        if let Some(weights) = &mut self.weights {
            *weights = left.iter().map(|&edge| weights[edge as usize]).collect();
        }
        (self.indptr, self.transpose) = (indptr, OnceLock::new());
    }

    /// The edges grouped by source, built on first use and cached, as
    /// [`Block::transpose`](gnarl_graph::blocks::Block::transpose).
    pub fn transpose(&self) -> &Transpose {
        self.transpose.get_or_init(|| Transpose::of(self.num_src, &self.indptr, &self.indices))
    }
}

/// One layer of message passing between nodes of several types. Among the source nodes of each type
/// its destination nodes come first, in the same order.
#[derive(Debug)]
pub struct HeteroBlock {
    num_dst: Vec<usize>,
    num_src: Vec<usize>,
    relations: Vec<Relation>,
}

impl HeteroBlock {
    pub(super) fn new(num_dst: Vec<usize>, num_src: Vec<usize>, relations: Vec<Relation>) -> Self {
        debug_assert!(num_dst.iter().zip(&num_src).all(|(dst, src)| dst <= src));
        Self { num_dst, num_src, relations }
    }

    /// Number of destination nodes of each type.
    pub fn num_dst(&self) -> &[usize] {
        &self.num_dst
    }

    /// Number of source nodes of each type, destinations included.
    pub fn num_src(&self) -> &[usize] {
        &self.num_src
    }

    /// The edges of each type, in the order of [`Schema::edge_types`]; types without sampled edges
    /// are included.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// Edges of all types.
    pub fn num_edges(&self) -> usize {
        self.relations.iter().map(Relation::num_edges).sum()
    }
}

/// A heterogeneous mini-batch: the graph inputs of a training step.
#[derive(Debug)]
pub struct HeteroBatch {
    /// The node and edge types, which all type indices refer to.
    pub schema: Arc<Schema>,
    /// Blocks from the input layer to the output layer, one per model layer.
    pub blocks: Vec<HeteroBlock>,
    /// Per node type the local ids (in the sampled graph) of the input nodes of `blocks[0]`;
    /// those of every later block are a prefix.
    pub input_nodes: Vec<Vec<u32>>,
    /// Per node type the dataset ids of the input nodes.
    pub ids: Vec<Vec<u64>>,
    /// Per node type with seeds its index, and the row of each seed among the nodes of that type,
    /// of which they are the first.
    pub targets: Vec<(usize, Vec<u32>)>,
}

impl HeteroBatch {
    /// Edges over all blocks.
    pub fn num_edges(&self) -> usize {
        self.blocks.iter().map(HeteroBlock::num_edges).sum()
    }

    /// Removes the edges for which `drop` returns true, by the index of their type and the dataset
    /// ids of source and destination. Nodes and in-degrees stay.
    pub fn remove(&mut self, drop: impl Fn(usize, u64, u64) -> bool) {
        for block in &mut self.blocks {
            for (edge_type, relation) in block.relations.iter_mut().enumerate() {
                let (src, dst) = self.schema.ends(edge_type);
                let (sources, destinations) = (&self.ids[src], &self.ids[dst]);
                relation.retain(|s, d| !drop(edge_type, sources[s], destinations[d]));
            }
        }
    }
}
