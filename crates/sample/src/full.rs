//! All neighbours: evaluation, and full-batch training.

use std::sync::Arc;

use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};

use crate::{Block, MiniBatch, NodeInfo, SampleGraph, Sampler, Scratch, UniformSampler};

/// Takes every in-neighbour of every node, so that a batch's result is exact.
#[derive(Debug, Clone)]
pub struct FullSampler(UniformSampler);

impl FullSampler {
    /// Complete neighbourhoods of `layers` hops in `graph`.
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
/// If the lists are not inside the graph, or there are more edges than 32-bit offsets.
pub fn whole_graph(graph: &SampleGraph, layers: usize) -> Result<MiniBatch> {
    let view = graph.view();
    if u32::try_from(view.indices.len()).is_err() {
        let message = format!("{} edges exceed one block's 4 294 967 295", view.indices.len());
        return Err(
            Error::new(Kind::Limit, message).hint("train in mini-batches or partition the graph")
        );
    }
    let nodes: Vec<u32> = (0..graph.num_nodes() as u32).collect();
    for &node in &nodes {
        view.list(node)?;
    }
    if let Some(&source) = view.indices.iter().find(|&&s| s as usize >= nodes.len()) {
        return Err(view.bad_source(source));
    }
    let info = NodeInfo {
        ids: nodes.iter().map(|&v| view.id(v)).collect(),
        degrees: nodes.iter().map(|&v| view.degree(v)).collect(),
    };
    let weights =
        view.weights.map(|w| (0..view.indices.len()).map(|p| view.weight(w, p)).collect());
    let indptr = (0..=nodes.len()).map(|v| view.indptr.get(v) as u32).collect();
    let block = Block::new(nodes.len(), indptr, view.indices.to_vec(), weights, Arc::new(info));
    let block = Arc::new(block);
    Ok(MiniBatch {
        blocks: vec![block; layers],
        input_nodes: nodes.clone(),
        targets: nodes,
        target_weights: None,
    })
}
