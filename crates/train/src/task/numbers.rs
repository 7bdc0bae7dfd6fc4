//! Indices of the distinct nodes of a batch.

use std::collections::HashMap;

/// Numbers nodes in the order of first occurrence.
#[derive(Default)]
pub(super) struct Numbers {
    known: HashMap<u32, u32>,
    /// Distinct nodes.
    pub ids: Vec<u32>,
}

impl Numbers {
    /// The indices of some nodes.
    pub fn of(&mut self, nodes: &[u32]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(nodes.len());
        for &node in nodes {
            numbers.push(*self.known.entry(node).or_insert_with(|| {
                self.ids.push(node);
                self.ids.len() as u32 - 1
            }));
        }
        numbers
    }
}
