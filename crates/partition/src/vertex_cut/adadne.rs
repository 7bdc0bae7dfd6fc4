//! `adadne`: neighbor expansion with adaptive speed.

use gnarl_common::error::{Error, Result};
use gnarl_graph::EdgeStream;

use super::expansion::{self, Bounds, Part, Rules};
use super::partitioner::{EdgePartitioner, EdgeSink};
use crate::edge_cut::partitioner::PartitionOptions;

/// [`Dne`](super::Dne) whose parts slow down when they get ahead in nodes or edges (GLISP §III-B,
/// Equations 5 to 7): before each round, with `VS = |V_p|·k / Σ|V_q|` and `ES = |E_p|·k / Σ|E_q|`,
/// `λ_p ← λ_p · exp(α·(1 − VS) + β·(1 − ES))`.
///
/// That alone steers too slowly: a graph of 10⁵ to 10⁷ edges is gone in the few rounds that λ needs
/// to react, and the largest part ends with twice the mean. We add to the paper
/// * to the pace: λ does not exceed its initial value (nor vanish), so that who is behind goes at
///   [`Dne`](super::Dne)'s pace and who is ahead slows down; a part whose λ has fallen below a tenth
///   of that may round down to no node at all, and wait; if all that still grow are below, all speed
///   up alike until the fastest is there; a part gets no more than 1 % of its share of the open
///   edges by one-hop in a round;
/// * a part with 1.08 times its share of the edges stops, as in [`Dne`](super::Dne); the paper drops
///   that bound;
/// * at the end edges move until no part has more than 1.2 times the mean of the nodes (replicas)
///   or 1.09 times that of the edges: first edges between parts that hold both endpoints, which adds
///   no replica, then nodes with few edges in a crowded part, to where they add the fewest replicas.
///   Where the bounds hold already, nothing moves; after eight passes it ends, even if they do not.
///   The numbers were chosen on the graphs below.
///
/// Balances of nodes and edges and replication factor on power-law graphs:
///
/// | graph | p | `dne` | `adadne` | copies |
/// |---|---|---|---|---|
/// | ego_facebook | 4 | 1.23, 1.10, 1.25 | 1.20, 1.01, 1.35 | +8 % |
/// | ego_facebook | 8 | 1.53, 1.10, 1.55 | 1.20, 1.02, 1.52 | -1 % |
/// | ego_facebook | 16 | 1.62, 1.10, 1.74 | 1.20, 1.02, 1.97 | +13 % |
/// | ca_astroph | 4 | 1.15, 1.10, 1.42 | 1.09, 1.06, 1.48 | +5 % |
/// | ca_astroph | 8 | 1.17, 1.10, 1.77 | 1.03, 1.06, 1.79 | +1 % |
/// | ca_astroph | 16 | 1.24, 1.10, 2.01 | 1.13, 1.08, 1.97 | -2 % |
/// | chameleon | 4 | 1.18, 1.10, 1.38 | 1.06, 1.05, 1.29 | -7 % |
/// | chameleon | 8 | 1.39, 1.10, 1.79 | 1.18, 1.08, 1.50 | -16 % |
/// | chameleon | 16 | 2.08, 1.10, 2.15 | 1.20, 1.03, 1.91 | -11 % |
/// | tolokers | 4 | 1.46, 1.10, 1.37 | 1.15, 1.08, 1.51 | +10 % |
/// | tolokers | 8 | 1.92, 1.10, 2.07 | 1.20, 1.01, 2.13 | +3 % |
/// | tolokers | 16 | 1.78, 1.10, 2.78 | 1.20, 1.01, 2.83 | +2 % |
/// | web_cnr_2000 | 4 | 1.24, 1.10, 1.07 | 1.20, 1.06, 1.02 | -5 % |
/// | web_cnr_2000 | 8 | 1.43, 1.10, 1.12 | 1.20, 1.06, 1.04 | -7 % |
/// | web_cnr_2000 | 16 | 1.98, 1.10, 1.08 | 1.20, 1.08, 1.04 | -3 % |
/// | rmat-1m | 4 | 1.72, 1.10, 1.36 | 1.00, 1.00, 1.36 | +0 % |
/// | rmat-1m | 8 | 1.93, 1.10, 1.62 | 1.02, 1.00, 1.65 | +2 % |
/// | rmat-1m | 16 | 2.03, 1.10, 1.99 | 1.02, 1.01, 2.03 | +2 % |
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

/// Edges over their mean with which a part stops.
const MOST_EDGES: f64 = 1.08;

/// Bounds of the final moves, a little within those of GLISP's Table II: 1.25 and 1.10.
const BOUNDS: Bounds = Bounds { nodes: 1.2, edges: 1.09 };

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
                "invalid weights '{a}' and '{b}' of adadne: expected numbers of at least 0"
            )));
        }
        expansion::run(self.name(), edges, options, sink, self)
    }
}

impl Rules for AdaDne {
    fn lambda(&self) -> f64 {
        self.lambda
    }

    fn cap(&self, edges: u64, parts: usize) -> u64 {
        (MOST_EDGES * edges as f64 / parts as f64).ceil() as u64
    }

    fn batch(&self, left: u64, parts: usize) -> u64 {
        (BATCH * left as f64 / parts as f64).ceil() as u64
    }

    fn pace(&self, parts: &mut [Part], cap: u64) {
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
        let growing = parts.iter().zip(&speeds).filter(|(part, _)| part.edges < cap);
        let fastest = growing.map(|(_, &speed)| speed).fold(SLOWEST, f64::max);
        let wait = WAIT * self.lambda;
        // A little more than needed, so that rounding cannot leave the fastest part waiting.
        let scale = if fastest < wait { 1.1 * wait / fastest } else { 1.0 };
        for (part, speed) in parts.iter_mut().zip(speeds) {
            part.lambda = (scale * speed).clamp(SLOWEST, self.lambda);
        }
    }

    fn bounds(&self) -> Option<Bounds> {
        Some(BOUNDS)
    }

    fn count(&self, lambda: f64, size: usize) -> usize {
        let least = (lambda >= WAIT * self.lambda) as usize;
        ((lambda * size as f64) as usize).max(least)
    }
}
