//! `adadne`: neighbour expansion at an adaptive pace.

use gnarl_graph::EdgeStream;
use gnarl_graph::error::{Error, Result};

use super::expansion::{self, Part, Rules};
use super::partitioner::{EdgePartitioner, EdgeSink};
use crate::partitioner::PartitionOptions;

/// [`Dne`](super::Dne) whose parts slow down when they get ahead in nodes or edges (GLISP §III-B,
/// Equations 5 to 7): before each round, with `VS = |V_p|·k / Σ|V_q|` and `ES = |E_p|·k / Σ|E_q|`,
/// `λ_p ← λ_p · exp(α·(1 − VS) + β·(1 − ES))`. No part has a bound on its edges.
///
/// Four additions, without which a graph of 10⁵ to 10⁷ edges is gone in the few rounds that λ needs
/// to react, and the largest part ends with twice the mean:
/// * λ does not exceed its initial value (nor vanish): who is behind goes at [`Dne`](super::Dne)'s
///   pace, who is ahead slows down;
/// * a part whose λ has fallen below a tenth of that may round down to no node at all, and wait;
/// * if all are below, all speed up alike until the fastest is there;
/// * a part gets no more than 1 % of its share of the open edges by one-hop in a round.
///
/// Memory as [`Dne`](super::Dne).
#[derive(Debug, Clone, Copy)]
pub struct AdaDne {
    /// λ of every part at the start.
    pub lambda: f64,
    /// Weight of the balance of nodes.
    pub alpha: f64,
    /// Weight of the balance of edges.
    pub beta: f64,
}

impl Default for AdaDne {
    /// The paper's λ = 0.1, α = β = 1.
    fn default() -> Self {
        Self { lambda: 0.1, alpha: 1.0, beta: 1.0 }
    }
}

/// Part of its share of the open edges that a part may get in a round.
const BATCH: f64 = 0.01;

/// Share of the initial λ below which a part may wait.
const WAIT: f64 = 0.1;

/// λ never falls below, or it could not recover.
const SLOWEST: f64 = 1e-9;

impl EdgePartitioner for AdaDne {
    fn name(&self) -> &'static str {
        "adadne"
    }

    fn memory(&self, nodes: u64, edges: u64, parts: usize) -> u64 {
        expansion::memory(nodes, edges, parts)
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        if !(self.alpha >= 0.0 && self.beta >= 0.0) {
            let (a, b) = (self.alpha, self.beta);
            return Err(Error::usage(format!(
                "adadne: weights {a} and {b} are not both 0 or more"
            )));
        }
        expansion::run(self.name(), edges, options, sink, self)
    }
}

impl Rules for AdaDne {
    fn lambda(&self) -> f64 {
        self.lambda
    }

    fn cap(&self, _: u64, _: usize) -> u64 {
        u64::MAX
    }

    fn batch(&self, left: u64, parts: usize) -> u64 {
        (BATCH * left as f64 / parts as f64).ceil() as u64
    }

    fn pace(&self, parts: &mut [Part]) {
        let share = |count: u64, total: u64| count as f64 * parts.len() as f64 / total as f64;
        let nodes: u64 = parts.iter().map(|p| p.nodes).sum();
        let edges: u64 = parts.iter().map(|p| p.edges).sum();
        if edges == 0 {
            return;
        }
        let speed = |p: &Part| {
            let (vs, es) = (share(p.nodes, nodes), share(p.edges, edges));
            p.lambda * (self.alpha * (1.0 - vs) + self.beta * (1.0 - es)).exp()
        };
        let speeds: Vec<f64> = parts.iter().map(speed).collect();
        let fastest = speeds.iter().copied().fold(SLOWEST, f64::max);
        let wait = WAIT * self.lambda;
        // A little more than needed, so that rounding cannot leave the fastest part waiting.
        let scale = if fastest < wait { 1.1 * wait / fastest } else { 1.0 };
        for (part, speed) in parts.iter_mut().zip(speeds) {
            part.lambda = (scale * speed).clamp(SLOWEST, self.lambda);
        }
    }

    fn count(&self, lambda: f64, size: usize) -> usize {
        let least = (lambda >= WAIT * self.lambda) as usize;
        ((lambda * size as f64) as usize).max(least)
    }
}
