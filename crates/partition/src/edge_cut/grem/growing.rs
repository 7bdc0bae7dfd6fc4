//! Clusters that grow in a stream, as SPRING's do (CATGNN Algorithm 1, lines 2 to 21), until they
//! are few enough for a chunk to hold the edges between them.

use gnarl_common::error::Result;
use gnarl_common::prefetch;

use super::shuffle::{Chunks, Pair};
use super::sides::Sides;

/// Planned mean number of edges between clusters per cluster: few enough clusters for a
/// chunk of edges. Measured: 4 and 16 are no better.
const DEGREE: u64 = 8;
/// Maximum nodes of a cluster over the planned number.
const GROWTH: u64 = 4;
/// Clusters up to this many nodes are joined to a neighboring cluster in the end.
const SMALL: u32 = 2;
/// Prefetch distance in edges.
const AHEAD: usize = 24;

/// Clusters of nodes, each within a group.
pub(super) struct Clusters {
    /// Cluster of each node.
    pub(super) of: Vec<u32>,
    /// Number of nodes of each cluster.
    pub(super) size: Vec<u32>,
}

/// Grows clusters few enough for `limit` edges between them, in three passes over the chunks.
/// Memory: 16 bytes a node.
pub(super) fn grow(level: &Sides, chunks: &mut Chunks, limit: u64) -> Result<Clusters> {
    let mut growing = Growing::new(level.group.len(), chunks.edges(), limit);
    growing.count(level, chunks)?;
    growing.stream(level, chunks)?;
    growing.join_small(level, chunks)
}

/// A node while clusters grow. All that an edge needs of it is in one cache line, as for a cluster.
#[derive(Clone, Copy)]
struct Node {
    /// Cluster, at first its own.
    cluster: u32,
    /// Degree within its group.
    degree: u32,
}

/// A cluster while nodes move.
#[derive(Clone, Copy)]
struct Cluster {
    /// Sum of the degrees of its nodes.
    volume: u32,
    /// Number of nodes.
    size: u32,
}

/// A cluster while small ones are joined to others.
#[derive(Clone, Copy)]
struct Tree {
    /// The cluster it was joined to, or itself.
    parent: u32,
    /// Number of nodes; 0 once it was joined.
    size: u32,
}

/// Clusters of nodes, each within a group, with nodes that move between them.
struct Growing {
    nodes: Vec<Node>,
    clusters: Vec<Cluster>,
    /// No cluster above this volume takes or gives nodes.
    max_volume: u32,
    /// Most nodes of a cluster.
    max_size: u32,
}

/// Prefetches the nodes at both endpoints of the edge far ahead of the `i`-th.
#[inline(always)]
fn ask_nodes<T>(nodes: &[T], edges: &[Pair], i: usize) {
    if let Some(edge) = edges.get(i + 2 * AHEAD) {
        edge.iter().for_each(|&end| prefetch::item(nodes, end as usize));
    }
}

/// Prefetches the clusters at both endpoints of the edge ahead of the `i`-th.
#[inline(always)]
fn ask_clusters<T>(nodes: &[Node], clusters: &[T], edges: &[Pair], i: usize) {
    if let Some(edge) = edges.get(i + AHEAD) {
        let ask = |&end: &u32| prefetch::item(clusters, nodes[end as usize].cluster as usize);
        edge.iter().for_each(ask);
    }
}

impl Growing {
    fn new(nodes: usize, edges: u64, limit: u64) -> Self {
        let planned = limit.div_ceil(DEGREE);
        let max_volume = (2 * edges).div_ceil(planned).min(u32::MAX as u64 / 2) as u32;
        let max_size = (GROWTH * (nodes as u64).div_ceil(planned)).max(2) as u32;
        let clusters = vec![Cluster { volume: 0, size: 1 }; nodes];
        let nodes = (0..nodes as u32).map(|cluster| Node { cluster, degree: 0 }).collect();
        Self { nodes, clusters, max_volume, max_size }
    }

    /// Degrees, and volumes of clusters of one node each.
    fn count(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask_nodes(&self.nodes, edges, i);
                if inside.holds(u, v) {
                    for end in [u as usize, v as usize] {
                        self.nodes[end].degree = self.nodes[end].degree.saturating_add(1);
                    }
                }
            }
            Ok(())
        })?;
        let clusters = self.clusters.iter_mut().zip(&self.nodes);
        clusters.for_each(|(cluster, node)| cluster.volume = node.degree);
        Ok(())
    }

    /// SPRING's rule: the endpoint in the cluster of less volume moves to the other's.
    fn stream(&mut self, level: &Sides, chunks: &mut Chunks) -> Result<()> {
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask_nodes(&self.nodes, edges, i);
                ask_clusters(&self.nodes, &self.clusters, edges, i);
                if inside.holds(u, v) {
                    self.meet(u as usize, v as usize);
                }
            }
            Ok(())
        })
    }

    #[inline(always)]
    fn meet(&mut self, u: usize, v: usize) {
        let [a, b] = [u, v].map(|end| self.nodes[end].cluster as usize);
        let volume = |c: usize| self.clusters[c].volume;
        if a == b || volume(a).max(volume(b)) > self.max_volume {
            return;
        }
        let (node, from, to) = if volume(a) <= volume(b) { (u, a, b) } else { (v, b, a) };
        let node = &mut self.nodes[node];
        if self.clusters[to].size < self.max_size {
            node.cluster = to as u32;
            self.clusters[from].volume -= node.degree;
            self.clusters[from].size -= 1;
            self.clusters[to].volume += node.degree;
            self.clusters[to].size += 1;
        }
    }

    /// Joins small clusters to a neighbor with room, whatever its volume.
    fn join_small(self, level: &Sides, chunks: &mut Chunks) -> Result<Clusters> {
        let Self { mut nodes, mut clusters, max_size, .. } = self;
        // Isolated nodes are no clusters.
        let alone = clusters.iter_mut().zip(&nodes).filter(|(_, node)| node.degree == 0);
        alone.for_each(|(cluster, _)| cluster.size = 0);
        let tree = |(cluster, parent): (Cluster, u32)| Tree { parent, size: cluster.size };
        let mut trees: Vec<Tree> = clusters.into_iter().zip(0..).map(tree).collect();
        let inside = level.inside();
        chunks.each(|edges| {
            for (i, &[u, v]) in edges.iter().enumerate() {
                ask_nodes(&nodes, edges, i);
                ask_clusters(&nodes, &trees, edges, i);
                if inside.holds(u, v) {
                    join(&mut nodes, &mut trees, [u, v].map(|end| end as usize), max_size);
                }
            }
            Ok(())
        })?;
        let of = nodes.into_iter().map(|node| root(&mut trees, node.cluster)).collect();
        Ok(Clusters { of, size: trees.into_iter().map(|tree| tree.size).collect() })
    }
}

/// Joins the clusters of two nodes if one is small.
#[inline(always)]
fn join(nodes: &mut [Node], trees: &mut [Tree], ends: [usize; 2], max_size: u32) {
    let clusters = ends.map(|end| nodes[end].cluster);
    // A cluster joined to another has size 0: neither of these was, and both are large.
    if clusters.iter().all(|&c| trees[c as usize].size > SMALL) {
        return;
    }
    // Path compression, so that the next edge of a node finds its root at once.
    let [a, b] = ends.map(|end| {
        let cluster = root(trees, nodes[end].cluster);
        nodes[end].cluster = cluster;
        cluster as usize
    });
    let (small, to) = if trees[a].size < trees[b].size { (a, b) } else { (b, a) };
    let joined = trees[a].size + trees[b].size;
    if a != b && trees[small].size <= SMALL && joined <= max_size {
        trees[small] = Tree { parent: to as u32, size: 0 };
        trees[to].size = joined;
    }
}

/// The root of `i`, halving the path to it.
#[inline(always)]
fn root(trees: &mut [Tree], mut i: u32) -> u32 {
    while trees[i as usize].parent != i {
        let parent = trees[i as usize].parent;
        trees[i as usize].parent = trees[parent as usize].parent;
        i = trees[i as usize].parent;
    }
    i
}
