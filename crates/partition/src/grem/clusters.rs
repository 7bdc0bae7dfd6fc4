//! Where a chunk alone shows too little of the graph: sides from clusters of the whole stream.
//!
//! A tenth of a sparse graph falls into small pieces, and METIS on them knows nothing of what the
//! graph looks like. So the nodes are first clustered in a stream, as SPRING clusters them (CATGNN
//! Algorithm 1, lines 2 to 21), until their clusters are few enough for a chunk to hold the edges
//! between them; METIS halves those.

use gnarl_graph::error::Result;

use super::groups::UNASSIGNED;
use super::seed::halve;
use super::shuffle::Chunks;
use super::sides::Sides;
use crate::metis::{Adjacency, Idx};

/// Edges between clusters that a cluster has on average, as planned: few enough clusters for a
/// chunk of edges. Measured: 4 and 16 are no better.
const DEGREE: u64 = 8;
/// How much larger than planned a cluster may grow in nodes.
const GROWTH: u64 = 4;
/// Clusters up to this many nodes are joined to one of their neighbours in the end.
const SMALL: u32 = 2;

/// No place among the paired clusters.
const NONE: u32 = u32::MAX;

/// Weight of the edges between two clusters, the smaller id first.
type Link = ([u32; 2], u32);

/// Gives each node a side by METIS on the graph of clusters with at most about `limit` edges;
/// nodes of clusters without an edge there get none.
///
/// Passes over the chunks: three, and as many chunks of a fourth as are needed. Memory: 25 bytes a
/// node and METIS's for `limit` edges.
pub(super) fn by_clusters(
    level: &Sides,
    chunks: &mut Chunks,
    limit: u64,
    seed: u64,
) -> Result<Vec<u8>> {
    let mut clusters = Clusters::new(level, chunks, limit)?;
    clusters.stream(level, chunks)?;
    clusters.join_small(level, chunks)?;
    let links = clusters.links(level, chunks, limit as usize)?;
    clusters.halve(level, links, seed)
}

/// Clusters of nodes, each within a group.
struct Clusters {
    /// Cluster of each node, at first its own.
    of: Vec<u32>,
    /// Degree of each node in its group.
    degree: Vec<u32>,
    /// Sum of degrees and number of nodes of each cluster.
    volume: Vec<u64>,
    size: Vec<u32>,
    /// No cluster above this volume takes or gives nodes.
    max_volume: u64,
    /// Most nodes of a cluster.
    max_size: u32,
}

/// Calls `visit` with every edge inside a group that is to be halved.
fn each(level: &Sides, chunks: &mut Chunks, mut visit: impl FnMut(usize, usize)) -> Result<()> {
    let mut edges = Vec::new();
    for chunk in 0..chunks.len() {
        chunks.read(chunk, &mut edges)?;
        let inside = edges.iter().filter(|&&[u, v]| u != v && level.together(u, v));
        inside.for_each(|&[u, v]| visit(u as usize, v as usize));
    }
    Ok(())
}

impl Clusters {
    fn new(level: &Sides, chunks: &mut Chunks, limit: u64) -> Result<Self> {
        let nodes = level.group.len();
        let mut degree = vec![0u32; nodes];
        each(level, chunks, |u, v| {
            for end in [u, v] {
                degree[end] = degree[end].saturating_add(1);
            }
        })?;
        let volume: Vec<u64> = degree.iter().map(|&d| d as u64).collect();
        let planned = (limit / DEGREE).max(16);
        let max_volume = volume.iter().sum::<u64>().div_ceil(planned);
        let max_size = (GROWTH * (nodes as u64).div_ceil(planned)).max(2) as u32;
        let (of, size) = ((0..nodes as u32).collect(), vec![1; nodes]);
        Ok(Self { of, degree, volume, size, max_volume, max_size })
    }

    /// SPRING's rule: the end in the cluster of less volume moves to the other's.
    fn stream(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        each(level, chunks, |u, v| {
            let (a, b) = (self.of[u] as usize, self.of[v] as usize);
            if a == b || self.volume[a].max(self.volume[b]) > self.max_volume {
                return;
            }
            let (node, from, to) =
                if self.volume[a] <= self.volume[b] { (u, a, b) } else { (v, b, a) };
            if self.size[to] < self.max_size {
                self.volume[from] -= self.degree[node] as u64;
                self.volume[to] += self.degree[node] as u64;
                self.size[from] -= 1;
                self.size[to] += 1;
                self.of[node] = to as u32;
            }
        })
    }

    /// Joins what stayed small to a neighbour with room, whatever its volume.
    fn join_small(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        // Degrees and volumes are not needed any more.
        self.volume = Vec::new();
        let mut parent = std::mem::take(&mut self.degree);
        parent.iter_mut().zip(0..).for_each(|(p, c)| *p = c);
        each(level, chunks, |u, v| {
            let [a, b] = [u, v].map(|end| root(&mut parent, self.of[end]) as usize);
            let (small, to) = if self.size[a] < self.size[b] { (a, b) } else { (b, a) };
            let joined = self.size[a] + self.size[b];
            if a != b && self.size[small] <= SMALL && joined <= self.max_size {
                parent[small] = to as u32;
                self.size[to] = joined;
                self.size[small] = 0;
            }
        })?;
        self.of.iter_mut().for_each(|c| *c = root(&mut parent, *c));
        Ok(())
    }

    /// The edges between clusters, of as many chunks as it takes to find more than `limit`;
    /// ascending.
    fn links(&self, level: &Sides, chunks: &mut Chunks, limit: usize) -> Result<Vec<Link>> {
        let mut links: Vec<Link> = Vec::new();
        let mut edges = Vec::new();
        for chunk in 0..chunks.len() {
            chunks.read(chunk, &mut edges)?;
            for &[u, v] in edges.iter().filter(|&&[u, v]| level.together(u, v)) {
                let (a, b) = (self.of[u as usize], self.of[v as usize]);
                if a != b {
                    links.push(([a.min(b), a.max(b)], 1));
                }
            }
            links.sort_unstable();
            links.dedup_by(|next, first| {
                let same = next.0 == first.0;
                first.1 = first.1.saturating_add(if same { next.1 } else { 0 });
                same
            });
            if links.len() > limit {
                break;
            }
        }
        Ok(links)
    }

    /// METIS on the clusters of each group that have links.
    fn halve(self, level: &Sides, mut links: Vec<Link>, seed: u64) -> Result<Vec<u8>> {
        let mut group = vec![0; self.size.len()];
        self.of.iter().zip(&level.group).for_each(|(&c, &g)| group[c as usize] = g);
        let group_of = |link: &Link| group[link.0[0] as usize];
        links.sort_by_key(group_of);
        let mut side = vec![UNASSIGNED; self.size.len()];
        let mut place = vec![NONE; self.size.len()];
        for links in links.chunk_by(|a, b| group_of(a) == group_of(b)) {
            let (clusters, graph, weights) = contracted(links, &mut place)?;
            let sizes: Vec<u64> = clusters.iter().map(|&c| self.size[c as usize] as u64).collect();
            let group = &level.groups[group_of(&links[0]) as usize];
            let halves = halve(&graph, group, Some((&scaled(&sizes), &weights)), seed)?;
            clusters.iter().zip(halves).for_each(|(&c, half)| side[c as usize] = half as u8);
        }
        Ok(self.of.iter().map(|&c| side[c as usize]).collect())
    }
}

/// The clusters that `links` name, as they are first named, their graph, and its edges' weights.
/// `place` has a place for every cluster, none of them taken for these yet.
fn contracted(links: &[Link], place: &mut [u32]) -> Result<(Vec<u32>, Adjacency, Vec<Idx>)> {
    let mut clusters = Vec::new();
    let mut offsets = vec![0];
    for &c in links.iter().flat_map(|link| &link.0) {
        if place[c as usize] == NONE {
            place[c as usize] = clusters.len() as u32;
            clusters.push(c);
            offsets.push(0);
        }
        offsets[place[c as usize] as usize + 1] += 1;
    }
    for i in 1..offsets.len() {
        offsets[i] += offsets[i - 1];
    }
    let mut next = offsets.clone();
    let mut neighbours = vec![0 as Idx; 2 * links.len()];
    let mut weights = vec![0; 2 * links.len()];
    for &([a, b], weight) in links {
        let (a, b) = (place[a as usize], place[b as usize]);
        for (from, to) in [(a, b), (b, a)] {
            let at = next[from as usize] as usize;
            neighbours[at] = to as Idx;
            weights[at] = weight as u64;
            next[from as usize] += 1;
        }
    }
    Ok((clusters, Adjacency::new(offsets, neighbours), scaled(&weights)))
}

/// `weights` in METIS's integers, which must hold their sum: scaled down if they would not.
fn scaled(weights: &[u64]) -> Vec<Idx> {
    let most = Idx::MAX as u64 / 2;
    let divisor = (weights.iter().sum::<u64>() / most + 1).next_power_of_two();
    weights.iter().map(|&w| (w / divisor).max(1) as Idx).collect()
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
    use super::*;
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
        let mut chunks = Chunks::deal(&mut stream, 4, 1, 1 << 20).unwrap();
        let level = Sides::new(vec![0; 80], vec![Group::new(80, 2, 42)]);
        let sides = by_clusters(&level, &mut chunks, 60, 1).unwrap();
        let first = |side: u8| sides[..40].iter().filter(|&&s| s == side).count();
        assert!(first(0) >= 36 || first(1) >= 36, "{sides:?}");
    }

    #[test]
    fn sums_of_weights_fit() {
        assert_eq!(scaled(&[3, 0, 5]), [3, 1, 5]);
        let sum: u64 = scaled(&[1 << 40, 1 << 40, 7]).iter().map(|&w| w as u64).sum();
        assert!(sum < Idx::MAX as u64, "{sum}");
    }
}
