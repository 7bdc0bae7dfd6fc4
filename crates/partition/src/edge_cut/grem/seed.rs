//! The initial sides of the first chunk: METIS on its edges, in each group.

use gnarl_common::error::Result;

use super::groups::{Group, UNASSIGNED};
use super::lists::Lists;
use super::sides::Sides;
use crate::edge_cut::metis::{Adjacency, Idx, Weights};

/// Number of METIS runs, of which the best is taken, where several quotas make single ones differ
/// much, and the most endpoints of a graph for that: of larger ones single runs differ less, and
/// take longer than all else.
const TRIES: Idx = 4;
const SMALL: usize = 3 << 18;

/// Line 7: assigns a side to each node of `lists` by METIS on its group's part of them, and none to
/// all other nodes. Sides may exceed their caps: METIS keeps sizes only approximately.
///
/// Memory: 4 bytes a node and METIS's.
pub(super) fn by_chunk(level: &Sides, lists: &Lists, seed: u64) -> Result<Vec<u8>> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); level.groups.len()];
    let mut local = vec![0; level.group.len()];
    for (&v, place) in lists.nodes().iter().zip(0..) {
        let members = &mut members[level.group[v as usize] as usize];
        local[v as usize] = members.len() as Idx;
        members.push(place);
    }
    let mut sides = vec![UNASSIGNED; level.group.len()];
    for (members, group) in members.iter().zip(&level.groups).filter(|(m, _)| !m.is_empty()) {
        let mut start = vec![0];
        let mut neighbors = Vec::new();
        for &place in members {
            let list = lists.neighbors(place as usize).iter();
            neighbors.extend(list.map(|&n| local[n as usize]));
            start.push(neighbors.len() as u64);
        }
        let nodes = || members.iter().map(|&place| lists.nodes()[place as usize] as usize);
        let weights: Vec<u64> = nodes().flat_map(|v| level.loads.of(v)).collect();
        let graph = Adjacency::simple(&start, neighbors)?;
        let found = divide(&graph, group, &weights, None, seed)?;
        nodes().zip(found).for_each(|(v, side)| sides[v] = side as u8);
    }
    Ok(sides)
}

/// METIS's sides of `graph`, with the target shares of the sides of `group` under each quota with
/// at least one unit per part. `weights` are those of the first node under each quota, then of the
/// next; `neighbors` those of the edges, 1 without.
pub(super) fn divide(
    graph: &Adjacency,
    group: &Group,
    weights: &[u64],
    neighbors: Option<&[Idx]>,
    seed: u64,
) -> Result<Vec<Idx>> {
    let quotas = group.totals.len();
    let of = |quota| weights.iter().skip(quota).step_by(quotas).copied();
    let enough = |&q: &usize| q == 0 || of(q).sum::<u64>() >= group.parts as u64;
    let chosen: Vec<usize> = (0..quotas).filter(enough).collect();
    let mut nodes = vec![0; weights.len() / quotas * chosen.len()];
    for (i, &q) in chosen.iter().enumerate() {
        let column = nodes.iter_mut().skip(i).step_by(chosen.len());
        column.zip(scaled(of(q))).for_each(|(to, w)| *to = w);
    }
    // METIS halves recursively and spends the room on each level. With several quotas full sides
    // hinder refinement more: half of the room is left to it.
    let halvings = group.sides.len().next_power_of_two().ilog2().max(1) as f64;
    let spent = if chosen.len() > 1 { 0.5 / halvings } else { 1.0 };
    let room = |&q: &usize| 1.0 + spent * (group.room(q) - 1.0);
    let room: Vec<f64> = chosen.iter().map(room).collect();
    let shares: Vec<f64> = group.sides.iter().map(|&s| s as f64 / group.parts as f64).collect();
    let tries = if chosen.len() > 1 && graph.ends() <= SMALL { TRIES } else { 1 };
    graph.divide(&shares, &room, Weights { nodes: &nodes, neighbors }, tries, seed)
}

/// `weights` in METIS's integers, which must hold their sum: scaled down if they would not.
pub(super) fn scaled(weights: impl Iterator<Item = u64> + Clone) -> impl Iterator<Item = Idx> {
    let most = Idx::MAX as u64 / 2;
    let divisor = (weights.clone().sum::<u64>() / most + 1).next_power_of_two();
    weights.map(move |w| (w / divisor).max(w.min(1)) as Idx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_weights_fit() {
        let scaled = |weights: [u64; 3]| scaled(weights.into_iter()).collect::<Vec<_>>();
        assert_eq!(scaled([3, 0, 5]), [3, 0, 5]);
        let sum: u64 = scaled([1 << 40, 1 << 40, 7]).iter().map(|&w| w as u64).sum();
        assert!(sum < Idx::MAX as u64, "{sum}");
    }
}
