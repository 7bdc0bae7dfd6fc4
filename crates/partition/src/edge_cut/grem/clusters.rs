//! Initial sides for small chunks: METIS on clusters of the whole stream.
//!
//! A tenth of a sparse graph falls into small fragments, and METIS on them sees nothing of the
//! global structure. So the nodes are first clustered in a stream, as SPRING clusters them (CATGNN
//! Algorithm 1, lines 2 to 21), until their clusters are few enough for a chunk to hold the edges
//! between them; METIS divides those.

use gnarl_common::error::Result;

use super::groups::UNASSIGNED;
use super::growing::{Clusters, grow};
use super::seed::{divide, scaled};
use super::shuffle::Chunks;
use super::sides::Sides;
use crate::edge_cut::metis::{Adjacency, Idx};

/// Planned edges between clusters: no more than the edges of a chunk and this share of
/// all, and neither more nor fewer than these bounds.
const SHARE: u64 = 32;
const LEAST_LINKS: u64 = 1 << 19;
const MOST_LINKS: u64 = 1 << 22;
/// Edges read before parallel links are summed, as a share of the planned links.
const SLICES: usize = 4;
/// Nodes without edges that stand for all nodes METIS does not see: they leave it free to cut the
/// others unevenly, as greedy decisions about the unseen ones can even that out.
const FILLERS: u64 = 64;

/// No place among the paired clusters.
const NONE: u32 = u32::MAX;

/// Weight of the edges between two clusters, the smaller id first.
type Link = ([u32; 2], u32);

/// Edges between clusters to plan for in a graph of `edges` seen `chunk` at a time.
pub(super) fn links(edges: u64, chunk: u64) -> u64 {
    chunk.min(edges / SHARE).clamp(LEAST_LINKS, MOST_LINKS)
}

/// Assigns a side to each node by METIS on the graph of clusters with at most about `limit` edges;
/// nodes of clusters outside of it get none.
///
/// Passes over the chunks: three, and as many chunks of a fourth as are needed. Memory: 28 bytes a
/// node and METIS's for `limit` edges and three times as many nodes.
pub(super) fn by_clusters(
    level: &Sides,
    chunks: &mut Chunks,
    limit: u64,
    seed: u64,
) -> Result<Vec<u8>> {
    let clusters = grow(level, chunks, limit)?;
    let links = clusters.links(level, chunks, limit as usize)?;
    clusters.divide(level, links, limit as usize, seed)
}

impl Clusters {
    /// The edges between clusters, of as many chunks as it takes to find more than `limit`;
    /// ascending.
    fn links(&self, level: &Sides, chunks: &mut Chunks, limit: usize) -> Result<Vec<Link>> {
        let mut links: Vec<Link> = Vec::new();
        let mut edges = Vec::new();
        let inside = level.inside();
        for chunk in 0..chunks.len() {
            chunks.read(chunk, &mut edges)?;
            for edges in edges.chunks(limit.div_ceil(SLICES)) {
                let between = edges.iter().filter(|&&[u, v]| inside.holds(u, v));
                let ends = between.map(|edge| edge.map(|end| self.of[end as usize]));
                links.extend(ends.filter(|[a, b]| a != b).map(|[a, b]| ([a.min(b), a.max(b)], 1)));
                links.sort_unstable();
                links.dedup_by(|next, first| {
                    let same = next.0 == first.0;
                    if same {
                        first.1 = first.1.saturating_add(next.1);
                    }
                    same
                });
                if links.len() > limit {
                    return Ok(links);
                }
            }
        }
        Ok(links)
    }

    /// Runs METIS on the clusters of each group that has links; `limit` clusters without links are
    /// included as well.
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

    /// The loads of the `count` clusters that have a place under each quota, in the order of their
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

/// Appends the clusters of `links` to `clusters`, in the order of first occurrence; their places
/// there go to `place`.
fn linked(links: &[Link], place: &mut [u32], clusters: &mut Vec<u32>) {
    for c in links.iter().flat_map(|link| link.0) {
        if place[c as usize] == NONE {
            place[c as usize] = clusters.len() as u32;
            clusters.push(c);
        }
    }
}

/// `weights` and those of the fillers, which fill up to the `totals`, each of one quota.
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
    let mut neighbors = vec![0 as Idx; 2 * links.len()];
    let mut weights = vec![0; 2 * links.len()];
    for &([a, b], weight) in links {
        let (a, b) = (place(a), place(b));
        for (from, to) in [(a, b), (b, a)] {
            let at = &mut next[from];
            neighbors[*at as usize] = to as Idx;
            weights[*at as usize] = weight as u64;
            *at += 1;
        }
    }
    (Adjacency::new(offsets, neighbors), scaled(weights.iter().copied()).collect())
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
