//! `knot`: multilevel partitioning in bounded memory, the default.

mod caps;
mod cluster;
mod coarsest;
mod found;
mod isolated;
mod known;
mod level;
mod lists;
mod pass;
mod refine;
mod tally;

use std::borrow::Cow;

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::edge_cut::range::Range;
use caps::Caps;
use cluster::Clusters;
use known::Known;
use level::Level;
use refine::Parts;

/// Improves partitions by a hierarchy of ever smaller graphs, none of which is held in memory.
///
/// The first partition is [`Grem`](crate::Grem)'s. A cycle improves it: nodes join clusters of
/// bounded size along most of their edges but never across parts, clusters become the nodes of a
/// smaller graph, and so on; then each larger graph inherits the parts and moves nodes to where
/// more of their edges lead. Clusters move at once where single nodes would not. Cycles end when
/// one gains little.
///
/// Graphs of up to some eight million neighbors have another partition to begin with, that of a
/// hierarchy whose smallest graph METIS partitions, and those of up to 0.7 million edges
/// [`Metis`](crate::Metis)'s of the graph itself. A cycle whose clusters are in one part of
/// either of two partitions combines them: it starts from the better one and can take over what
/// the other does better. Where theirs keep the balance, the result is never worse than they are.
///
/// Nodes, in-edges and training nodes are balanced at once, each within `options.balance` of its
/// mean (or of the largest node, where one outweighs a part).
///
/// The lists of every graph are in a temporary file (4 bytes an edge in both directions, 8 in
/// smaller graphs) that all threads read a piece at a time. Memory: that of `grem` with chunks of at
/// most 8 million edges, or 44 bytes a node and the buffer in which lists are sorted, at least 16
/// bytes a node and up to 32 MiB, if that is more; a list longer than the buffer takes some 32
/// bytes a neighbor, and up to 8 bytes a node on each thread that has one.
///
/// Sources: the coarsening by label propagation of Meyerhenke, Sanders and Schulz (SEA 2014), its
/// semi-external form by Akhremtsev, Sanders and Schulz (ALENEX 2015), iterated as by Walshaw
/// (Annals of Operations Research 131, 2004), and combined as by Sanders and Schulz (Distributed
/// evolutionary graph partitioning, ALENEX 2012). The balance of several loads at once is our own.
/// The numbers below were chosen on the graphs of docs/partitioners.md, with 4, 8 and 16 parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Knot;

/// Most cycles after the partitions are combined.
const CYCLES: u64 = 4;
/// Cycles end with one that removes less than this share of the cut.
const LEAST_GAIN: f64 = 0.001;
/// The share of the cut that edges in excess of their cap by all of it are worth.
const EXCESS_WEIGHT: f64 = 4.0;
/// Graphs of more neighbors than this are not partitioned anew: on those at hand it takes as long
/// as all cycles, and gains nothing where there are no clusters.
const OWN_ENTRIES: u64 = 8 << 20;
/// Number of initial partitions of the smallest graph tried.
const TRIALS: u64 = 12;
/// Rounds of label propagation for the clusters of a level.
const CLUSTER_ROUNDS: usize = 4;
/// Most rounds of moves at a level.
const REFINE_ROUNDS: usize = 8;
/// METIS partitions a level with at most this many nodes per part.
const COARSEST: usize = 120;
/// Or with at most this many in total.
const SMALL: usize = 1000;
/// Clusters of a level weigh at most a part's share over this.
const CLUSTER_SHARE: u64 = 16;
/// Clusters of a level have at most so many times the nodes of a mean one.
const MOST_MEANS: u64 = 16;
/// Bytes per node beside the buffer.
const NODE_BYTES: u64 = 44;
/// Bytes per node of the smallest buffer.
const BUFFER_NODE_BYTES: u64 = 16;
/// Bytes of a larger one.
const BUFFER_BYTES: u64 = 32 << 20;

impl VertexPartitioner for Knot {
    fn name(&self) -> &'static str {
        "knot"
    }

    fn memory(&self, nodes: u64, edges: u64, parts: usize) -> Option<u64> {
        // Lists of clusters have 8 bytes for either end of an edge.
        let buffer = (BUFFER_NODE_BYTES * nodes).max((16 * edges).min(BUFFER_BYTES));
        Some((NODE_BYTES * nodes + buffer).max(found::memory(nodes, edges, parts)))
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let chosen = caps::chosen(options)?;
        if nodes >= u64::from(u32::MAX) {
            return Err(Error::new(Kind::Limit, format!("knot: {nodes} nodes exceed 32 bits")));
        }
        let least = BUFFER_NODE_BYTES * nodes;
        options.check_memory("knot", NODE_BYTES * nodes + least, "raise --memory or use spring")?;
        if options.parts == 1 {
            return Range.partition(edges, options);
        }
        let found = found::partitions(edges, options, chosen)?;
        let fitting = options.memory.saturating_sub(NODE_BYTES * nodes);
        let budget = least.max(fitting.min(BUFFER_BYTES)) as usize;
        let scratch = std::env::temp_dir();
        let graph = Level::read(edges, &options.train, budget, &scratch)?;
        let run = Run { options, nodes, caps: Caps::new(&graph, options, chosen), budget, scratch };
        let of = run.cut(&graph, found)?;
        let parts = Parts::new(&graph, of, options.parts, run.caps.most);
        let of = isolated::place(&graph, &options.train, parts);
        Ok(Assignment { parts: options.parts, of })
    }
}

struct Run<'a> {
    options: &'a PartitionOptions,
    nodes: u64,
    caps: Caps,
    /// Bytes of the buffer in which lists are built.
    budget: usize,
    scratch: std::path::PathBuf,
}

/// A partition of the graph, its excess over each cap as a share of it, and the weight of its cut.
struct Found {
    excess: [f64; 3],
    cut: u64,
    of: Vec<u16>,
}

impl Run<'_> {
    /// The best partition, beginning with those found by others.
    fn cut(&self, graph: &Level, others: Vec<Vec<u16>>) -> Result<Vec<u16>> {
        let key = Key::new(self.options.seed).with(u64::from_le_bytes(*b"__knot__"));
        let mut keys = (0..).map(|step| key.with(step));
        let mut next_key = move || keys.next().expect("endless");
        let mut found = Vec::new();
        for of in others {
            found.push(self.found(graph, self.refined(graph, of, next_key())?)?);
        }
        if found.len() != 1 || graph.lists.entries() <= OWN_ENTRIES {
            let parts = self.descend(graph, None, 0, next_key())?;
            found.push(self.found(graph, parts)?);
        }
        let better = |a, b| if self.is_better(&found[b], &found[a]) { b } else { a };
        let first = (0..found.len()).reduce(better);
        let mut best = found.swap_remove(first.expect("at least one partition"));
        for other in found {
            self.improve(graph, &mut best, Some(&other.of), next_key())?;
        }
        for _ in 0..CYCLES {
            let before = best.cut;
            self.improve(graph, &mut best, None, next_key())?;
            if before.saturating_sub(best.cut) as f64 <= LEAST_GAIN * before as f64 {
                break;
            }
        }
        Ok(best.of)
    }

    fn found(&self, graph: &Level, parts: Parts) -> Result<Found> {
        let excess = parts.excesses();
        let cut = parts.cut(graph)?;
        tracing::debug!(cut, ?excess, "knot");
        Ok(Found { excess, cut, of: parts.of })
    }

    /// Compares partitions: one within the caps is better than one that is not. Where a single node
    /// outweighs a part, the part it is in can be within them only without its neighbors: there,
    /// an excess of edges, and of nothing else, is weighed against what it saves.
    fn is_better(&self, found: &Found, than: &Found) -> bool {
        let key = |found: &Found| {
            let [nodes, edges, train] = found.excess;
            let cut = found.cut as f64;
            if self.caps.outweighed {
                (nodes + train, cut * (1.0 + EXCESS_WEIGHT * edges))
            } else {
                (nodes + edges + train, cut)
            }
        };
        key(found) < key(than)
    }

    /// Runs a cycle, whose clusters are in one part of `best` and of `other`.
    fn improve(
        &self,
        graph: &Level,
        best: &mut Found,
        other: Option<&[u16]>,
        key: Key,
    ) -> Result<()> {
        let known = Known { best: best.of.as_slice().into(), other: other.map(Cow::from) };
        let parts = self.descend(graph, Some(&known), 0, key)?;
        let found = self.found(graph, parts)?;
        if self.is_better(&found, best) {
            *best = found;
        }
        Ok(())
    }

    /// Partitions `level`: the partition of its clusters, refined.
    fn descend(&self, level: &Level, known: Option<&Known>, depth: u64, key: Key) -> Result<Parts> {
        let key = key.with(depth);
        let of = match self.shrink(level, known, key)? {
            Some(Clusters { map, count }) => {
                let smaller = level.contract(&map, count, self.budget, &self.scratch)?;
                let known = known.map(|known| known.of_clusters(&map, count));
                tracing::trace!(
                    depth,
                    nodes = level.len(),
                    entries = level.lists.entries(),
                    "level"
                );
                let found = self.descend(&smaller, known.as_ref(), depth + 1, key)?.of;
                map.iter().map(|&c| found[c as usize]).collect()
            }
            None => match known {
                Some(known) => known.best.to_vec(),
                None => self.first(level, key)?,
            },
        };
        self.refined(level, of, key)
    }

    /// Clusters for the next level, unless the level is small enough or does not shrink.
    fn shrink(&self, level: &Level, known: Option<&Known>, key: Key) -> Result<Option<Clusters>> {
        let nodes = level.len();
        if nodes <= (COARSEST * self.options.parts).max(SMALL) {
            return Ok(None);
        }
        let mut most = self.caps.most.map(|cap| (cap / CLUSTER_SHARE).max(1));
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
                coarsest::cut(level, parts, self.caps.most, budget, seed)?
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
        let mut found = Parts::new(level, of, self.options.parts, self.caps.most);
        found.balance(level, key.with(1))?;
        found.refine(level, REFINE_ROUNDS, key.with(2))?;
        Ok(found)
    }
}
