//! Indices of the distinct seeds of a batch.

use hashbrown::HashMap;

/// Numbers nodes, or pairs of node and time, in the order of first occurrence.
#[derive(Default)]
pub(super) struct Numbers {
    known: HashMap<(u32, i64), u32>,
    /// The node of each number.
    pub ids: Vec<u32>,
    /// The time of each number; 0 for those of nodes at no time.
    pub times: Vec<i64>,
}

impl Numbers {
    /// The indices of nodes at `times`, one each; at no time if there are none.
    pub fn at(&mut self, nodes: &[u32], times: &[i64]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(nodes.len());
        for (i, &node) in nodes.iter().enumerate() {
            let time = times.get(i).copied().unwrap_or(0);
            numbers.push(*self.known.entry((node, time)).or_insert_with(|| {
                self.ids.push(node);
                self.times.push(time);
                self.ids.len() as u32 - 1
            }));
        }
        numbers
    }
}
