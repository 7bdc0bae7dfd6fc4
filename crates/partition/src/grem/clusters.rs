//! Where a chunk alone shows too little of the graph: sides from clusters of the whole stream.
//!
//! A tenth of a sparse graph falls into small pieces, and METIS on them knows nothing of what the
//! graph looks like. So the nodes are first clustered in a stream, as SPRING clusters them (CATGNN
//! Algorithm 1, lines 2 to 21), until their clusters are few enough for a chunk to hold the edges
//! between them; METIS divides those.

use gnarl_graph::error::Result;
use gnarl_graph::prefetch;

use super::groups::UNASSIGNED;
use super::seed::{divide, scaled};
use super::shuffle::{Chunks, Pair};
use super::sides::Sides;
use crate::metis::{Adjacency, Idx};

/// Edges between clusters that a cluster has on average, as planned: few enough clusters for a
/// chunk of edges. Measured: 4 and 16 are no better.
const DEGREE: u64 = 8;
/// Edges between clusters that are planned for: no more than the edges of a chunk and this share of
/// all, and neither more nor fewer than these.
const SHARE: u64 = 32;
const LEAST_LINKS: u64 = 1 << 16;
const MOST_LINKS: u64 = 1 << 22;
/// How much larger than planned a cluster may grow in nodes.
const GROWTH: u64 = 4;
/// Clusters up to this many nodes are joined to one of their neighbours in the end.
const SMALL: u32 = 2;
/// Nodes without edges that stand for all nodes METIS does not see: they leave it free to cut the
/// others unevenly, as greedy decisions about the unseen ones can even that out.
const FILLERS: u64 = 64;

/// How many edges ahead what an edge needs is asked for.
const AHEAD: usize = 24;

/// No place among the paired clusters.
const NONE: u32 = u32::MAX;

/// Weight of the edges between two clusters, the smaller id first.
type Link = ([u32; 2], u32);

/// Edges between clusters to plan for in a graph of `edges` seen `chunk` at a time.
pub(super) fn links(edges: u64, chunk: u64) -> u64 {
    chunk.min(edges / SHARE).clamp(LEAST_LINKS, MOST_LINKS)
}

/// Gives each node a side by METIS on the graph of clusters with at most about `limit` edges;
/// nodes of clusters it does not see get none.
///
/// Passes over the chunks: three, and as many chunks of a fourth as are needed. Memory: 25 bytes a
/// node and METIS's for `limit` edges and three times as many nodes.
pub(super) fn by_clusters(
    level: &Sides,
    chunks: &mut Chunks,
    limit: u64,
    seed: u64,
) -> Result<Vec<u8>> {
    let mut clusters = Clusters::new(level.group.len(), chunks.edges(), limit);
    clusters.count(level, chunks)?;
    clusters.stream(level, chunks)?;
    clusters.join_small(level, chunks)?;
    let links = clusters.links(level, chunks, limit as usize)?;
    clusters.divide(level, links, limit as usize, seed)
}

/// Clusters of nodes, each within a group.
struct Clusters {
    /// Cluster of each node, at first its own.
    of: Vec<u32>,
    /// Degree of each node in its group.
    degree: Vec<u32>,
    /// Sum of degrees and number of nodes of each cluster.
    volume: Vec<u32>,
    size: Vec<u32>,
    /// No cluster above this volume takes or gives nodes.
    max_volume: u32,
    /// Most nodes of a cluster.
    max_size: u32,
}

/// Asks for what belongs to the ends of the `i`-th edge.
#[inline(always)]
fn ask(of_node: &[u32], edges: &[Pair], i: usize) {
    if let Some(edge) = edges.get(i) {
        edge.iter().for_each(|&end| prefetch::item(of_node, end as usize));
    }
}

impl Clusters {
    fn new(nodes: usize, edges: u64, limit: u64) -> Self {
        let planned = limit.div_ceil(DEGREE);
        let max_volume = (2 * edges).div_ceil(planned).min(u32::MAX as u64 / 2) as u32;
        let max_size = (GROWTH * (nodes as u64).div_ceil(planned)).max(2) as u32;
        let (of, size) = ((0..nodes as u32).collect(), vec![1; nodes]);
        Self { of, degree: vec![0; nodes], volume: vec![0; nodes], size, max_volume, max_size }
    }

    /// SPRING's rule: the end in the cluster of less volume moves to the other's.
    fn stream(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask(&self.of, edges, i + 2 * AHEAD);
                ask(&self.degree, edges, i + 2 * AHEAD);
                self.ask_clusters(&self.volume, edges, i + AHEAD);
                if inside.holds(u, v) {
                    self.meet(u as usize, v as usize);
                }
            }
            Ok(())
        })
    }

    /// Degrees, and volumes of clusters of one node each.
    fn count(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask(&self.degree, edges, i + 2 * AHEAD);
                if inside.holds(u, v) {
                    for end in [u as usize, v as usize] {
                        self.degree[end] = self.degree[end].saturating_add(1);
                    }
                }
            }
            Ok(())
        })?;
        self.volume.copy_from_slice(&self.degree);
        Ok(())
    }

    #[inline(always)]
    fn meet(&mut self, u: usize, v: usize) {
        let [a, b] = [u, v].map(|end| self.of[end] as usize);
        if a == b || self.volume[a].max(self.volume[b]) > self.max_volume {
            return;
        }
        let (node, from, to) = if self.volume[a] <= self.volume[b] { (u, a, b) } else { (v, b, a) };
        if self.size[to] < self.max_size {
            self.volume[from] -= self.degree[node];
            self.volume[to] += self.degree[node];
            self.size[from] -= 1;
            self.size[to] += 1;
            self.of[node] = to as u32;
        }
    }

    /// Joins what stayed small to a neighbour with room, whatever its volume.
    fn join_small(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        // Degrees and volumes are not needed any more.
        self.volume = Vec::new();
        // Isolated nodes are no clusters.
        let alone = self.degree.iter().zip(&mut self.size).filter(|(degree, _)| **degree == 0);
        alone.for_each(|(_, size)| *size = 0);
        let mut parent = std::mem::take(&mut self.degree);
        parent.iter_mut().zip(0..).for_each(|(p, c)| *p = c);
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask(&self.of, edges, i + 2 * AHEAD);
                self.ask_clusters(&self.size, edges, i + AHEAD);
                if inside.holds(u, v) {
                    self.join(u as usize, v as usize, &mut parent);
                }
            }
            Ok(())
        })?;
        self.of.iter_mut().for_each(|c| *c = root(&mut parent, *c));
        Ok(())
    }

    /// Joins the clusters of `u` and `v` if one is small.
    #[inline(always)]
    fn join(&mut self, u: usize, v: usize, parent: &mut [u32]) {
        let ends = [u, v].map(|end| self.of[end]);
        // What was joined to another has no nodes left: neither of these was, and both are large.
        if ends.iter().all(|&c| self.size[c as usize] > SMALL) {
            return;
        }
        let [a, b] = ends.map(|c| root(parent, c) as usize);
        let (small, to) = if self.size[a] < self.size[b] { (a, b) } else { (b, a) };
        let joined = self.size[a] + self.size[b];
        if a != b && self.size[small] <= SMALL && joined <= self.max_size {
            parent[small] = to as u32;
            self.size[to] = joined;
            self.size[small] = 0;
        }
    }

    /// Asks for what belongs to the clusters of the `i`-th edge.
    #[inline(always)]
    fn ask_clusters(&self, of_cluster: &[u32], edges: &[Pair], i: usize) {
        if let Some(edge) = edges.get(i) {
            edge.iter().for_each(|&end| prefetch::item(of_cluster, self.of[end as usize] as usize));
        }
    }

    /// The edges between clusters, of as many chunks as it takes to find more than `limit`;
    /// ascending.
    fn links(&self, level: &Sides, chunks: &mut Chunks, limit: usize) -> Result<Vec<Link>> {
        let mut links: Vec<Link> = Vec::new();
        let mut edges = Vec::new();
        let inside = level.inside();
        for chunk in 0..chunks.len() {
            chunks.read(chunk, &mut edges)?;
            for &[u, v] in edges.iter().filter(|&&[u, v]| inside.holds(u, v)) {
                let (a, b) = (self.of[u as usize], self.of[v as usize]);
                if a != b {
                    links.push(([a.min(b), a.max(b)], 1));
                }
            }
            links.sort_unstable();
            links.dedup_by(|next, first| {
                let same = next.0 == first.0;
                if same {
                    first.1 = first.1.saturating_add(next.1);
                }
                same
            });
            if links.len() > limit {
                break;
            }
        }
        Ok(links)
    }

    /// METIS on the clusters of each group that has links; `limit` clusters without links have
    /// their place in it as well.
    fn divide(
        self,
        level: &Sides,
        mut links: Vec<Link>,
        limit: usize,
        seed: u64,
    ) -> Result<Vec<u8>> {
        let mut group = vec![0; self.size.len()];
        self.of.iter().zip(level.group.iter()).for_each(|(&c, &g)| group[c as usize] = g);
        let group_of = |c: u32| group[c as usize];
        links.sort_by_key(|link| group_of(link.0[0]));
        let loners = self.loners(&links, limit, &group);
        let mut place = vec![NONE; self.size.len()];
        let mut clusters = Vec::new();
        let mut divided = Vec::new();
        for links in links.chunk_by(|a, b| group_of(a.0[0]) == group_of(b.0[0])) {
            let g = group_of(links[0].0[0]);
            let (first, from) = (clusters.len(), loners.partition_point(|&c| group_of(c) < g));
            linked(links, &mut place, &mut clusters);
            clusters.extend(loners[from..].iter().take_while(|&&c| group_of(c) == g));
            divided.push((g, links, first..clusters.len()));
        }
        (clusters.iter().zip(0..)).for_each(|(&c, i)| place[c as usize] = i);
        let weights = self.weights(level, &place, clusters.len());
        let mut side = vec![UNASSIGNED; self.size.len()];
        for (g, links, range) in divided {
            let (group, quotas) = (&level.groups[g as usize], level.loads.len());
            let seen = &weights[range.start * quotas..range.end * quotas];
            let weights = with_fillers(seen, &group.totals);
            let (graph, links) = contracted(links, &place, range.start, weights.len() / quotas);
            let found = divide(&graph, group, &weights, Some(&links), seed)?;
            clusters[range].iter().zip(found).for_each(|(&c, s)| side[c as usize] = s as u8);
        }
        Ok(self.of.iter().map(|&c| side[c as usize]).collect())
    }

    /// What the `count` clusters that have a place take of each quota, in the order of their
    /// places.
    fn weights(&self, level: &Sides, place: &[u32], count: usize) -> Vec<u64> {
        let quotas = level.loads.len();
        let mut weights = vec![0; count * quotas];
        for (v, &c) in self.of.iter().enumerate() {
            let place = place[c as usize];
            if place != NONE {
                let row = &mut weights[place as usize * quotas..][..quotas];
                row.iter_mut().zip(level.loads.of(v)).for_each(|(sum, w)| *sum += w);
            }
        }
        weights
    }

    /// The first `limit` clusters without links, group by group.
    fn loners(&self, links: &[Link], limit: usize, group: &[u16]) -> Vec<u32> {
        let mut alone: Vec<bool> = self.size.iter().map(|&size| size > 0).collect();
        links.iter().flat_map(|link| link.0).for_each(|c| alone[c as usize] = false);
        let loners = (0..alone.len() as u32).filter(|&c| alone[c as usize]);
        let mut loners: Vec<u32> = loners.take(limit).collect();
        loners.sort_by_key(|&c| group[c as usize]);
        loners
    }
}

/// Adds the clusters that `links` name to `clusters`, as they are first named; their places there
/// go to `place`.
fn linked(links: &[Link], place: &mut [u32], clusters: &mut Vec<u32>) {
    for c in links.iter().flat_map(|link| link.0) {
        if place[c as usize] == NONE {
            place[c as usize] = clusters.len() as u32;
            clusters.push(c);
        }
    }
}

/// `weights` and those of the fillers: they take what is missing to the `totals`, each of one quota.
fn with_fillers(weights: &[u64], totals: &[u64]) -> Vec<u64> {
    let mut all = weights.to_vec();
    for (quota, total) in totals.iter().enumerate() {
        let seen = weights.iter().skip(quota).step_by(totals.len()).sum::<u64>();
        for filler in (0..FILLERS).map(|i| (total - seen + i) / FILLERS) {
            all.extend((0..totals.len()).map(|q| if q == quota { filler } else { 0 }));
        }
    }
    all
}

/// The graph of `links` on `nodes` nodes, of which the first has the place `first`, and its edges'
/// weights.
fn contracted(links: &[Link], place: &[u32], first: usize, nodes: usize) -> (Adjacency, Vec<Idx>) {
    let place = |c: u32| place[c as usize] as usize - first;
    let mut offsets = vec![0 as Idx; nodes + 1];
    for c in links.iter().flat_map(|link| link.0) {
        offsets[place(c) + 1] += 1;
    }
    for i in 0..nodes {
        offsets[i + 1] += offsets[i];
    }
    let mut next = offsets.clone();
    let mut neighbours = vec![0 as Idx; 2 * links.len()];
    let mut weights = vec![0; 2 * links.len()];
    for &([a, b], weight) in links {
        let (a, b) = (place(a), place(b));
        for (from, to) in [(a, b), (b, a)] {
            let at = &mut next[from];
            neighbours[*at as usize] = to as Idx;
            weights[*at as usize] = weight as u64;
            *at += 1;
        }
    }
    (Adjacency::new(offsets, neighbours), scaled(weights.iter().copied()).collect())
}

/// The root of `i`, halving the path to it.
fn root(parent: &mut [u32], mut i: u32) -> u32 {
    while parent[i as usize] != i {
        parent[i as usize] = parent[parent[i as usize] as usize];
        i = parent[i as usize];
    }
    i
}

#[cfg(test)]
mod tests {
    use super::super::groups::Group;
    use super::super::loads::Loads;
    use super::*;
    use crate::PartitionOptions;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn two_communities_are_told_apart() {
        // Two rings of 40 with chords, and one edge between them.
        let ring = |from: u64| {
            (0..40)
                .flat_map(move |i| [1, 2, 3].map(|d| (i, (i + d) % 40)))
                .map(move |(u, v)| (from + u, from + v))
        };
        let edges = ring(0).chain(ring(40)).chain([(0, 40)]);
        let mut stream = MemoryEdges::new(80, edges).unwrap();
        let mut chunks = Chunks::deal(&mut stream, 4, 1, 1 << 20, &mut []).unwrap();
        let loads = Loads::new(&stream, &PartitionOptions::default(), true);
        let groups = vec![Group::new(loads.totals(80), 2, 2, &loads.caps())];
        let level = Sides::new(&loads, vec![0; 80], groups);
        let sides = by_clusters(&level, &mut chunks, 60, 1).unwrap();
        let first = |side: u8| sides[..40].iter().filter(|&&s| s == side).count();
        assert!(first(0) >= 36 || first(1) >= 36, "{sides:?}");
    }
}
