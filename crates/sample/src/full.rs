//! Full neighborhoods, for evaluation and full-batch training.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_graph::blocks::{Block, MiniBatch, NodeInfo};

use crate::{SampleGraph, Sampler, Scratch, UniformSampler};

/// Takes every in-neighbor of every node, so that a batch's result is exact.
#[derive(Debug, Clone)]
pub struct FullSampler(UniformSampler);

impl FullSampler {
    /// Complete neighborhoods of `layers` hops in `graph`.
    ///
    /// # Errors
    /// If `layers` is 0.
    pub fn new(graph: &SampleGraph, layers: usize) -> Result<Self> {
        UniformSampler::new(graph, &vec![-1; layers]).map(Self)
    }
}

impl Sampler for FullSampler {
    fn name(&self) -> &'static str {
        "full"
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        self.0.sample(seeds, key, scratch)
    }
}

/// The whole graph as one batch: all nodes are destinations and targets, in local order, and all
/// `layers` share one block.
///
/// # Errors
/// As [`whole_block`].
pub fn whole_graph(graph: &SampleGraph, layers: usize) -> Result<MiniBatch> {
    let block = Arc::new(whole_block(graph)?);
    let nodes: Vec<u32> = (0..graph.num_nodes() as u32).collect();
    Ok(MiniBatch {
        blocks: vec![block; layers],
        input_nodes: nodes.clone(),
        targets: nodes,
        target_weights: None,
    })
}

/// The whole graph as one block: all nodes are destinations, in local order. Its sources are those of the
/// graph, not a copy.
///
/// # Errors
/// If the lists are not inside the graph, or there are more edges than 32-bit offsets.
pub fn whole_block(graph: &SampleGraph) -> Result<Block> {
    let view = graph.view();
    if u32::try_from(view.indices.len()).is_err() {
        let message = format!("{} edges exceed one block's 4 294 967 295", view.indices.len());
        return Err(
            Error::new(Kind::Limit, message).hint("train in mini-batches or partition the graph")
        );
    }
    let nodes = graph.num_nodes();
    for node in 0..nodes as u32 {
        view.list(node)?;
    }
    if let Some(&source) = view.indices.iter().find(|&&s| s as usize >= nodes) {
        return Err(view.bad_source(source));
    }
    let info = NodeInfo {
        ids: (0..nodes as u32).map(|v| view.id(v)).collect(),
        degrees: (0..nodes as u32).map(|v| view.degree(v)).collect(),
    };
    let weights =
        view.weights.map(|w| (0..view.indices.len()).map(|p| view.weight(w, p)).collect());
    let edge_features = view.rows_of(0..view.indices.len())?;
    let indptr = (0..=nodes).map(|v| view.indptr.get(v) as u32).collect();
    let block = Block::new(nodes, indptr, graph.csc().indices.clone(), weights, Arc::new(info));
    Ok(block.with_edge_features(edge_features))
}
