//! Neighbor lists from a stream of edges in any order, in bounded memory.

use std::ops::Range;

use gnarl_common::error::Result;
use gnarl_graph::{EdgeStream, for_each_edge};

/// Calls `visit` with every node, ascending, and its neighbors over in- and out-edges; repeated
/// edges repeat a neighbor, self loops are left out.
///
/// Reads the stream once to count and once per range of nodes whose lists fit into `budget`
/// bytes, at 4 bytes a neighbor; a node whose list alone does not fit is a range of its own.
/// Memory beside the budget: 4 bytes a node. Node ids must fit into 32 bits.
///
/// # Errors
/// Those of the stream.
pub(crate) fn for_each_list(
    edges: &mut dyn EdgeStream,
    budget: u64,
    visit: &mut dyn FnMut(usize, &[u32]),
) -> Result<()> {
    let mut degree = vec![0u32; edges.num_nodes() as usize];
    for_each_edge(edges, &mut |u, v| {
        if u != v {
            degree[u as usize] = degree[u as usize].saturating_add(1);
            degree[v as usize] = degree[v as usize].saturating_add(1);
        }
    })?;
    for_each_list_within(edges, &degree, true, budget, &mut |node, list| {
        visit(node, list);
        Ok(())
    })
}

/// [`for_each_list`] with `room` as a known bound on the length of each list, without the counting
/// pass. Out-edges alone suffice unless `both` endpoints are to list an edge. `visit` may fail, and
/// change the list.
pub(crate) fn for_each_list_within(
    edges: &mut dyn EdgeStream,
    room: &[u32],
    both: bool,
    budget: u64,
    visit: &mut dyn FnMut(usize, &mut [u32]) -> Result<()>,
) -> Result<()> {
    let mut slots: Vec<u32> = Vec::new();
    for range in ranges(room, (budget / 4) as usize) {
        let mut next = starts(&room[range.clone()], &mut slots);
        let mut put = |node: u64, neighbor: u64| {
            let of = (node as usize).wrapping_sub(range.start);
            if of < next.len() {
                slots[next[of]] = neighbor as u32;
                next[of] += 1;
            }
        };
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                put(u, v);
                if both {
                    put(v, u);
                }
            }
        })?;
        let mut start = 0;
        for (node, &end) in range.clone().zip(&next) {
            visit(node, &mut slots[start..end])?;
            start += room[node] as usize;
        }
    }
    Ok(())
}

/// Consecutive ranges whose rooms add up to `most` at most, or that hold one node.
pub(crate) fn ranges(room: &[u32], most: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut first, mut sum) = (0, 0usize);
    for (i, &room) in room.iter().enumerate() {
        if sum + room as usize > most && i > first {
            ranges.push(first..i);
            (first, sum) = (i, 0);
        }
        sum += room as usize;
    }
    if first < room.len() {
        ranges.push(first..room.len());
    }
    ranges
}

/// Start of each list; makes `slots` long enough for all. Their values are not kept.
pub(crate) fn starts<T: Copy + Default>(room: &[u32], slots: &mut Vec<T>) -> Vec<usize> {
    let mut end = 0usize;
    let start = |&room: &u32| {
        end += room as usize;
        end - room as usize
    };
    let starts = room.iter().map(start).collect();
    if slots.len() < end {
        // First the old ones go: both would be twice the budget.
        *slots = Vec::new();
        *slots = vec![T::default(); end];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn lists_do_not_depend_on_the_budget() {
        let pairs = [(3, 0), (0, 1), (1, 1), (4, 3), (0, 3), (2, 4)];
        let mut edges = MemoryEdges::new(6, pairs).unwrap();
        for budget in [0, 12, 20, 1 << 20] {
            let mut seen = Vec::new();
            for_each_list(&mut edges, budget, &mut |v, list| seen.push((v, list.to_vec())))
                .unwrap();
            let lists = [vec![3, 1, 3], vec![0], vec![4], vec![0, 4, 0], vec![3, 2], vec![]];
            assert_eq!(seen, lists.into_iter().enumerate().collect::<Vec<_>>(), "{budget}");
        }
    }
}
