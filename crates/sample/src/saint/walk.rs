//! The random walk sampler.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use super::SaintDraw;
use crate::SampleGraph;

/// Nodes of random walks along in-neighbors (section 3.4, random walk sampler). Roots are training
/// nodes, so that every subgraph has targets; pre-sampling corrects for it.
#[derive(Debug)]
pub struct WalkDraw {
    roots: Vec<u32>,
    walks: usize,
    length: usize,
}

impl WalkDraw {
    /// `walks` walks of `length` steps a subgraph, each from a uniform node of `roots`.
    ///
    /// # Errors
    /// If there are no roots.
    pub fn new(roots: &[u32], walks: usize, length: usize) -> Result<Self> {
        if roots.is_empty() {
            return Err(Error::usage("random walks require at least one root"));
        }
        Ok(Self { roots: roots.to_vec(), walks, length })
    }
}

impl SaintDraw for WalkDraw {
    fn name(&self) -> &'static str {
        "saint-walk"
    }

    fn draw(&self, graph: &SampleGraph, key: Key, nodes: &mut Vec<u32>) {
        let view = graph.view();
        for walk in 0..self.walks as u64 {
            let key = key.with(walk);
            let mut node = self.roots[key.below(0, self.roots.len() as u64) as usize];
            nodes.push(node);
            for step in 1..=self.length as u64 {
                if node as usize >= view.num_nodes() {
                    break;
                }
                let Ok((start, degree @ 1..)) = view.list(node) else { break };
                node = view.indices[start + key.below(step, degree.into()) as usize];
                nodes.push(node);
            }
        }
    }
}
