//! The partitioner: parts grow breadth-first, one after the other.

use std::collections::VecDeque;

use gnarl::Result;
use gnarl::graph::EdgeStream;
use gnarl::graph::for_each_edge;
use gnarl::partition::{Assignment, PartitionOptions, VertexPartitioner};

/// Fills each part up to its share with nodes in breadth-first order, starting from the first node
/// without a part. Memory: the result and all edges in both directions.
pub struct BreadthFirst;

impl VertexPartitioner for BreadthFirst {
    fn name(&self) -> &'static str {
        "breadth-first"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        options.check(edges.num_nodes())?;
        let neighbors = neighbors(edges)?;
        let order = breadth_first(&neighbors);
        let mut of = vec![0; order.len()];
        for (place, &v) in order.iter().enumerate() {
            of[v as usize] = (place * options.parts / order.len()) as u16;
        }
        Ok(Assignment { parts: options.parts, of })
    }
}

/// Neighbors of each node, whatever the direction of the edge.
fn neighbors(edges: &mut dyn EdgeStream) -> Result<Vec<Vec<u64>>> {
    let mut lists = vec![Vec::new(); edges.num_nodes() as usize];
    for_each_edge(edges, &mut |src, dst| {
        lists[src as usize].push(dst);
        lists[dst as usize].push(src);
    })?;
    Ok(lists)
}

/// All nodes, each after the one it was first reached from.
fn breadth_first(neighbors: &[Vec<u64>]) -> Vec<u64> {
    let mut seen = vec![false; neighbors.len()];
    let mut order = Vec::with_capacity(neighbors.len());
    let mut queue = VecDeque::new();
    for start in 0..neighbors.len() as u64 {
        if std::mem::replace(&mut seen[start as usize], true) {
            continue;
        }
        queue.push_back(start);
        while let Some(v) = queue.pop_front() {
            order.push(v);
            for &u in &neighbors[v as usize] {
                if !std::mem::replace(&mut seen[u as usize], true) {
                    queue.push_back(u);
                }
            }
        }
    }
    order
}
