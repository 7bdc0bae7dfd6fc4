//! `metis`: multilevel k-way partitioning in memory (Karypis and Kumar), as DistDGLv2 §5.3 uses
//! it: the training nodes are a second constraint to balance.

use std::sync::{Mutex, PoisonError};

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::{EdgeStream, for_each_edge};
use metis::Graph;
pub(crate) use metis::Idx;
use metis::option::{NCuts, Seed};

use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::edge_cut::range::Range;

/// Default constraints.
const DEFAULT_CONSTRAINTS: [Constraint; 2] = [Constraint::Nodes, Constraint::Train];

/// METIS draws from the C library's `rand`, which all threads share: two runs at once would mix
/// their draws and both lose their seed.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The METIS library, on the undirected simple graph under the edges: both directions, no self
/// loops, no duplicates.
///
/// Balances nodes and training nodes, or what [`PartitionOptions::constraints`] names, each within
/// [`PartitionOptions::balance`] as nearly as METIS finds; constraints with less to share out than
/// there are parts are left out. More constraints leave METIS fewer moves: the cut grows.
///
/// Memory: about 96 bytes an edge and 40 a node, METIS's coarser graphs included, and 8 a node for
/// each constraint beyond two; it is refused beyond the budget rather than tried. One run at a time
/// in a process; others wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metis;

impl VertexPartitioner for Metis {
    fn name(&self) -> &'static str {
        "metis"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let types = options.types.len() as u64;
        let constraints = options.constraints.as_ref().map_or(0, |c| c.len() as u64 + types);
        let needed = 96 * edges.num_edges() + (40 + 8 * constraints.saturating_sub(2)) * nodes;
        options.check_memory("metis", needed, "raise --memory or use spring")?;
        let graph = Adjacency::read(edges)?;
        if options.parts == 1 || graph.neighbors.is_empty() {
            return Range.partition(edges, options);
        }
        let of = graph.cut(options)?;
        Ok(Assignment { parts: options.parts, of })
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        Some(96 * edges + 40 * nodes)
    }
}

/// The undirected simple graph in METIS's form.
pub(crate) struct Adjacency {
    offsets: Vec<Idx>,
    neighbors: Vec<Idx>,
}

/// Weights for METIS.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    /// Weights of the first node under each constraint, then those of the next.
    pub(crate) nodes: &'a [Idx],
    /// Weight of each neighbor, 1 without.
    pub(crate) neighbors: Option<&'a [Idx]>,
}

impl Adjacency {
    fn read(edges: &mut dyn EdgeStream) -> Result<Self> {
        let nodes = edges.num_nodes() as usize;
        too_large(nodes as u64)?;
        let mut start = vec![0u64; nodes + 1];
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                start[u as usize + 1] += 1;
                start[v as usize + 1] += 1;
            }
        })?;
        for v in 0..nodes {
            start[v + 1] += start[v];
        }
        let mut next = start[..nodes].to_vec();
        let mut neighbors = vec![0 as Idx; start[nodes] as usize];
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                for (from, to) in [(u, v), (v, u)] {
                    neighbors[next[from as usize] as usize] = to as Idx;
                    next[from as usize] += 1;
                }
            }
        })?;
        Self::simple(&start, neighbors)
    }

    /// Builds the graph from neighbor lists with duplicates: list `v` of `neighbors` begins
    /// at `start[v]`. Drops duplicates, in place.
    pub(crate) fn simple(start: &[u64], mut neighbors: Vec<Idx>) -> Result<Self> {
        let mut offsets = Vec::with_capacity(start.len());
        let mut kept = 0;
        offsets.push(0);
        for w in start.windows(2) {
            let (begin, end) = (w[0] as usize, w[1] as usize);
            neighbors[begin..end].sort_unstable();
            let mut last = None;
            for i in begin..end {
                if last != Some(neighbors[i]) {
                    last = Some(neighbors[i]);
                    neighbors[kept] = neighbors[i];
                    kept += 1;
                }
            }
            offsets.push(too_large(kept as u64)?);
        }
        neighbors.truncate(kept);
        Ok(Self { offsets, neighbors })
    }

    /// Builds the graph from neighbor lists without duplicates or self-loops that name both
    /// endpoints of every edge.
    pub(crate) fn new(offsets: Vec<Idx>, neighbors: Vec<Idx>) -> Self {
        Self { offsets, neighbors }
    }

    /// Total length of the neighbor lists.
    pub(crate) fn ends(&self) -> usize {
        self.neighbors.len()
    }

    /// Partitions the graph, balanced as the options require.
    fn cut(&self, options: &PartitionOptions) -> Result<Vec<u16>> {
        let nodes = self.offsets.len() - 1;
        let weights = self.weights(options);
        let constraints = weights.len();
        let mut interleaved = vec![0 as Idx; nodes * constraints];
        for (c, weight) in weights.iter().enumerate() {
            interleaved
                .iter_mut()
                .skip(c)
                .step_by(constraints)
                .zip(weight)
                .for_each(|(i, &w)| *i = w);
        }
        drop(weights);
        let balance = vec![options.balance.max(1.001) as metis::Real; constraints];
        let mut part = vec![0 as Idx; nodes];
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.graph(constraints, options.parts)?
            .set_vwgt(&interleaved)
            .set_ubvec(&balance)
            .set_option(Seed((options.seed & 0x7fff_ffff) as Idx))
            .part_kway(&mut part)
            .map_err(failed)?;
        Ok(part.into_iter().map(|p| p as u16).collect())
    }

    /// The weights of the nodes under each constraint.
    ///
    /// METIS divides by the total of each constraint: one whose total is below the number of parts
    /// would have it pursue a balance that does not exist, and is left out.
    fn weights(&self, options: &PartitionOptions) -> Vec<Vec<Idx>> {
        let nodes = self.offsets.len() - 1;
        let chosen = options.constraints.as_deref().unwrap_or(&DEFAULT_CONSTRAINTS);
        let degree = |v: usize| self.offsets[v + 1] - self.offsets[v];
        let mut weights = Vec::new();
        chosen.iter().for_each(|&c| options.weigh(c, nodes, &degree, &mut weights));
        let total = |weight: &Vec<Idx>| weight.iter().map(|&w| w as u64).sum::<u64>();
        weights.retain(|weight| total(weight) >= options.parts as u64);
        if weights.is_empty() {
            options.weigh(Constraint::Nodes, nodes, &degree, &mut weights);
        }
        weights
    }

    fn graph(&self, constraints: usize, parts: usize) -> Result<Graph<'_>> {
        Graph::new(constraints as Idx, parts as Idx, &self.offsets, &self.neighbors)
            .map_err(|e| Error::invalid(format!("METIS failed: {e}")))
    }

    /// The side of every node: each is to have its one of the `shares` of their weights under every
    /// constraint, and at most that constraint's `balance` times that. The best of `tries` runs.
    pub(crate) fn divide(
        &self,
        shares: &[f64],
        balance: &[f64],
        weights: Weights,
        tries: Idx,
        seed: u64,
    ) -> Result<Vec<Idx>> {
        let constraints = balance.len();
        let repeated = |&share| std::iter::repeat_n(share as metis::Real, constraints);
        let targets: Vec<metis::Real> = shares.iter().flat_map(repeated).collect();
        let balance: Vec<metis::Real> = balance.iter().map(|b| b.max(1.001) as _).collect();
        let mut side = vec![0 as Idx; self.offsets.len() - 1];
        let graph = || {
            let mut graph = self.graph(constraints, shares.len())?.set_vwgt(weights.nodes);
            if let Some(neighbors) = weights.neighbors {
                graph = graph.set_adjwgt(neighbors);
            }
            let seed = Seed((seed & 0x7fff_ffff) as Idx);
            let graph = graph.set_tpwgts(&targets).set_ubvec(&balance);
            Result::Ok(graph.set_option(seed).set_option(NCuts(tries)))
        };
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Recursive bisection fails on some graphs of clusters.
        if graph()?.part_recursive(&mut side).is_err() {
            graph()?.part_kway(&mut side).map_err(failed)?;
        }
        Ok(side)
    }
}

fn failed(error: metis::Error) -> Error {
    let kind = match error {
        metis::Error::Memory => Kind::Limit,
        _ => Kind::InvalidInput,
    };
    Error::new(kind, format!("metis: {error}")).hint("spring needs no more than 26 bytes a node")
}

/// `count` as METIS's index type.
fn too_large(count: u64) -> Result<Idx> {
    Idx::try_from(count).map_err(|_| {
        let bits = Idx::BITS as usize;
        Error::new(
            Kind::Limit,
            format!("METIS counts nodes and endpoints in {bits} bits; found {count}"),
        )
        .hint("use spring, which streams")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::rng::Key;
    use gnarl_graph::MemoryEdges;

    /// 32 communities of 50 nodes, hubs among the first, two types, splits that follow the ids.
    fn communities() -> (MemoryEdges, PartitionOptions) {
        let key = Key::new(11);
        let edge = |i: u64| {
            let u = key.below(3 * i, 1600);
            let inside = u / 50 * 50 + key.below(3 * i + 1, 50);
            (u, if i.is_multiple_of(8) { key.below(3 * i + 2, 200) } else { inside })
        };
        let edges = MemoryEdges::new(1600, (0..12_000).map(edge)).unwrap();
        let options = PartitionOptions {
            parts: 4,
            balance: 1.05,
            train: (0..800).collect(),
            valid: (800..1200).collect(),
            test: (1200..1600).collect(),
            types: vec![0..400, 400..1600],
            ..Default::default()
        };
        (edges, options)
    }

    /// Largest share of a part over the mean, of nodes weighed by `weight`.
    fn imbalance(of: &[u16], weight: impl Fn(u64) -> u64) -> f64 {
        let mut sums = [0; 4];
        of.iter().zip(0..).for_each(|(&p, v)| sums[p as usize] += weight(v));
        *sums.iter().max().unwrap() as f64 * 4.0 / sums.iter().sum::<u64>() as f64
    }

    #[test]
    fn all_constraints_hold_at_once() {
        let (mut edges, mut options) = communities();
        let graph = Adjacency::read(&mut edges).unwrap();
        let degree = |v: u64| (graph.offsets[v as usize + 1] - graph.offsets[v as usize]) as u64;
        let within = |ids: &std::ops::Range<u64>, v: u64| ids.contains(&v) as u64;
        let measure = |options: &PartitionOptions| {
            let of = Metis.partition(&mut edges.clone(), options).unwrap().of;
            let ids = [0..1600, 0..800, 800..1200, 1200..1600, 0..400, 400..1600];
            let nodes = ids.map(|ids| imbalance(&of, |v| within(&ids, v)));
            nodes.into_iter().chain([imbalance(&of, degree)]).fold(0.0, f64::max)
        };
        use Constraint::*;
        options.constraints = Some(vec![Nodes]);
        let free = measure(&options);
        options.constraints = Some(vec![Nodes, Edges, Train, Valid, Test, Types]);
        let held = measure(&options);
        assert!(free > 1.3 && held < 1.12, "{free} without, {held} with constraints");
    }

    #[test]
    fn constraints_with_too_little_to_share_are_left_out() {
        let (mut edges, mut options) = communities();
        let graph = Adjacency::read(&mut edges).unwrap();
        options.train.truncate(3);
        assert_eq!(graph.weights(&options).len(), 1);
        options.constraints = Some(vec![Constraint::Train]);
        assert_eq!(graph.weights(&options), [vec![1; 1600]]);
        options.constraints = Some(vec![Constraint::Types, Constraint::Valid]);
        assert_eq!(graph.weights(&options).len(), 3);
    }
}
