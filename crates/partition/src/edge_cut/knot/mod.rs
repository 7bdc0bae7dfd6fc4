//! `knot`: multilevel partitioning in memory proportional to nodes, the default.

mod cluster;
mod coarsest;
mod level;
mod lists;
mod refine;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use cluster::Clusters;
use level::{Level, Load};
use refine::Parts;

/// Partitions by a hierarchy of ever smaller graphs, none of which is held in memory.
///
/// Nodes join clusters of bounded size along most of their edges, clusters become the nodes of a
/// smaller graph, until METIS can partition the smallest in memory; then each larger graph inherits
/// the parts and moves nodes to where more of their edges lead. The whole is repeated with clusters
/// that respect the parts found. Nodes, in-edges and training nodes are balanced at once, each
/// within `options.balance` of its mean (or of the largest node, where one outweighs a part).
///
/// The lists of every graph are in a temporary file (4 bytes an edge in both directions, 8 in
/// smaller graphs) that passes read from start to end. Memory: about 60 bytes a node, 16 of them
/// the buffer in which lists are sorted; a list longer than the buffer makes it longer.
///
/// Sources: the coarsening by label propagation of Meyerhenke, Sanders and Schulz (SEA 2014), its
/// semi-external form by Akhremtsev, Sanders and Schulz (ALENEX 2015), iterated as by Walshaw
/// (Annals of Operations Research 131, 2004). The balance of several loads at once is our own. The
/// numbers below were chosen on twelve graphs with 4, 8 and 16 parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knot;

/// Number of times that the hierarchy is built.
const CYCLES: usize = 4;
/// Number of initial partitions tried.
const TRIALS: u64 = 12;
/// Rounds of label propagation for the clusters of a level.
const CLUSTER_ROUNDS: usize = 4;
/// Most rounds of moves at a level.
const REFINE_ROUNDS: usize = 8;
/// METIS partitions a level with at most this many nodes per part, or in total.
const COARSEST: usize = 120;
const SMALL: usize = 1000;
/// Clusters of a level weigh at most a part's share over this.
const CLUSTER_SHARE: u64 = 16;
/// Clusters of a level have at most so many times the nodes of a mean one.
const MOST_MEANS: u64 = 16;

impl VertexPartitioner for Knot {
    fn name(&self) -> &'static str {
        "knot"
    }

    fn memory(&self, nodes: u64, _edges: u64, _parts: usize) -> Option<u64> {
        Some(60 * nodes)
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let chosen = chosen(options)?;
        if nodes >= u64::from(u32::MAX) {
            return Err(Error::new(Kind::Limit, format!("knot: {nodes} nodes exceed 32 bits")));
        }
        options.check_memory("knot", 60 * nodes, "raise --memory or use spring")?;
        let budget = (16 * nodes as usize).max(1 << 20);
        let scratch = std::env::temp_dir();
        let graph = Level::read(edges, &options.train, budget, &scratch)?;
        let run = Run { options, nodes, caps: caps(&graph, options, chosen), budget, scratch };
        let of = if options.parts == 1 { vec![0; nodes as usize] } else { run.cut(&graph)? };
        Ok(Assignment { parts: options.parts, of: run.place_isolated(&graph, of) })
    }
}

/// The balanced quantities, checked before the edges are read.
fn chosen(options: &PartitionOptions) -> Result<&[Constraint]> {
    const ALL: [Constraint; 3] = [Constraint::Nodes, Constraint::Edges, Constraint::Train];
    let chosen = options.constraints.as_deref().unwrap_or(&ALL);
    match chosen.iter().find(|c| !ALL.contains(c)) {
        None => Ok(chosen),
        Some(other) => {
            Err(Error::usage(format!("knot does not support the constraint '{}'", other.name()))
                .hint(
                    "it supports nodes, edges and train; grem, spring and metis support the others",
                ))
        }
    }
}

/// Upper bounds of the parts: β times the share, and at least the largest node; no limit on
/// quantities that are not `chosen`.
fn caps(graph: &Level, options: &PartitionOptions, chosen: &[Constraint]) -> Load {
    let (mut edges, mut largest) = (0, 1);
    for v in 0..graph.len() as u32 {
        edges += graph.loads.of(v)[1];
        largest = largest.max(graph.loads.of(v)[1]);
    }
    let cap = |constraint: Constraint, total: u64, largest: u64| {
        let share = total as f64 / options.parts as f64;
        if chosen.contains(&constraint) {
            ((options.balance * share) as u64).max(share.ceil() as u64).max(largest)
        } else {
            u64::MAX
        }
    };
    [
        cap(Constraint::Nodes, graph.len() as u64, 1),
        cap(Constraint::Edges, edges, largest),
        cap(Constraint::Train, options.train.len() as u64, 1),
    ]
}

struct Run<'a> {
    options: &'a PartitionOptions,
    nodes: u64,
    caps: Load,
    /// Bytes of the buffer in which lists are built.
    budget: usize,
    scratch: std::path::PathBuf,
}

impl Run<'_> {
    fn cut(&self, graph: &Level) -> Result<Vec<u16>> {
        let key = Key::new(self.options.seed).with(u64::from_le_bytes(*b"__knot__"));
        let mut best: Option<(f64, u64, Vec<u16>)> = None;
        for cycle in 0..CYCLES {
            let known = best.as_ref().map(|(_, _, of)| &of[..]);
            let parts = self.descend(graph, known, 0, key.with(cycle as u64))?;
            let (excess, cut) = (parts.excess(), parts.cut(graph)?);
            tracing::debug!(cycle, cut, excess, "knot");
            if best.as_ref().is_none_or(|b| (excess, cut) < (b.0, b.1)) {
                best = Some((excess, cut, parts.of));
            }
        }
        Ok(best.expect("at least one cycle").2)
    }

    /// Partitions `level`: the partition of its clusters, refined.
    fn descend(&self, level: &Level, known: Option<&[u16]>, depth: u64, key: Key) -> Result<Parts> {
        let key = key.with(depth);
        let of = match self.shrink(level, known, key)? {
            Some(Clusters { map, count }) => {
                let smaller = level.contract(&map, count, self.budget, &self.scratch)?;
                let known = known.map(|of| inherit_up(of, &map, count));
                tracing::trace!(
                    depth,
                    nodes = level.len(),
                    entries = level.lists.entries(),
                    "level"
                );
                let found = self.descend(&smaller, known.as_deref(), depth + 1, key)?.of;
                map.iter().map(|&c| found[c as usize]).collect()
            }
            None => match known {
                Some(known) => known.to_vec(),
                None => self.first(level, key)?,
            },
        };
        self.refined(level, of, key)
    }

    /// Clusters for the next level, unless the level is small enough or does not shrink.
    fn shrink(&self, level: &Level, known: Option<&[u16]>, key: Key) -> Result<Option<Clusters>> {
        let nodes = level.len();
        if nodes <= (COARSEST * self.options.parts).max(SMALL) {
            return Ok(None);
        }
        let mut most = self.caps.map(|cap| (cap / CLUSTER_SHARE).max(1));
        // Graphs that shrink too fast leave too few levels for refinement.
        let mean = self.nodes / nodes as u64;
        most[0] = most[0].min(MOST_MEANS * mean.max(1)).max(1);
        let clusters = cluster::cluster(level, most, CLUSTER_ROUNDS, known, key.with(0))?;
        Ok((clusters.count * 20 < nodes * 19).then_some(clusters))
    }

    /// The partition of the coarsest level: the best of several by METIS.
    fn first(&self, level: &Level, key: Key) -> Result<Vec<u16>> {
        let parts = self.options.parts;
        let budget = (64 * self.nodes).max(16 << 20);
        let connected = level.lists.lengths().iter().filter(|&&length| length > 0).count();
        let mut best: Option<(f64, u64, Vec<u16>)> = None;
        for trial in 0..TRIALS {
            let seed = key.with(3).u64(trial);
            let found = if connected > 4 * parts {
                coarsest::cut(level, parts, self.caps, budget, seed)?
            } else {
                None
            };
            let of =
                found.unwrap_or_else(|| (0..level.len()).map(|v| (v % parts) as u16).collect());
            let found = self.refined(level, of, key.with(trial))?;
            let (excess, cut) = (found.excess(), found.cut(level)?);
            if best.as_ref().is_none_or(|b| (excess, cut) < (b.0, b.1)) {
                best = Some((excess, cut, found.of));
            }
        }
        Ok(best.expect("at least one trial").2)
    }

    fn refined(&self, level: &Level, of: Vec<u16>, key: Key) -> Result<Parts> {
        let mut found = Parts::new(level, of, self.options.parts, self.caps);
        found.balance(level, key.with(1))?;
        found.refine(level, REFINE_ROUNDS, key.with(2))?;
        Ok(found)
    }

    /// Assigns nodes without edges to parts with room: training nodes first, then the others.
    fn place_isolated(&self, graph: &Level, mut of: Vec<u16>) -> Vec<u16> {
        let lengths = graph.lists.lengths();
        let mut loads = Parts::new(graph, of.clone(), self.options.parts, self.caps).loads;
        let mut left: Vec<bool> = lengths.iter().map(|&length| length == 0).collect();
        let mut place = |nodes: &mut dyn Iterator<Item = usize>, c: usize| {
            let key = |load: &Load| (load[c], load[0]);
            let parts = loads.iter().enumerate().map(|(p, load)| Reverse((key(load), p)));
            let mut emptiest: BinaryHeap<_> = parts.collect();
            for v in nodes {
                if std::mem::replace(&mut left[v], false) {
                    let Reverse((_, part)) = emptiest.pop().expect("at least one part");
                    of[v] = part as u16;
                    loads[part][0] += 1;
                    loads[part][c] += u64::from(c > 0);
                    emptiest.push(Reverse((key(&loads[part]), part)));
                }
            }
        };
        place(&mut self.options.train.iter().map(|&v| v as usize), 2);
        place(&mut (0..lengths.len()), 0);
        of
    }
}

/// The part of each cluster, shared by all its nodes.
fn inherit_up(of: &[u16], map: &[u32], count: usize) -> Vec<u16> {
    let mut parts = vec![0; count];
    map.iter().zip(of).for_each(|(&cluster, &part)| parts[cluster as usize] = part);
    parts
}
