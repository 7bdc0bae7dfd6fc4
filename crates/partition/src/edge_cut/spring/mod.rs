//! `spring`: streaming partitioning by richest neighbors (CATGNN §4, Algorithm 1).

mod clusters;
mod deal;
mod merge;

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::EdgeStream;

use self::clusters::{Clustered, NONE};
use crate::balance::constraint::Constraint;
use crate::balance::level::level;
use crate::balance::quota::Quota;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};

/// Clusters nodes in one pass over the edges, merges the clusters along their richest neighbors,
/// and deals them out to parts, largest first.
///
/// Two passes over the edges, of which the first counts degrees; both endpoints of an edge count, so
/// directed graphs work. A second thread reads ahead. Memory: 26 bytes a node: degree, cluster,
/// richest neighbor and its degree 16, volume and size of the cluster it opened 8 (16 where all
/// degrees together reach 2³²), its part 2. While merging, 36 for each cluster that streaming left
/// replace those 8.
///
/// Readings of the paper's text, and a bound it lacks:
/// * the richest neighbor of *both* endpoints is updated by every edge, also between full clusters;
/// * a merged cluster goes back to its true rank in the ascending order;
/// * no cluster takes a node beyond β·|V|/p nodes, so that a hub's neighbors cannot outgrow a part;
/// * a cluster that no part has room for is split between parts.
///
/// Nodes without edges come last and fill the smallest parts.
///
/// Balances nodes (exact), and what else [`PartitionOptions::constraints`] names, unless told
/// otherwise the training nodes if there are any, as nearly as swaps of nodes reach it; for that, clusters keep within every constraint while they
/// merge, and 4 bytes a node and a bit for each constraint are held besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spring;

impl VertexPartitioner for Spring {
    fn name(&self) -> &'static str {
        "spring"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        if nodes >= NONE as u64 {
            return Err(Error::new(Kind::Limit, format!("spring: {nodes} nodes exceed 32 bits")));
        }
        let needed = memory(nodes, edges.num_edges());
        options.check_memory("spring", needed, "raise --memory or use random or range")?;
        let (degree, total) = clusters::degrees(edges)?;
        let constraints = options.constraints.as_deref().unwrap_or(&[Constraint::Train]);
        let quotas = Quota::all(options, constraints, nodes, total);
        let tau_vol = options.tau_vol.unwrap_or_else(|| default_tau_vol(total, options.parts));
        let cap = quotas[0].cap as u32;
        let Clustered { mut nodes, sizes } = clusters::cluster(edges, degree, total, tau_vol, cap)?;
        let before = sizes.len();
        let single = sizes.iter().filter(|&&size| size == 1).count();
        let mut weights = vec![sizes];
        for quota in &quotas[1..] {
            let mut weight = vec![0; before];
            for (v, node) in nodes.iter().enumerate().filter(|(_, n)| n.cluster != NONE) {
                weight[node.cluster as usize] += quota.of(v, node.degree);
            }
            weights.push(weight);
        }
        merge::merge(&mut nodes, &quotas, &mut weights);
        let after = weights[0].iter().filter(|&&size| size > 0).count();
        tracing::debug!(before, single, after, tau_vol, "clusters");
        let mut of = deal::deal(&nodes, &quotas, &weights, options.parts);
        level(&mut of, options.parts, &quotas, &|v| nodes[v].degree);
        Ok(Assignment { parts: options.parts, of })
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        Some(memory(nodes, edges))
    }
}

fn memory(nodes: u64, edges: u64) -> u64 {
    let wide = edges > u32::MAX as u64 / 2;
    nodes * if wide { 34 } else { 26 }
}

/// τ_vol of a graph whose degrees sum up to `total`: a part's share of the volume.
///
/// Measured on 15 graphs with 4, 8 and 16 parts, see `docs/spring.md`: lower thresholds copy more
/// nodes; higher ones save a few per cent of copies and put most edges of power-law graphs into one
/// part.
fn default_tau_vol(total: u64, parts: usize) -> u64 {
    (total / parts as u64).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::constraint::Constraint::*;
    use crate::{Fennel, Ldg};
    use gnarl_common::rng::Key;
    use gnarl_graph::MemoryEdges;

    /// 48 communities of 50 nodes, hubs among the first nodes, training nodes that follow the ids.
    fn communities() -> (MemoryEdges, PartitionOptions) {
        let key = Key::new(11);
        let edge = |i: u64| {
            let u = key.below(3 * i, 2400);
            let inside = u / 50 * 50 + key.below(3 * i + 1, 50);
            (u, if i.is_multiple_of(8) { key.below(3 * i + 2, 200) } else { inside })
        };
        let edges = MemoryEdges::new(2400, (0..18_000).map(edge)).unwrap();
        let options = PartitionOptions {
            parts: 4,
            train: (0..600).collect(),
            types: vec![0..500, 500..2400],
            ..Default::default()
        };
        (edges, options)
    }

    /// Largest part over the mean: of nodes, training nodes, the first type, degrees.
    fn imbalances(
        partitioner: &dyn VertexPartitioner,
        edges: &MemoryEdges,
        options: &PartitionOptions,
    ) -> [f64; 4] {
        let of = partitioner.partition(&mut edges.clone(), options).unwrap().of;
        let (degree, _) = clusters::degrees(&mut edges.clone()).unwrap();
        let weights: [&dyn Fn(usize) -> u64; 4] =
            [&|_| 1, &|v| (v < 600) as u64, &|v| (v < 500) as u64, &|v| degree[v] as u64];
        weights.map(|weight| {
            let mut sums = [0; 4];
            of.iter().enumerate().for_each(|(v, &p)| sums[p as usize] += weight(v));
            *sums.iter().max().unwrap() as f64 * 4.0 / sums.iter().sum::<u64>() as f64
        })
    }

    #[test]
    fn constraints_are_kept_by_all_that_stream() {
        let (edges, mut options) = communities();
        for partitioner in [&Spring as &dyn VertexPartitioner, &Ldg, &Fennel] {
            let name = partitioner.name();
            options.constraints = None;
            let free = imbalances(partitioner, &edges, &options);
            assert!(free[0] <= 1.05 && free[1..].iter().any(|&b| b > 1.06), "{name}: {free:?}");
            options.constraints = Some(vec![Train, Types, Edges]);
            let held = imbalances(partitioner, &edges, &options);
            assert!(held.iter().all(|&b| b <= 1.055), "{name}: {held:?}");
        }
    }

    #[test]
    fn no_part_outgrows_its_bound() {
        // Five cliques of 30 for four parts: one is to be split, and the isolated nodes find room.
        let clique =
            |c: u64| (0..30).flat_map(move |i| (0..i).map(move |j| (30 * c + i, 30 * c + j)));
        let mut edges = MemoryEdges::new(170, (0..5).flat_map(clique)).unwrap();
        let options = PartitionOptions { parts: 4, ..Default::default() };
        let sizes = Spring.partition(&mut edges, &options).unwrap().sizes();
        assert!(sizes.iter().all(|&size| size <= 44), "{sizes:?}");
    }

    #[test]
    fn low_thresholds_leave_many_clusters() {
        let (edges, mut options) = communities();
        let mut last = 0;
        for tau_vol in [1 << 20, 400, 60, 0] {
            options.tau_vol = Some(tau_vol);
            let (degree, total) = clusters::degrees(&mut edges.clone()).unwrap();
            let clusters = clusters::cluster(&mut edges.clone(), degree, total, tau_vol, 630);
            let left = clusters.unwrap().sizes.len();
            assert!(left > last, "{left} clusters below {tau_vol}, {last} before");
            last = left;
        }
        assert_eq!(last, 2400);
    }
}
