//! Neighbour lists out of a stream of edges in any order, in bounded memory.

use gnarl_graph::error::Result;
use gnarl_graph::{EdgeStream, for_each_edge};

/// Calls `visit` with every node, ascending, and its neighbours over in- and out-edges; repeated
/// edges repeat a neighbour, self loops are left out.
///
/// Reads the stream once to count and once for each range of nodes whose lists fit into `budget`
/// bytes, at 4 bytes a neighbour; a node whose list alone does not fit is a range of its own.
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
    let mut first = 0;
    while first < degree.len() {
        let mut held = 0;
        let fits = |&&d: &&u32| {
            held += 4 * d as u64;
            held <= budget
        };
        let end = first + degree[first..].iter().take_while(fits).count().max(1);
        range(edges, first, &degree[first..end], visit)?;
        first = end;
    }
    Ok(())
}

/// The lists of the nodes from `first` on, whose degrees are `degree`.
fn range(
    edges: &mut dyn EdgeStream,
    first: usize,
    degree: &[u32],
    visit: &mut dyn FnMut(usize, &[u32]),
) -> Result<()> {
    let mut next = Vec::with_capacity(degree.len());
    let mut total = 0usize;
    for &d in degree {
        next.push(total);
        total += d as usize;
    }
    let mut lists = vec![0u32; total];
    if total > 0 {
        for_each_edge(edges, &mut |u, v| {
            for (of, neighbour) in [(u, v), (v, u)] {
                let of = (of as usize).wrapping_sub(first);
                if of < degree.len() && u != v {
                    lists[next[of]] = neighbour as u32;
                    next[of] += 1;
                }
            }
        })?;
    }
    let mut start = 0;
    for (i, &d) in degree.iter().enumerate() {
        visit(first + i, &lists[start..start + d as usize]);
        start += d as usize;
    }
    Ok(())
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
