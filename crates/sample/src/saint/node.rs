//! The random node sampler.

use gnarl_common::Result;
use gnarl_common::rng::Key;

use super::SaintDraw;
use crate::SampleGraph;

/// Nodes drawn with replacement with probability proportional to the squared norm of their column
/// of the normalized adjacency matrix (section 3.4, random node sampler).
#[derive(Debug)]
pub struct NodeDraw {
    /// Running sums of the probabilities' numerators.
    sums: Vec<f64>,
    draws: usize,
}

impl NodeDraw {
    /// `draws` nodes a subgraph. Reads all edges once.
    ///
    /// # Errors
    /// If a list is not inside the graph.
    pub fn new(graph: &SampleGraph, draws: usize) -> Result<Self> {
        let view = graph.view();
        let mut sums = vec![0f64; graph.num_nodes()];
        for node in 0..graph.num_nodes() as u32 {
            let (start, degree) = view.list(node)?;
            for &source in &view.indices[start..start + degree as usize] {
                let norm = sums.get_mut(source as usize).ok_or_else(|| view.bad_source(source))?;
                *norm += (f64::from(view.degree(node).max(1))).powi(-2);
            }
        }
        let mut total = 0.0;
        for sum in &mut sums {
            total += *sum;
            *sum = total;
        }
        Ok(Self { sums, draws })
    }
}

impl SaintDraw for NodeDraw {
    fn name(&self) -> &'static str {
        "saint-node"
    }

    fn draw(&self, _graph: &SampleGraph, key: Key, nodes: &mut Vec<u32>) {
        let total = self.sums.last().copied().unwrap_or(0.0);
        if total == 0.0 {
            return;
        }
        for c in 0..self.draws as u64 {
            let at = key.unit(c) * total;
            let node = self.sums.partition_point(|&sum| sum <= at);
            nodes.push(node.min(self.sums.len() - 1) as u32);
        }
    }
}
