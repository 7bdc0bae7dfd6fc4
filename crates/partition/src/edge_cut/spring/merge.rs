//! Lines 22–29 of Algorithm 1: merging of clusters along their richest neighbors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clusters::{NONE, Node};
use crate::balance::quota::Quota;

/// Merges each cluster, smallest first, into the one where the richest neighbor of its
/// representative lives, where the sum keeps within every quota; renames the nodes' clusters after
/// those they went into. `weights` are those of the clusters under each quota, the first of which
/// counts nodes.
pub(super) fn merge(nodes: &mut [Node], quotas: &[Quota], weights: &mut [Vec<u64>]) {
    let best = representatives(nodes, weights[0].len());
    let mut merge = Merge { parent: (0..best.len() as u32).collect(), best, quotas, weights };
    merge.run();
    for node in nodes.iter_mut().filter(|n| n.cluster != NONE) {
        node.cluster = merge.find(node.cluster);
    }
}

/// The richest neighbor of a cluster's representative: the cluster it was in, and its degree.
type Rich = (u32, u32);

/// Lines 22–24: `n_{r(i)}` of each cluster, the richest of its nodes' richest neighbors.
fn representatives(nodes: &[Node], clusters: usize) -> Vec<Rich> {
    let mut best = vec![(NONE, 0); clusters];
    for node in nodes.iter().filter(|n| n.cluster != NONE) {
        let known = &mut best[node.cluster as usize];
        if known.1 < node.richest_degree {
            *known = (nodes[node.richest as usize].cluster, node.richest_degree);
        }
    }
    best
}

struct Merge<'a> {
    /// The cluster that each was merged into, itself if none.
    parent: Vec<u32>,
    best: Vec<Rich>,
    quotas: &'a [Quota],
    weights: &'a mut [Vec<u64>],
}

impl Merge<'_> {
    fn run(&mut self) {
        let sized = self.weights[0].iter().zip(0u32..);
        let mut order: BinaryHeap<_> = sized.map(|(&size, i)| Reverse((size, i))).collect();
        while let Some(Reverse((size, cluster))) = order.pop() {
            let i = cluster as usize;
            // Its size changed since it was queued, or it was merged away.
            if self.weights[0][i] != size || size == 0 {
                continue;
            }
            let t = self.find(self.best[i].0) as usize;
            let mut sums = self.quotas.iter().zip(&*self.weights).map(|(q, w)| (q, w[i] + w[t]));
            if t == i || !sums.all(|(q, sum)| sum <= q.cap) {
                continue;
            }
            self.parent[i] = t as u32;
            for weight in self.weights.iter_mut() {
                weight[t] += std::mem::take(&mut weight[i]);
            }
            if self.best[t].1 < self.best[i].1 {
                self.best[t] = self.best[i];
            }
            order.push(Reverse((self.weights[0][t], t as u32)));
        }
    }

    /// The cluster that `i` has been merged into, halving the path to it.
    fn find(&mut self, mut i: u32) -> u32 {
        let parent = &mut self.parent;
        while parent[i as usize] != i {
            parent[i as usize] = parent[parent[i as usize] as usize];
            i = parent[i as usize];
        }
        i
    }
}
