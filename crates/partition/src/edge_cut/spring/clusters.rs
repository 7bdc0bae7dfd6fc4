//! Lines 2–21 of Algorithm 1: clustering of nodes in one pass.

use gnarl_common::error::Result;
use gnarl_common::prefetch::item as prefetch;
use gnarl_graph::{EdgeChunk, EdgeStream};

use crate::read::ahead::for_each_chunk;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// Prefetch distance of node rows in edges; cluster rows are prefetched at half of it.
///
/// On 20 M nodes and 200 M edges `spring` takes 14.7 s of processor time with 16, 18.7 with 8, 16.6
/// with 32 and 22.9 without prefetching: single runs on a busy machine, good for the last only.
const AHEAD: usize = 16;

/// The state of a node: 16 bytes, so that no row straddles two cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Node {
    /// `d(v)`, 0 for nodes without edges (but self loops).
    pub degree: u32,
    /// `c_v`. Clusters are named after the node that opened them.
    pub cluster: u32,
    /// `n_v`, [`NONE`] before it is met.
    pub richest: u32,
    /// `d(n_v)`.
    pub richest_degree: u32,
}

/// A cluster of nodes, whose volume is counted in `V`.
#[derive(Clone, Copy)]
struct Cluster<V> {
    /// `vol(i)`.
    volume: V,
    /// `|C_i|`.
    size: u32,
}

/// Sums of degrees: 32 bits while all degrees together fit, else 64.
trait Volume: Copy + PartialOrd + Send {
    fn of(degrees: u64) -> Self;
    fn add(&mut self, degree: u32);
    fn take(&mut self, degree: u32);
}

macro_rules! volume {
    ($($t:ty),*) => {$(
        impl Volume for $t {
            fn of(degrees: u64) -> Self {
                degrees.min(<$t>::MAX as u64) as $t
            }

            fn add(&mut self, degree: u32) {
                *self += degree as $t;
            }

            fn take(&mut self, degree: u32) {
                *self -= degree as $t;
            }
        }
    )*};
}

volume!(u32, u64);

/// The result of clustering: the nodes, whose clusters are numbered from 0 in the order of the
/// nodes that opened them, and the clusters' sizes. Nodes without edges are in none ([`NONE`]).
pub(super) struct Clustered {
    pub nodes: Vec<Node>,
    pub sizes: Vec<u64>,
}

/// The degrees of all nodes over in- and out-edges, self loops left out, and their sum.
pub(super) fn degrees(edges: &mut dyn EdgeStream) -> Result<(Vec<u32>, u64)> {
    let mut degree = vec![0u32; edges.num_nodes() as usize];
    let mut total = 0;
    for_each_chunk(edges, &mut |chunk| {
        for (i, (u, v)) in chunk.iter().enumerate() {
            for ends in [&chunk.src, &chunk.dst] {
                if let Some(&end) = ends.get(i + 2 * AHEAD) {
                    prefetch(&degree, end as usize);
                }
            }
            if u != v {
                for end in [u, v] {
                    let degree = &mut degree[end as usize];
                    *degree = degree.saturating_add(1);
                }
                total += 2;
            }
        }
    })?;
    Ok((degree, total))
}

/// Clusters nodes of these degrees in one pass over their edges.
pub(super) fn cluster(
    edges: &mut dyn EdgeStream,
    degree: Vec<u32>,
    total: u64,
    tau_vol: u64,
    cap: u32,
) -> Result<Clustered> {
    if total <= u32::MAX as u64 {
        Clusters::<u32>::new(degree, tau_vol, cap).run(edges)
    } else {
        Clusters::<u64>::new(degree, tau_vol, cap).run(edges)
    }
}

struct Clusters<V> {
    nodes: Vec<Node>,
    clusters: Vec<Cluster<V>>,
    tau_vol: V,
    /// Most nodes of a cluster.
    cap: u32,
}

impl<V: Volume> Clusters<V> {
    /// Puts every node into a cluster of its own. The paper opens clusters as it meets their nodes,
    /// which is equivalent.
    fn new(degree: Vec<u32>, tau_vol: u64, cap: u32) -> Self {
        let open = |(&degree, cluster)| Node { degree, cluster, richest: NONE, richest_degree: 0 };
        let nodes: Vec<Node> = degree.iter().zip(0u32..).map(open).collect();
        drop(degree);
        let alone = |n: &Node| Cluster { volume: V::of(n.degree as u64), size: 1 };
        let clusters = nodes.iter().map(alone).collect();
        Self { nodes, clusters, tau_vol: V::of(tau_vol), cap }
    }

    fn run(mut self, edges: &mut dyn EdgeStream) -> Result<Clustered> {
        for_each_chunk(edges, &mut |chunk| self.stream(chunk))?;
        Ok(self.number())
    }

    fn stream(&mut self, chunk: &EdgeChunk) {
        let at = |i: usize| Some((*chunk.src.get(i)? as usize, *chunk.dst.get(i)? as usize));
        for (i, (u, v)) in chunk.iter().enumerate() {
            if let Some((u, v)) = at(i + AHEAD) {
                prefetch(&self.nodes, u);
                prefetch(&self.nodes, v);
            }
            if let Some((u, v)) = at(i + AHEAD / 2) {
                prefetch(&self.clusters, self.nodes[u].cluster as usize);
                prefetch(&self.clusters, self.nodes[v].cluster as usize);
            }
            if u != v {
                self.edge(u as u32, v as u32);
            }
        }
    }

    fn edge(&mut self, u: u32, v: u32) {
        self.meet(u, v);
        self.meet(v, u);
        let (cu, cv) = (self.nodes[u as usize].cluster, self.nodes[v as usize].cluster);
        if cu == cv {
            return;
        }
        let volume = |c: u32| self.clusters[c as usize].volume;
        let (vol_u, vol_v) = (volume(cu), volume(cv));
        if vol_u > self.tau_vol || vol_v > self.tau_vol {
            return;
        }
        if vol_u <= vol_v { self.shift(u, cu, cv) } else { self.shift(v, cv, cu) }
    }

    /// Updates the richest neighbor of `u` if `v` is richer.
    fn meet(&mut self, u: u32, v: u32) {
        let degree = self.nodes[v as usize].degree;
        let node = &mut self.nodes[u as usize];
        if node.richest_degree < degree {
            (node.richest, node.richest_degree) = (v, degree);
        }
    }

    fn shift(&mut self, v: u32, from: u32, to: u32) {
        let node = &mut self.nodes[v as usize];
        let target = &mut self.clusters[to as usize];
        if target.size >= self.cap {
            return;
        }
        target.volume.add(node.degree);
        target.size += 1;
        node.cluster = to;
        let source = &mut self.clusters[from as usize];
        source.volume.take(node.degree);
        source.size -= 1;
    }

    /// Numbers the clusters that have nodes, those of nodes without edges aside.
    fn number(self) -> Clustered {
        let Self { mut nodes, mut clusters, .. } = self;
        let mut sizes = Vec::new();
        for (cluster, node) in clusters.iter_mut().zip(&nodes) {
            let kept = cluster.size > 0 && node.degree > 0;
            let number = if kept { sizes.len() as u32 } else { NONE };
            sizes.extend(kept.then_some(cluster.size as u64));
            // From here on `size` stores the number; the size itself is in `sizes`.
            cluster.size = number;
        }
        for node in &mut nodes {
            node.cluster = clusters[node.cluster as usize].size;
        }
        Clustered { nodes, sizes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::rng::Key;
    use gnarl_graph::MemoryEdges;

    /// Lines 2–21 as in the paper: the cluster of each node and its richest neighbor.
    fn paper(edges: &MemoryEdges, degree: &[u32], tau_vol: u64) -> (Vec<usize>, Vec<u32>) {
        let (mut c, mut n) = (vec![usize::MAX; degree.len()], vec![NONE; degree.len()]);
        let mut vol = Vec::new();
        edges
            .clone()
            .for_each(&mut |u, v| {
                let (u, v) = (u as usize, v as usize);
                if u == v {
                    return;
                }
                for end in [u, v] {
                    if c[end] == usize::MAX {
                        c[end] = vol.len();
                        vol.push(degree[end] as u64);
                    }
                }
                for (u, v) in [(u, v), (v, u)] {
                    if n[u] == NONE || degree[n[u] as usize] < degree[v] {
                        n[u] = v as u32;
                    }
                }
                let (cu, cv) = (c[u], c[v]);
                if vol[cu] <= tau_vol && vol[cv] <= tau_vol {
                    let (moved, to) = if vol[cu] <= vol[cv] { (u, cv) } else { (v, cu) };
                    vol[c[moved]] -= degree[moved] as u64;
                    vol[to] += degree[moved] as u64;
                    c[moved] = to;
                }
            })
            .unwrap();
        (c, n)
    }

    #[test]
    fn clusters_are_those_of_the_paper() {
        let key = Key::new(3);
        let end = |c: u64| key.below(c, 60) * key.below(c + 1, 60) / 60;
        let edges = (0..300).map(|i| (end(4 * i), end(4 * i + 2)));
        let edges = MemoryEdges::new(64, edges).unwrap();
        let (degree, total) = degrees(&mut edges.clone()).unwrap();
        for tau_vol in [0, 20, 60, 1000] {
            let (c, n) = paper(&edges, &degree, tau_vol);
            let ours = [
                Clusters::<u32>::new(degree.clone(), tau_vol, 64).run(&mut edges.clone()),
                Clusters::<u64>::new(degree.clone(), tau_vol, 64).run(&mut edges.clone()),
                cluster(&mut edges.clone(), degree.clone(), total, tau_vol, 64),
            ];
            for Clustered { nodes, sizes } in ours.map(Result::unwrap) {
                for (v, node) in nodes.iter().enumerate() {
                    assert_eq!(node.richest, n[v]);
                    assert_eq!(node.cluster == NONE, degree[v] == 0);
                    let same = |w: &usize| nodes[*w].cluster == node.cluster;
                    assert!((0..64).all(|w| same(&w) == (c[w] == c[v])), "{tau_vol}");
                    if node.cluster != NONE {
                        let size = (0..64).filter(same).count() as u64;
                        assert_eq!(sizes[node.cluster as usize], size);
                    }
                }
            }
        }
    }
}
