//! One-pass greedy partitioning of a stream of nodes.

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::EdgeStream;

use crate::balance::constraint::Constraint;
use crate::balance::level::level;
use crate::balance::quota::Quota;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions};
use crate::read::adjacency::for_each_list;

/// Bytes per node, without neighbor lists: its part, its degree, the offset of its list.
const NODE_BYTES: u64 = 16;
/// Least room for neighbor lists: less would need many readings of the stream.
const LEAST_LISTS: u64 = 1 << 20;

/// Memory in bytes of a stream over all nodes, with all lists at once.
pub(crate) fn memory(nodes: u64, edges: u64) -> u64 {
    NODE_BYTES * nodes + LEAST_LISTS.max(8 * edges)
}

/// The balanced quantities beside the nodes.
fn constraints(options: &PartitionOptions) -> &[Constraint] {
    options.constraints.as_deref().unwrap_or_default()
}

/// Puts each node, in ascending order, into the part of the highest score that has room; among
/// equals into the emptiest, then the first. What [`PartitionOptions::constraints`] names beside
/// nodes takes room as well; where no part has all the room a node needs, that of nodes decides,
/// and swaps even out what is then too much.
///
/// `score(neighbors, size)` judges a part of `size` nodes that has `neighbors` of the node's.
pub(crate) fn place_greedily(
    name: &str,
    edges: &mut dyn EdgeStream,
    options: &PartitionOptions,
    score: impl Fn(u32, u64) -> f64,
) -> Result<Assignment> {
    let nodes = edges.num_nodes();
    options.check(nodes)?;
    if nodes >= u32::MAX as u64 {
        return Err(Error::new(Kind::Limit, format!("{name}: {nodes} nodes exceed 32 bits")));
    }
    let needed = NODE_BYTES * nodes + LEAST_LISTS;
    options.check_memory(name, needed, "raise --memory or use random or range")?;
    let quotas = Quota::all(options, constraints(options), nodes, 2 * edges.num_edges());
    let mut of = vec![UNPLACED; nodes as usize];
    let mut degree = vec![0u32; if quotas.len() > 1 { nodes as usize } else { 0 }];
    let mut loads = vec![vec![0u64; options.parts]; quotas.len()];
    let mut weights = vec![0; quotas.len()];
    let mut shared = vec![0u32; options.parts];
    for_each_list(edges, options.memory - NODE_BYTES * nodes, &mut |v, neighbors| {
        shared.fill(0);
        let placed = neighbors.iter().map(|&n| of[n as usize]).filter(|&p| p != UNPLACED);
        placed.for_each(|p| shared[p as usize] += 1);
        let own = neighbors.len() as u32;
        weights.iter_mut().zip(&quotas).for_each(|(w, quota)| *w = quota.of(v, own));
        degree.get_mut(v).into_iter().for_each(|d| *d = own);
        let best = |quotas: &[Quota]| {
            let mut best: Option<(usize, f64)> = None;
            let needs = || quotas.iter().zip(&weights).zip(&loads);
            let room = |p: usize| needs().all(|((q, w), load)| *w == 0 || load[p] + w <= q.cap);
            for part in (0..shared.len()).filter(|&p| room(p)) {
                let size = loads[0][part];
                let score = score(shared[part], size);
                let better = best.is_none_or(|(known, highest)| {
                    score > highest || (score == highest && size < loads[0][known])
                });
                if better {
                    best = Some((part, score));
                }
            }
            best
        };
        let best = best(&quotas).or_else(|| best(&quotas[..1]));
        let (part, _) = best.expect("the parts' capacities hold all nodes");
        loads.iter_mut().zip(&weights).for_each(|(load, w)| load[part] += w);
        of[v] = part as u16;
    })?;
    if quotas.len() > 1 {
        // Self-loops, counted by now, are no part of the degrees.
        let quotas = Quota::all(
            options,
            constraints(options),
            nodes,
            degree.iter().map(|&d| d as u64).sum(),
        );
        level(&mut of, options.parts, &quotas, &|v| degree[v]);
    }
    Ok(Assignment { parts: options.parts, of })
}

/// Not placed yet. It is a valid part only at the maximum number of parts: then that
/// one part attracts no neighbors.
const UNPLACED: u16 = u16::MAX;
