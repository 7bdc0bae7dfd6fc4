//! The sides the first chunk starts from: METIS on its edges, in each group.

use gnarl_graph::error::Result;

use super::groups::{Group, UNASSIGNED};
use super::lists::Lists;
use super::sides::Sides;
use crate::metis::{Adjacency, Idx};

/// Line 7: gives each node of `lists` a side by METIS on its group's part of them, all other nodes
/// none. Sides may be larger than they may become: METIS keeps their sizes about, not exactly.
pub(super) fn by_chunk(level: &Sides, lists: &Lists, seed: u64) -> Result<Vec<u8>> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); level.groups.len()];
    for (&v, place) in lists.nodes().iter().zip(0..) {
        members[level.group[v as usize] as usize].push(place);
    }
    let mut sides = vec![UNASSIGNED; level.group.len()];
    let mut local = vec![0; lists.nodes().len()];
    for (members, group) in members.iter().zip(&level.groups).filter(|(m, _)| !m.is_empty()) {
        members.iter().zip(0..).for_each(|(&place, l)| local[place as usize] = l);
        let mut start = vec![0];
        let mut neighbours = Vec::new();
        for &place in members {
            let list = lists.neighbours(place as usize).iter();
            neighbours.extend(list.map(|&n| local[lists.place(n)]));
            start.push(neighbours.len() as u64);
        }
        let halves = halve(&Adjacency::simple(&start, neighbours)?, group, None, seed)?;
        let nodes = members.iter().map(|&place| lists.nodes()[place as usize]);
        nodes.zip(halves).for_each(|(v, side)| sides[v as usize] = side as u8);
    }
    Ok(sides)
}

/// METIS's halves of `graph`, as large as the halves of `group` are to be. `weights` are those of
/// the nodes and of the edges.
pub(super) fn halve(
    graph: &Adjacency,
    group: &Group,
    weights: Option<(&[Idx], &[Idx])>,
    seed: u64,
) -> Result<Vec<Idx>> {
    let share = group.halves[0] as f64 / group.parts as f64;
    let room = (group.caps[0] + group.caps[1]) as f64 / group.nodes.max(1) as f64;
    graph.bisect(share, room, weights, seed)
}
