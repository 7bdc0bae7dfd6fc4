//! Scratch memory of a sampling thread, reused between batches.

use std::sync::Arc;

use gnarl_common::{Error, Kind, Result};
use gnarl_graph::blocks::{Block, EdgeRows, MiniBatch, NodeInfo};

use crate::positions::Positions;
use crate::temporal::Pairs;
use crate::view::View;

/// Reusable memory of one sampling thread; works for any graph and sampler, in any order.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The batch's nodes in order of first appearance.
    positions: Positions,
    /// In-neighbor lists of the current hop's destinations: start and degree.
    pub(crate) lists: Vec<(usize, u32)>,
    /// Spare set for large draws.
    pub(crate) seen: Vec<u32>,
    /// The batch's nodes in temporal sampling, where a node may occur at several times.
    pub(crate) pairs: Pairs,
}

/// One hop's edges before the blocks are put together.
pub(crate) struct Hop {
    pub num_src: usize,
    pub indptr: Vec<u32>,
    pub indices: Vec<u32>,
    pub weights: Option<Vec<f32>>,
    pub edge_features: Option<EdgeRows>,
}

impl Scratch {
    /// Empty scratch memory; it grows to the graph on first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the batch and makes `seeds`, of a graph of `num_nodes` nodes, the first nodes;
    /// returns each seed's position.
    pub(crate) fn start(&mut self, num_nodes: usize, seeds: &[u32]) -> Vec<u32> {
        self.clear(num_nodes);
        let mut positions = seeds.to_vec();
        self.reserve(seeds.len());
        self.insert_all(&mut positions);
        positions
    }

    /// Clears the batch and makes room for a graph of `num_nodes` nodes.
    pub(crate) fn clear(&mut self, num_nodes: usize) {
        self.positions.clear(num_nodes);
    }

    /// The batch's nodes so far.
    pub(crate) fn nodes(&self) -> &[u32] {
        self.positions.nodes()
    }

    /// Makes room for `more` new nodes.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.positions.reserve(more);
    }

    /// Prefetches the cache line that [`Scratch::insert_all`] needs for `node`.
    #[inline(always)]
    pub(crate) fn hint(&self, node: u32) {
        self.positions.hint(node);
    }

    /// Replaces nodes by their positions, appending those not met before. All must be nodes of the
    /// graph, and room reserved.
    #[inline]
    pub(crate) fn insert_all(&mut self, ids: &mut [u32]) {
        self.positions.insert_all(ids);
    }

    /// Position of `node` in the batch, if it is there.
    #[inline(always)]
    pub(crate) fn position(&self, node: u32) -> Option<u32> {
        self.positions.position(node)
    }

    /// Dataset ids and whole-graph degrees of the batch's nodes.
    pub(crate) fn node_info(&self, view: View<'_>) -> NodeInfo {
        let nodes = self.nodes();
        let ids = match view.ids {
            None => nodes.iter().map(|&v| u64::from(v)).collect(),
            Some(ids) => nodes.iter().map(|&v| ids.get(v as usize)).collect(),
        };
        NodeInfo { ids, degrees: nodes.iter().map(|&v| view.degree(v)).collect() }
    }

    /// The batch of `hops`, the seeds' hop first, whose nodes `info` is about.
    pub(crate) fn finish(&self, info: NodeInfo, hops: Vec<Hop>, targets: Vec<u32>) -> MiniBatch {
        assemble(self.nodes().to_vec(), info, hops, targets)
    }
}

/// The batch of `hops`, the seeds' hop first, with `input_nodes` and their `info`.
pub(crate) fn assemble(
    input_nodes: Vec<u32>,
    info: NodeInfo,
    hops: Vec<Hop>,
    targets: Vec<u32>,
) -> MiniBatch {
    let info = Arc::new(info);
    let block = |hop: Hop| {
        let Hop { num_src, indptr, indices, weights, edge_features } = hop;
        let block = Block::new(num_src, indptr, indices, weights, info.clone());
        Arc::new(block.with_edge_features(edge_features))
    };
    let blocks = hops.into_iter().rev().map(block).collect();
    MiniBatch { blocks, input_nodes, targets, target_weights: None }
}

/// Adds `more` edges to a block's offset.
#[inline(always)]
pub(crate) fn add_edges(total: u32, more: u32) -> Result<u32> {
    total.checked_add(more).ok_or_else(too_large)
}

#[cold]
fn too_large() -> Error {
    Error::new(Kind::Limit, "a block would exceed 4 294 967 295 edges")
        .hint("use smaller batches or fan-outs")
}
