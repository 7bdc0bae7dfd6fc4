//! The sides the first chunk starts from: METIS on its edges, in each group.

use gnarl_graph::error::Result;

use super::groups::{Group, UNASSIGNED};
use super::lists::Lists;
use super::sides::Sides;
use crate::metis::{Adjacency, Idx};

/// Line 7: gives each node of `lists` a side by METIS on its group's part of them, all other nodes
/// none. Sides may be larger than they may become: METIS keeps their sizes about, not exactly.
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
        let mut neighbours = Vec::new();
        for &place in members {
            let list = lists.neighbours(place as usize).iter();
            neighbours.extend(list.map(|&n| local[n as usize]));
            start.push(neighbours.len() as u64);
        }
        let found = divide(&Adjacency::simple(&start, neighbours)?, group, None, seed)?;
        let nodes = members.iter().map(|&place| lists.nodes()[place as usize]);
        nodes.zip(found).for_each(|(v, side)| sides[v as usize] = side as u8);
    }
    Ok(sides)
}

/// METIS's sides of `graph`, as large as the sides of `group` are to be. `weights` are those of
/// the nodes and of the edges.
pub(super) fn divide(
    graph: &Adjacency,
    group: &Group,
    weights: Option<(&[Idx], &[Idx])>,
    seed: u64,
) -> Result<Vec<Idx>> {
    let shares: Vec<f64> = group.sides.iter().map(|&s| s as f64 / group.parts as f64).collect();
    let room = group.caps.iter().sum::<u64>() as f64 / group.nodes.max(1) as f64;
    graph.divide(&shares, room, weights, seed)
}
