//! The jobs of an epoch over edges, and the nodes of their batches.

use std::collections::HashMap;
use std::sync::Arc;

use crate::pipeline::Job;
use crate::shares::even_share;
use crate::strategy::Keys;

/// Batches of `heads.len()` edges in random order, `size` in each or 0 for all at once, of which each of
/// the ranks has an even share: mostly those whose heads are in its own part. `owner` has the part of
/// each node, if the graph was cut.
pub(crate) fn jobs(
    keys: Keys,
    epoch: usize,
    heads: &[u32],
    size: usize,
    owner: &[u32],
    (rank, ranks): (usize, usize),
) -> Vec<Job> {
    let mut order: Vec<u32> = (0..heads.len() as u32).collect();
    let size = match size {
        0 => order.len(),
        size => {
            keys.order(epoch, 0).shuffle(&mut order);
            size
        }
    };
    let last = order.len().div_ceil(size) - 1;
    let job = |(index, places): (usize, &mut [u32])| {
        if !owner.is_empty() {
            places.sort_by_key(|&place| owner[heads[place as usize] as usize]);
        }
        Job {
            graph: 0,
            share: even_share(places.len(), rank, ranks),
            batch: Arc::from(&*places),
            key: keys.sample(epoch).with(index as u64),
            fixed: false,
            last_of_step: true,
            last_of_epoch: index == last,
        }
    };
    order.chunks_mut(size).enumerate().map(job).collect()
}

/// Numbers nodes in the order they come.
#[derive(Default)]
pub(crate) struct Numbers {
    of: HashMap<u32, u32>,
    /// Distinct dataset ids.
    pub ids: Vec<u32>,
}

impl Numbers {
    /// The numbers of some nodes.
    pub fn rows(&mut self, nodes: &[u32]) -> Vec<u32> {
        let number = |&node: &u32| {
            *self.of.entry(node).or_insert_with(|| {
                self.ids.push(node);
                self.ids.len() as u32 - 1
            })
        };
        nodes.iter().map(number).collect()
    }
}
