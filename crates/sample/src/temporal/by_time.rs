//! In-neighbor lists in the order of time.

use std::sync::Arc;

use gnarl_common::Result;
use rayon::prelude::*;

use crate::view::View;

/// Positions of every list in the order of time, four bytes an edge: the edges permitted at a time
/// are then found by binary search, where lists themselves ascend by dataset id. Edges of equal
/// time keep the order of the list. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ByTime(Arc<Vec<u32>>);

/// Nodes sorted at a time by one thread.
const NODES: u32 = 4096;

impl ByTime {
    /// Sorts every list, on all threads.
    ///
    /// # Errors
    /// If edges have no times, or a list is not inside the graph.
    pub fn new(view: View<'_>) -> Result<Self> {
        view.needs_times()?;
        let mut order = vec![0u32; view.indices.len()];
        let mut ranges = Vec::new();
        let (mut rest, nodes) = (&mut order[..], view.num_nodes() as u32);
        for first in (0..nodes).step_by(NODES as usize) {
            let last = (first + NODES).min(nodes);
            let mut count = 0;
            for node in first..last {
                count += view.list(node)?.1 as usize;
            }
            let (own, later) = std::mem::take(&mut rest).split_at_mut(count);
            ranges.push((first..last, own));
            rest = later;
        }
        ranges.into_par_iter().try_for_each(|(nodes, order)| sort(view, nodes, order))?;
        Ok(Self(Arc::new(order)))
    }

    /// The positions in `list` of its edges no later than `time`, the earliest first.
    pub fn until(&self, view: View<'_>, (start, degree): (usize, u32), time: i64) -> &[u32] {
        let list = &self.0[start..start + degree as usize];
        let count = list.partition_point(|&p| view.time(start + p as usize) <= time);
        &list[..count]
    }
}

/// Writes the positions of the lists of successive nodes to `order`.
fn sort(view: View<'_>, nodes: std::ops::Range<u32>, mut order: &mut [u32]) -> Result<()> {
    let mut pairs = Vec::new();
    for node in nodes {
        let (start, degree) = view.list(node)?;
        pairs.clear();
        for position in 0..degree {
            // Times of sources are read by their ids.
            view.source(start + position as usize)?;
            pairs.push((view.time(start + position as usize), position));
        }
        if !pairs.is_sorted() {
            pairs.sort_unstable();
        }
        let (own, rest) = order.split_at_mut(degree as usize);
        own.iter_mut().zip(&pairs).for_each(|(slot, &(_, position))| *slot = position);
        order = rest;
    }
    Ok(())
}
