//! Lines 30–33 of Algorithm 1: assignment of clusters to parts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::clusters::{NONE, Node};
use crate::balance::quota::{Quota, fullest};

/// The part of every node: clusters go to the least occupied part, largest first.
///
/// The paper's bound on clusters does not bound parts: 17 clusters of half a part fill one of 16
/// parts twice. A cluster that no part has room for is split: its nodes fill the emptiest parts.
/// Nodes without edges come last, each to the part with fewest nodes. `quotas` beyond the first,
/// that of nodes, decide where clusters go, but are not always kept.
pub(super) fn deal(
    nodes: &[Node],
    quotas: &[Quota],
    weights: &[Vec<u64>],
    parts: usize,
) -> Vec<u16> {
    let mut deal = Deal { quotas, loads: vec![vec![0; parts]; quotas.len()] };
    let part = deal.clusters(weights);
    let mut of = vec![0u16; nodes.len()];
    deal.split(nodes, &part, &mut of);
    deal.isolated(nodes, &mut of);
    of
}

/// The part of a cluster that is split.
const SPLIT: u32 = u32::MAX;

struct Deal<'a> {
    quotas: &'a [Quota],
    /// Load of each part under each quota.
    loads: Vec<Vec<u64>>,
}

impl Deal<'_> {
    /// The part of each cluster, or [`SPLIT`].
    fn clusters(&mut self, weights: &[Vec<u64>]) -> Vec<u32> {
        let fill = |i: u32| fullest(self.quotas, weights.iter().map(|w| w[i as usize]));
        let exist = |&i: &u32| weights[0][i as usize] > 0;
        let mut order: Vec<_> = (0..weights[0].len() as u32).filter(exist).collect();
        order.sort_by_cached_key(|&i| (Reverse(fill(i)), i));
        let mut part = vec![SPLIT; weights[0].len()];
        let parts = self.loads[0].len();
        let mut emptiest: BinaryHeap<_> = (0..parts as u32).map(|p| Reverse((0, p))).collect();
        for i in order {
            let of = |quota: usize| weights[quota][i as usize];
            let chosen = if self.quotas.len() == 1 {
                let Reverse((load, p)) = emptiest.pop().expect("at least one part");
                let fits = load + of(0) <= self.quotas[0].cap;
                emptiest.push(Reverse((load + if fits { of(0) } else { 0 }, p)));
                fits.then_some(p as usize)
            } else {
                let room = (0..parts).filter(|&p| self.loads[0][p] + of(0) <= self.quotas[0].cap);
                let loads =
                    |p: usize| self.loads.iter().enumerate().map(move |(q, l)| l[p] + of(q));
                room.min_by_key(|&p| fullest(self.quotas, loads(p)))
            };
            if let Some(p) = chosen {
                part[i as usize] = p as u32;
                self.loads.iter_mut().enumerate().for_each(|(quota, load)| load[p] += of(quota));
            }
        }
        part
    }

    /// Places the nodes with edges. Those of a split cluster stay together while there is room.
    fn split(&mut self, nodes: &[Node], part: &[u32], of: &mut [u16]) {
        let cap = self.quotas[0].cap;
        let mut open: HashMap<u32, usize> = HashMap::new();
        for (v, node) in nodes.iter().enumerate().filter(|(_, n)| n.cluster != NONE) {
            let dealt = part[node.cluster as usize];
            if dealt != SPLIT {
                of[v] = dealt as u16;
                continue;
            }
            let sizes = &self.loads[0];
            let roomiest = || (0..sizes.len()).min_by_key(|&p| sizes[p]).unwrap_or(0);
            let p = open.entry(node.cluster).or_insert_with(roomiest);
            if sizes[*p] >= cap {
                *p = roomiest();
            }
            of[v] = *p as u16;
            for (load, quota) in self.loads.iter_mut().zip(self.quotas) {
                load[*p] += quota.of(v, node.degree);
            }
        }
    }

    fn isolated(&mut self, nodes: &[Node], of: &mut [u16]) {
        let sizes = self.loads[0].iter().zip(0u16..=u16::MAX);
        let mut smallest: BinaryHeap<_> = sizes.map(|(&size, p)| Reverse((size, p))).collect();
        for (of, _) in of.iter_mut().zip(nodes).filter(|(_, n)| n.cluster == NONE) {
            let mut least = smallest.peek_mut().expect("at least one part");
            let Reverse((size, p)) = &mut *least;
            *size += 1;
            *of = *p;
        }
    }
}
