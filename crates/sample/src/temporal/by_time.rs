//! In-neighbor lists in the order of time.

use std::sync::Arc;

use gnarl_common::Result;

use crate::view::View;

/// Positions of every list in the order of time, four bytes an edge: the edges permitted at a time
/// are then found by binary search, where lists themselves ascend by dataset id. Edges of equal
/// time keep the order of the list. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ByTime(Arc<Vec<u32>>);

impl ByTime {
    /// Sorts every list.
    ///
    /// # Errors
    /// If edges have no times, or a list is not inside the graph.
    pub fn new(view: View<'_>) -> Result<Self> {
        let times = view.needed_times()?;
        let mut order = vec![0u32; view.indices.len()];
        let mut pairs = Vec::new();
        for node in 0..view.num_nodes() as u32 {
            let (start, degree) = view.list(node)?;
            pairs.clear();
            pairs.extend((0..degree).map(|p| (view.time(times, start + p as usize), p)));
            if !pairs.is_sorted() {
                pairs.sort_unstable();
            }
            for (slot, &(_, position)) in order[start..].iter_mut().zip(&pairs) {
                *slot = position;
            }
        }
        Ok(Self(Arc::new(order)))
    }

    /// The positions in `list` of its edges no later than `time`, the earliest first.
    pub fn until(
        &self,
        view: View<'_>,
        times: &[i64],
        (start, degree): (usize, u32),
        time: i64,
    ) -> &[u32] {
        let list = &self.0[start..start + degree as usize];
        let count = list.partition_point(|&p| view.time(times, start + p as usize) <= time);
        &list[..count]
    }
}
