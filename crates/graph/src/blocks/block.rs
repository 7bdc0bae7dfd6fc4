//! Blocks and mini-batches: the output of samplers and the input of models.

use std::sync::{Arc, OnceLock};

use gnarl_common::Buf;

/// Per-node facts shared by all blocks of a mini-batch. Entry `i` belongs to input node `i`;
/// the nodes of every inner block are a prefix.
#[derive(Debug, Default)]
pub struct NodeInfo {
    /// Ids in the whole dataset: the key of every random draw for the node (dropout).
    pub ids: Vec<u64>,
    /// In-degree in the whole graph, not in the sample or the part.
    pub degrees: Vec<u32>,
}

/// Features of the edges of a block: a row for each, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeRows {
    /// Values of a row.
    pub width: usize,
    /// The rows, one after the other.
    pub values: Vec<f32>,
}

impl EdgeRows {
    /// No rows of `width` values, with room for some.
    pub fn with_capacity(rows: usize, width: usize) -> Self {
        Self { width, values: Vec::with_capacity(rows * width) }
    }

    /// The row of an edge.
    fn row(&self, edge: usize) -> &[f32] {
        &self.values[edge * self.width..(edge + 1) * self.width]
    }

    /// Appends the mean of the rows of some edges, zeros for none.
    fn extend_mean(&mut self, of: &Self, edges: std::ops::Range<usize>) {
        let first = self.values.len();
        self.values.resize(first + self.width, 0.0);
        let mean = &mut self.values[first..];
        let scale = 1.0 / edges.len().max(1) as f32;
        for edge in edges {
            mean.iter_mut().zip(of.row(edge)).for_each(|(mean, value)| *mean += scale * value);
        }
    }
}

/// One layer of message passing: a bipartite graph from source to destination nodes in CSC form.
/// Destination nodes come first among the source nodes, in the same order: destination `i` is
/// source `i`.
#[derive(Debug)]
pub struct Block {
    num_dst: usize,
    num_src: usize,
    indptr: Vec<u32>,
    indices: Buf<u32>,
    weights: Option<Vec<f32>>,
    edge_features: Option<EdgeRows>,
    nodes: Arc<NodeInfo>,
    /// True if the set of edges is known to be symmetric.
    symmetric: bool,
    transpose: OnceLock<Transpose>,
    self_loops: OnceLock<Box<Block>>,
}

/// The edges grouped by source node, for backward passes that gather instead of scatter.
#[derive(Debug)]
pub struct Transpose {
    /// `num_src + 1` offsets into the two arrays below.
    pub indptr: Vec<u32>,
    /// Destination of each edge, ascending within a source.
    pub dst: Vec<u32>,
    /// Position of each edge in [`Block::indices`].
    pub edge: Vec<u32>,
}

impl Block {
    /// A block of `num_dst` destinations and `num_src` sources.
    ///
    /// `indptr` has `num_dst + 1` ascending offsets into `indices`; `indices` are below `num_src`;
    /// `weights`, if given, holds one value an edge; `nodes` covers at least `num_src` nodes.
    ///
    /// # Panics
    /// If the lengths disagree: samplers are the only callers, and a wrong block is a bug there.
    pub fn new(
        num_src: usize,
        indptr: Vec<u32>,
        indices: impl Into<Buf<u32>>,
        weights: Option<Vec<f32>>,
        nodes: Arc<NodeInfo>,
    ) -> Self {
        let indices = indices.into();
        let num_dst = indptr.len().checked_sub(1).expect("indptr holds at least one offset");
        assert!(num_dst <= num_src, "destinations are a prefix of the sources");
        assert_eq!(indptr[num_dst] as usize, indices.len());
        assert!(weights.as_ref().is_none_or(|w| w.len() == indices.len()));
        assert!(nodes.ids.len() >= num_src && nodes.degrees.len() >= num_src);
        debug_assert!(indptr.windows(2).all(|w| w[0] <= w[1]));
        debug_assert!(indices.iter().all(|&s| (s as usize) < num_src));
        let (transpose, self_loops) = (OnceLock::new(), OnceLock::new());
        Self {
            num_dst,
            num_src,
            indptr,
            indices,
            weights,
            edge_features: None,
            nodes,
            symmetric: false,
            transpose,
            self_loops,
        }
    }

    /// The block with features of its edges, if it has some.
    ///
    /// # Panics
    /// If there is not a row for each edge.
    pub fn with_edge_features(self, edge_features: Option<EdgeRows>) -> Self {
        let rows = |of: &EdgeRows| of.values.len() == of.width * self.num_edges();
        assert!(edge_features.as_ref().is_none_or(rows), "a row for each edge");
        Self { edge_features, ..self }
    }

    /// Detects symmetric edge sets, which need no separate lists by source. Pays for blocks that
    /// are kept; reads all edges, and finds symmetry only in ascending lists.
    pub fn with_symmetry(mut self) -> Self {
        self.symmetric = self.num_dst == self.num_src && self.is_own_transpose();
        self
    }

    /// With ascending destinations, each edge must be the next one in the list of its source.
    fn is_own_transpose(&self) -> bool {
        let mut next = self.indptr.clone();
        (0..self.num_dst).all(|d| {
            self.sources(d).iter().all(|&s| {
                let at = next[s as usize];
                next[s as usize] += 1;
                at < self.indptr[s as usize + 1] && self.indices[at as usize] == d as u32
            })
        })
    }

    /// Number of destination nodes.
    pub fn num_dst(&self) -> usize {
        self.num_dst
    }

    /// Number of source nodes, destinations included.
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

    /// Edge weights, where the graph has them or the sampler corrects by them.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// Features of the edges, where the sampler reads them.
    pub fn edge_features(&self) -> Option<&EdgeRows> {
        self.edge_features.as_ref()
    }

    /// Dataset ids of the source nodes; the first `num_dst` are the destinations'.
    pub fn ids(&self) -> &[u64] {
        &self.nodes.ids[..self.num_src]
    }

    /// Whole-graph in-degrees of the source nodes; the first `num_dst` are the destinations'.
    pub fn degrees(&self) -> &[u32] {
        &self.nodes.degrees[..self.num_src]
    }

    /// The block in which every destination is among its own sources: where it is not, an edge of
    /// weight 1 from it to itself comes first, with the mean features of the destination's edges.
    /// Built on first use and cached.
    pub fn with_self_loops(&self) -> &Block {
        self.self_loops.get_or_init(|| {
            let mut indptr = Vec::with_capacity(self.num_dst + 1);
            let mut indices = Vec::with_capacity(self.num_edges() + self.num_dst);
            let mut weights = self.weights.as_ref().map(|_| Vec::with_capacity(indices.capacity()));
            let own = self.edge_features.as_ref();
            let mut features =
                own.map(|of| EdgeRows::with_capacity(self.num_edges() + self.num_dst, of.width));
            indptr.push(0);
            for d in 0..self.num_dst {
                let edges = self.indptr[d] as usize..self.indptr[d + 1] as usize;
                let missing = !self.sources(d).contains(&(d as u32));
                indices.extend(missing.then_some(d as u32));
                indices.extend_from_slice(self.sources(d));
                if let (Some(out), Some(own)) = (&mut weights, &self.weights) {
                    out.extend(missing.then_some(1.0));
                    out.extend(&own[edges.clone()]);
                }
                if let (Some(out), Some(own)) = (&mut features, own) {
                    if missing {
                        out.extend_mean(own, edges.clone());
                    }
                    out.values.extend(&own.values[edges.start * own.width..edges.end * own.width]);
                }
                indptr.push(indices.len() as u32);
            }
            let block = Block::new(self.num_src, indptr, indices, weights, self.nodes.clone());
            Box::new(block.with_edge_features(features))
        })
    }

    /// The block without the edges for which `leaves` returns true, by dataset ids, source first.
    /// Sources and degrees stay.
    pub fn without(&self, leaves: impl Fn(u64, u64) -> bool) -> Self {
        let ids = self.ids();
        let (mut indptr, mut indices) = (vec![0], Vec::with_capacity(self.num_edges()));
        let mut weights = self.weights.as_ref().map(|_| Vec::with_capacity(self.num_edges()));
        let own = self.edge_features.as_ref();
        let mut features = own.map(|of| EdgeRows::with_capacity(self.num_edges(), of.width));
        for dst in 0..self.num_dst {
            for edge in self.indptr[dst] as usize..self.indptr[dst + 1] as usize {
                let src = self.indices[edge];
                if leaves(ids[src as usize], ids[dst]) {
                    continue;
                }
                indices.push(src);
                if let (Some(out), Some(own)) = (&mut weights, &self.weights) {
                    out.push(own[edge]);
                }
                if let (Some(out), Some(own)) = (&mut features, own) {
                    out.values.extend(own.row(edge));
                }
            }
            indptr.push(indices.len() as u32);
        }
        Self::new(self.num_src, indptr, indices, weights, self.nodes.clone())
            .with_edge_features(features)
    }

    /// Memory footprint in bytes, including the lists that backward passes read.
    pub fn bytes(&self) -> usize {
        let (edges, weights) = (self.num_edges(), self.weights.as_ref().map_or(0, Vec::len));
        let weights = weights + self.edge_features.as_ref().map_or(0, |rows| rows.values.len());
        let turned = if self.symmetric { 0 } else { 4 * self.num_src + 8 * edges };
        4 * (self.indptr.len() + edges + weights) + 12 * self.nodes.ids.len() + turned
    }

    /// The destinations of each source: offsets, and nodes. The block's own lists if it is known to
    /// be symmetric.
    pub fn out_lists(&self) -> (&[u32], &[u32]) {
        if self.symmetric {
            return (&self.indptr, &self.indices);
        }
        let transpose = self.transpose();
        (&transpose.indptr, &transpose.dst)
    }

    /// The edges grouped by source. Built on first use and cached; the pipeline's sampling stage
    /// calls this so that the compute stage finds it ready.
    pub fn transpose(&self) -> &Transpose {
        self.transpose.get_or_init(|| Transpose::of(self.num_src, &self.indptr, &self.indices))
    }
}

impl Transpose {
    /// The edges of `indices`, listed by destination at `offsets`, grouped by their `num_src`
    /// sources.
    pub fn of(num_src: usize, offsets: &[u32], indices: &[u32]) -> Self {
        let mut indptr = vec![0u32; num_src + 1];
        for &s in indices {
            indptr[s as usize + 1] += 1;
        }
        for i in 0..num_src {
            indptr[i + 1] += indptr[i];
        }
        let mut next = indptr.clone();
        let mut dst = vec![0u32; indices.len()];
        let mut edge = vec![0u32; indices.len()];
        for d in 0..offsets.len() - 1 {
            for e in offsets[d]..offsets[d + 1] {
                let slot = &mut next[indices[e as usize] as usize];
                dst[*slot as usize] = d as u32;
                edge[*slot as usize] = e;
                *slot += 1;
            }
        }
        Self { indptr, dst, edge }
    }
}

/// A mini-batch: the graph inputs of a training step.
#[derive(Debug)]
pub struct MiniBatch {
    /// Blocks from the input layer to the output layer; one per model layer. Subgraph samplers give
    /// every layer the same block.
    pub blocks: Vec<Arc<Block>>,
    /// Local ids (in the sampled graph) of the input nodes of `blocks[0]`; the nodes of every
    /// later block are a prefix, the seeds first of all.
    pub input_nodes: Vec<u32>,
    /// Rows of the last block's output that enter the loss.
    pub targets: Vec<u32>,
    /// A weight for each target's loss (GraphSAINT's normalization), or all 1.
    pub target_weights: Option<Vec<f32>>,
}

impl MiniBatch {
    /// Edges over all blocks.
    pub fn num_edges(&self) -> usize {
        self.blocks.iter().map(|block| block.num_edges()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_leave_by_dataset_ids_with_their_weights() {
        let nodes = Arc::new(NodeInfo { ids: vec![40, 7, 9], degrees: vec![2, 1, 0] });
        let weights = Some(vec![0.1, 0.2, 0.3]);
        let block = Block::new(3, vec![0, 2, 3], vec![1, 2, 0], weights, nodes);
        let left = block.without(|src, dst| (src, dst) == (9, 40));
        assert_eq!((left.indptr(), left.indices()), (&[0, 1, 2][..], &[1, 0][..]));
        assert_eq!(left.weights(), Some(&[0.1, 0.3][..]));
        assert_eq!((left.ids(), left.degrees()), (block.ids(), block.degrees()));
    }

    #[test]
    fn features_of_edges_stay_with_them() {
        let nodes = Arc::new(NodeInfo { ids: vec![40, 7, 9], degrees: vec![2, 1, 0] });
        let rows = EdgeRows { width: 2, values: vec![1.0, 2.0, 3.0, 6.0, 5.0, 5.0] };
        let block = Block::new(3, vec![0, 2, 3, 3], vec![1, 2, 1], None, nodes);
        let block = block.with_edge_features(Some(rows));
        let left = block.without(|src, dst| (src, dst) == (7, 40));
        assert_eq!(left.edge_features().unwrap().values, [3.0, 6.0, 5.0, 5.0]);
        // Nodes 0 and 2 have no loop; 2 has no edge at all.
        let looped = block.with_self_loops();
        assert_eq!(looped.indices(), [0, 1, 2, 1, 2]);
        let rows = &looped.edge_features().unwrap().values;
        assert_eq!(rows[..], [2.0, 4.0, 1.0, 2.0, 3.0, 6.0, 5.0, 5.0, 0.0, 0.0]);
    }
}
