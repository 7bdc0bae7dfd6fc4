//! Expected sizes of sampled batches.

use super::counts::Counts;

/// Neighbor sampling parameters.
#[derive(Debug, Clone, Copy)]
pub struct Fanouts<'a> {
    /// Neighbors of a node at each hop, from the seeds outwards; `u32::MAX` takes all.
    pub each: &'a [u32],
    /// Seeds of a step over all ranks; 0 takes all training nodes at once.
    pub batch: u64,
}

/// The share of a graph that batches are drawn from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    /// Share of the nodes.
    pub nodes: f64,
    /// Share of a node's neighbors.
    pub neighbors: f64,
}

impl Within {
    /// The whole graph.
    pub const ALL: Self = Self { nodes: 1.0, neighbors: 1.0 };
}

/// Expected batches of one rank in an epoch. A model, not a bound: draws hit nodes
/// in proportion to their degree.
#[derive(Debug, Clone, Default)]
pub struct Batches {
    /// Optimizer steps.
    pub steps: u64,
    /// Edges of a batch at each hop, the seeds' first.
    pub edges: Vec<f64>,
    /// Distinct nodes of a batch up to each hop; the first are its seeds.
    pub nodes: Vec<f64>,
}

impl Batches {
    /// The batches of one of `ranks` `within` a graph of `counts`; the seeds are those of `counts`.
    pub fn expect(counts: &Counts, ranks: usize, within: Within, fanouts: Fanouts<'_>) -> Self {
        if counts.train == 0 {
            return Self::default();
        }
        let batch = if fanouts.batch == 0 { counts.train } else { fanouts.batch };
        let steps = counts.train.div_ceil(batch);
        let seeds = counts.train as f64 / steps as f64 / ranks as f64;
        let Within { nodes: share, neighbors: near } = within;
        let all = share * counts.nodes as f64;
        let mut draws = 0.0;
        let mut edges = Vec::new();
        let mut nodes = vec![seeds];
        for &fanout in fanouts.each {
            let fanout = f64::from(fanout);
            // Reached nodes other than seeds.
            let others = (1.0 - seeds / all).max(0.0);
            let drawn = |d: f64| (near * d).min(fanout);
            let more = seeds * mean(&drawn, counts) + others * again(draws, share, &drawn, counts);
            draws += more;
            edges.push(more);
            nodes.push(seeds + others * distinct(draws, share, counts));
        }
        Self { steps, edges, nodes }
    }
}

/// Expected distinct nodes of `draws` from a share of the nodes, a node's chance being
/// proportional to its out-degree: `Σ_v share·(1 − exp(−draws·d_v / (share·E)))`.
pub(super) fn distinct(draws: f64, share: f64, counts: &Counts) -> f64 {
    if share <= 0.0 {
        return 0.0;
    }
    let ends = share * counts.edges.max(1) as f64;
    share * counts.out_degrees.sum(|d| 1.0 - (-draws * d / ends).exp())
}

/// Mean number of neighbors drawn per node, over all nodes; `drawn` is that of a degree.
fn mean(drawn: &dyn Fn(f64) -> f64, counts: &Counts) -> f64 {
    counts.in_degrees.sum(drawn) / counts.nodes.max(1) as f64
}

/// Neighbors drawn for the distinct nodes that `draws` reached: more than for as many of all nodes,
/// since nodes of high degree are reached first, as symmetric graphs show.
fn again(draws: f64, share: f64, drawn: &dyn Fn(f64) -> f64, counts: &Counts) -> f64 {
    if !counts.symmetric {
        return distinct(draws, share, counts) * mean(drawn, counts);
    }
    let ends = share * counts.edges.max(1) as f64;
    share * counts.in_degrees.sum(|d| (1.0 - (-draws * d / ends).exp()) * drawn(d))
}
