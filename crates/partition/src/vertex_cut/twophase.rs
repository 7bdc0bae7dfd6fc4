//! `2ps-l`: two-phase streaming in linear time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_common::rng::Key;
use gnarl_graph::{EdgeStream, for_each_edge};

use super::degrees;
use super::loads::{Loads, cap};
use super::partitioner::{EdgePartitioner, EdgeSink, assign_in_order};
use super::sets::PartSets;
use crate::edge_cut::partitioner::PartitionOptions;

/// Clusters the nodes in a stream, packs the clusters into parts and places each edge in the part
/// of one of its endpoints' clusters (Mayer, Orujzade and Jacobsen, "Out-of-core edge partitioning
/// at linear run-time", ICDE 2022, Algorithms 1 and 2):
///
/// * phase 1 clusters as Hollocou et al. do, but by true degrees and with volumes bounded by a
///   part's share, `2|E| / p`;
/// * clusters go to the part of smallest volume, largest first (Graham);
/// * edges between clusters of one part are placed there in a pass of their own;
/// * the others go to the better of two parts, by the replicas, degrees and cluster volumes.
///
/// Parts never exceed `balance · |E| / p` edges (the paper's α = 1.05): beyond, an edge goes to the
/// hash of its endpoint of higher degree, and if that is full too, to the least loaded part.
///
/// Four passes: degrees, clusters, the edges inside parts, the assignment. The last repeats the
/// decisions of the third, so that edges come out in their order and none is remembered. Memory, by
/// node: 4 bytes of degree, 4 of cluster, 2 of part, at most 8 of cluster volume and, while clusters
/// are packed, 6 of their order and parts; and p bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct TwoPhase;

impl EdgePartitioner for TwoPhase {
    fn name(&self) -> &'static str {
        "2ps-l"
    }

    fn memory(&self, nodes: u64, _edges: u64, parts: usize) -> u64 {
        24 * nodes + PartSets::bytes(nodes, parts)
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        let nodes = edges.num_nodes();
        self.check(edges, options, "raise --memory or use dbh")?;
        if nodes >= NONE as u64 {
            return Err(Error::new(Kind::Limit, format!("2ps-l: {nodes} nodes exceed 32 bits")));
        }
        let clusters = Clusters::stream(edges, options.parts)?;
        let part_of = clusters.pack(options.parts);
        let placement = Placement { clusters, part_of, key: Key::new(options.seed) };
        placement.place(edges, options, sink)
    }
}

/// No cluster yet.
const NONE: u32 = u32::MAX;

/// The result of phase 1.
struct Clusters {
    degree: Vec<u32>,
    /// Cluster of each node, [`NONE`] for isolated ones.
    of: Vec<u32>,
    /// Sum of degrees in each cluster.
    volume: Vec<u64>,
}

impl Clusters {
    /// Algorithm 1.
    fn stream(edges: &mut dyn EdgeStream, parts: usize) -> Result<Self> {
        let degree = degrees::count(edges)?;
        let most = (2 * edges.num_edges() / parts as u64).max(2);
        let of = vec![NONE; degree.len()];
        let mut clusters = Self { degree, of, volume: Vec::new() };
        for_each_edge(edges, &mut |u, v| clusters.meet(u as usize, v as usize, most))?;
        Ok(clusters)
    }

    fn meet(&mut self, u: usize, v: usize, most: u64) {
        let [cu, cv] = [u, v].map(|end| self.seen(end) as usize);
        if cu == cv || self.volume[cu] > most || self.volume[cv] > most {
            return;
        }
        let apart = |end: usize, c: usize| self.volume[c] - self.degree[end] as u64;
        let (moved, from, to) =
            if apart(u, cu) <= apart(v, cv) { (u, cu, cv) } else { (v, cv, cu) };
        let degree = self.degree[moved] as u64;
        if self.volume[to] + degree <= most {
            self.volume[from] -= degree;
            self.volume[to] += degree;
            self.of[moved] = to as u32;
        }
    }

    /// The cluster of a node, a new one if it has none.
    fn seen(&mut self, end: usize) -> u32 {
        if self.of[end] == NONE {
            self.of[end] = self.volume.len() as u32;
            self.volume.push(self.degree[end] as u64);
        }
        self.of[end]
    }

    /// The part of every node: clusters are assigned largest first, each to the part of smallest
    /// volume.
    fn pack(&self, parts: usize) -> Vec<u16> {
        let count = self.volume.len() as u32;
        let mut order: Vec<u32> = (0..count).filter(|&c| self.volume[c as usize] > 0).collect();
        order.sort_unstable_by_key(|&c| (Reverse(self.volume[c as usize]), c));
        let mut filled: BinaryHeap<_> = (0..parts).map(|p| Reverse((0, p as u16))).collect();
        let mut part = vec![0; count as usize];
        for c in order {
            let mut least = filled.peek_mut().expect("at least one part");
            part[c as usize] = least.0.1;
            least.0.0 += self.volume[c as usize];
        }
        let part_of = |&c: &u32| if c == NONE { 0 } else { part[c as usize] };
        self.of.iter().map(part_of).collect()
    }
}

/// Phase 2.
struct Placement {
    clusters: Clusters,
    /// Part of each node's cluster.
    part_of: Vec<u16>,
    key: Key,
}

impl Placement {
    /// Algorithm 2.
    fn place(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        let cap = cap(options, edges.num_edges());
        let mut sets = PartSets::new(edges.num_nodes(), options.parts);
        let mut inside = vec![0; options.parts];
        for_each_edge(edges, &mut |u, v| {
            if let Some(p) = self.within(&mut inside, cap, u, v) {
                sets.insert(u, p);
                sets.insert(v, p);
            }
        })?;
        let mut loads = Loads::new(inside, cap);
        let mut inside = vec![0; options.parts];
        assign_in_order(edges, sink, |u, v| {
            if let Some(p) = self.within(&mut inside, cap, u, v) {
                return p as u16;
            }
            let part = self.between(&sets, &mut loads, u, v);
            loads.add(part);
            sets.insert(u, part);
            sets.insert(v, part);
            part as u16
        })
    }

    /// The part of both endpoints' clusters, if it is one and has room among the `inside` edges.
    #[inline]
    fn within(&self, inside: &mut [u64], cap: u64, u: u64, v: u64) -> Option<usize> {
        let [p, q] = [u, v].map(|end| self.part_of[end as usize]);
        let filled = &mut inside[p as usize];
        (p == q && *filled < cap).then(|| {
            *filled += 1;
            p as usize
        })
    }

    /// The better of the two clusters' parts, or one with room.
    #[inline]
    fn between(&self, sets: &PartSets, loads: &mut Loads, u: u64, v: u64) -> usize {
        let degree = |end: u64| self.clusters.degree[end as usize] as f64;
        let volume =
            |end: u64| self.clusters.volume[self.clusters.of[end as usize] as usize] as f64;
        let (degrees, volumes) = (degree(u) + degree(v), volume(u) + volume(v));
        let gain = |end: u64, other: u64, p: usize| {
            if sets.contains(end, p) { 1.0 + degree(other) / degrees } else { 0.0 }
        };
        let [p, q] = [u, v].map(|end| self.part_of[end as usize] as usize);
        let score = |end, p| gain(u, v, p) + gain(v, u, p) + volume(end) / volumes;
        let (best, other) = if score(u, p) >= score(v, q) { (p, q) } else { (q, p) };
        let hub = if (degree(u), v) > (degree(v), u) { u } else { v };
        let hashed = self.key.with(hub).below(0, loads.count() as u64) as usize;
        [best, other, hashed]
            .into_iter()
            .find(|&p| loads.has_room(p))
            .unwrap_or_else(|| loads.least())
    }
}
