//! The random edge sampler.

use gnarl_common::rng::Key;

use super::SaintDraw;
use crate::SampleGraph;

/// Both endpoints of edges drawn with replacement with probability proportional to
/// `1 / deg(u) + 1 / deg(v)` (section 3.4, random edge sampler).
///
/// On a symmetric graph that is a uniform node and a uniform neighbor of it, so nothing has to be
/// stored per edge; on a directed graph edges weigh `1 / deg(v)` by the destination's in-degree.
#[derive(Debug)]
pub struct EdgeDraw {
    draws: usize,
}

impl EdgeDraw {
    /// `draws` edges a subgraph.
    pub fn new(draws: usize) -> Self {
        Self { draws }
    }
}

impl SaintDraw for EdgeDraw {
    fn name(&self) -> &'static str {
        "saint-edge"
    }

    fn draw(&self, graph: &SampleGraph, key: Key, nodes: &mut Vec<u32>) {
        let view = graph.view();
        if view.indices.is_empty() {
            return;
        }
        // A node without in-neighbors is drawn again, a bounded number of times.
        let (wanted, mut found) = (self.draws as u64, 0);
        for c in 0..wanted.saturating_mul(64) {
            let node = key.below(2 * c, view.num_nodes() as u64) as u32;
            let Ok((start, degree)) = view.list(node) else { continue };
            if degree > 0 {
                let position = start + key.below(2 * c + 1, degree.into()) as usize;
                nodes.extend([node, view.indices[position]]);
                found += 1;
            }
            if found == wanted {
                return;
            }
        }
    }
}
