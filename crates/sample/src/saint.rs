//! GraphSAINT (Zeng et al., ICLR 2020): small subgraphs, with bias correction.

mod edge;
mod node;
mod walk;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::MiniBatch;

pub use edge::EdgeDraw;
pub use node::NodeDraw;
pub use walk::WalkDraw;

use crate::induced::{Induced, Targets};
use crate::{SampleGraph, Sampler, Scratch};

/// A node distribution for subgraphs (section 3.4, algorithm 2).
pub trait SaintDraw: Send + Sync {
    /// The name used in configurations.
    fn name(&self) -> &'static str;

    /// Appends the drawn nodes to `nodes`; they may repeat. A pure function of graph and `key`.
    fn draw(&self, graph: &SampleGraph, key: Key, nodes: &mut Vec<u32>);
}

/// A batch is the subgraph induced by a draw, shared by all layers; the loss is taken over its
/// training nodes.
///
/// Seeds are indices of draws within the epoch; several are united. Pre-sampling counts how often a
/// node (`C_v`) and an edge (`C_uv`) appear in `N` subgraphs (section 3.2). From these:
///
/// - Edge weights are `(k_v / d_v) · C_v / C_uv` for a destination with `k_v` edges in the
///   subgraph and `d_v` in the graph, times the graph's own weight. The *mean over a block's edges*
///   of weighted messages is then the paper's aggregator `Σ_u x_u / (d_v α_uv)`, `α = C_uv / C_v`.
/// - Target weights are `1 / λ_v = N / C_v`, scaled so that they average 1 over the targets.
///
/// Counts of 0 are taken as 1.
pub struct SaintSampler {
    graph: SampleGraph,
    draw: Box<dyn SaintDraw>,
    layers: usize,
    steps: usize,
    targets: Targets,
    node_counts: Vec<u32>,
    edge_counts: Vec<u32>,
    /// `N` times the expected number of targets of a subgraph, over the training nodes met.
    loss_scale: f32,
}

impl SaintSampler {
    /// Estimates the normalization coefficients for `train` on `graph` from `samples` subgraphs
    /// drawn with `key`. The paper takes enough for every node to appear about 50 times (N = 50·|V|
    /// over the subgraph's size).
    ///
    /// # Errors
    /// If `layers`, `samples` or the graph is empty, or a list is not inside the graph.
    pub fn prepare(
        draw: Box<dyn SaintDraw>,
        graph: &SampleGraph,
        train: &[u32],
        layers: usize,
        samples: usize,
        key: Key,
    ) -> Result<Self> {
        if layers == 0 || samples == 0 || graph.num_nodes() == 0 {
            return Err(Error::usage("GraphSAINT requires nodes, a layer and a pre-sample"));
        }
        let targets = Targets::new(graph.num_nodes(), train)?;
        let mut node_counts = vec![0u32; graph.num_nodes()];
        let mut edge_counts = vec![0u32; graph.num_edges()];
        let mut scratch = Scratch::new();
        let mut nodes = Vec::new();
        let mut seen = 0;
        let mut hits = 0;
        for sample in 0..samples {
            nodes.clear();
            draw.draw(graph, key.with(sample as u64), &mut nodes);
            let induced = targets.induce(graph, &nodes, &mut scratch)?;
            for &node in scratch.nodes() {
                node_counts[node as usize] += 1;
            }
            for &position in &induced.positions {
                edge_counts[position] += 1;
            }
            seen += scratch.nodes().len();
            hits += induced.num_targets;
        }
        let steps = (graph.num_nodes() * samples).div_ceil(seen.max(1));
        let reached = targets.iter().filter(|&v| node_counts[v as usize] > 0).count();
        let loss_scale = hits as f32 / reached.max(1) as f32;
        let graph = graph.clone();
        Ok(Self { graph, draw, layers, steps, targets, node_counts, edge_counts, loss_scale })
    }

    /// `C_v`: the number of pre-samples of each node.
    pub fn node_counts(&self) -> &[u32] {
        &self.node_counts
    }

    /// `C_uv`: the number of pre-samples of each edge of the graph's lists.
    pub fn edge_counts(&self) -> &[u32] {
        &self.edge_counts
    }

    fn edge_weights(&self, induced: &Induced, nodes: &[u32]) -> Vec<f32> {
        let view = self.graph.view();
        let mut weights = Vec::with_capacity(induced.positions.len());
        for (dst, &node) in nodes.iter().enumerate() {
            let count = self.node_counts[node as usize].max(1) as f32;
            let share = induced.degree(dst) as f32 / view.degree(node).max(1) as f32;
            let list = induced.indptr[dst] as usize..induced.indptr[dst + 1] as usize;
            for &position in &induced.positions[list] {
                let own = view.weights.map_or(1.0, |w| view.weight(w, position));
                weights.push(own * share * count / self.edge_counts[position].max(1) as f32);
            }
        }
        weights
    }
}

impl Sampler for SaintSampler {
    fn name(&self) -> &'static str {
        self.draw.name()
    }

    /// As many draws as cover the graph's number of nodes once, on average.
    fn epoch(&self, _train: &[u32], _batch_size: usize, _key: Key) -> Vec<Vec<u32>> {
        (0..self.steps as u32).map(|step| vec![step]).collect()
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let mut nodes = Vec::new();
        for &seed in seeds {
            self.draw.draw(&self.graph, key.with(seed.into()), &mut nodes);
        }
        let induced = self.targets.induce(&self.graph, &nodes, scratch)?;
        let weights = self.edge_weights(&induced, scratch.nodes());
        let loss = scratch.nodes()[..induced.num_targets]
            .iter()
            .map(|&v| self.loss_scale / self.node_counts[v as usize].max(1) as f32)
            .collect();
        let view = self.graph.view();
        let info = scratch.node_info(view);
        let batch = induced.into_batch((view, self.layers), Some(weights), info, scratch)?;
        Ok(MiniBatch { target_weights: Some(loss), ..batch })
    }
}
