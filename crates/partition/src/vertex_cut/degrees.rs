//! Degrees of nodes, counted in a pass of their own.

use gnarl_common::error::Result;
use gnarl_graph::{EdgeStream, for_each_edge};

/// Counts edges at each node, in both directions; saturates. 4 bytes a node.
pub(super) fn count(edges: &mut dyn EdgeStream) -> Result<Vec<u32>> {
    let mut degrees = vec![0u32; edges.num_nodes() as usize];
    for_each_edge(edges, &mut |u, v| {
        for end in [u, v] {
            let degree = &mut degrees[end as usize];
            *degree = degree.saturating_add(1);
        }
    })?;
    Ok(degrees)
}
