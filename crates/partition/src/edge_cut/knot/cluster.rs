//! Clusters of bounded size by label propagation (Meyerhenke, Sanders and Schulz, SEA 2014;
//! semi-externally as Akhremtsev, Sanders and Schulz, ALENEX 2015, section 4).

use std::collections::HashMap;

use gnarl_common::error::Result;
use gnarl_common::rng::Key;

use super::level::{Level, Load};

/// The clusters of a level's nodes.
pub(super) struct Clusters {
    /// Cluster of each node, from 0 without gaps.
    pub map: Vec<u32>,
    pub count: usize,
}

/// Sums of edge weights by label, for one node at a time.
pub(super) struct Tally {
    sums: Vec<u32>,
    touched: Vec<u32>,
}

impl Tally {
    pub fn new(labels: usize) -> Self {
        Self { sums: vec![0; labels], touched: Vec::new() }
    }

    #[inline]
    pub fn add(&mut self, label: u32, weight: u32) {
        let sum = &mut self.sums[label as usize];
        if *sum == 0 {
            self.touched.push(label);
        }
        *sum = sum.saturating_add(weight);
    }

    pub fn sum(&self, label: u32) -> u32 {
        self.sums[label as usize]
    }

    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    pub fn clear(&mut self) {
        for label in self.touched.drain(..) {
            self.sums[label as usize] = 0;
        }
    }
}

/// Each node starts alone and joins, for `rounds` rounds, the cluster most of its edges lead to,
/// as far as no cluster outgrows `most`. With `parts`, clusters stay within a part.
pub(super) fn cluster(
    level: &Level,
    most: Load,
    rounds: usize,
    parts: Option<&[u16]>,
    key: Key,
) -> Result<Clusters> {
    let nodes = level.len();
    let mut label: Vec<u32> = (0..nodes as u32).collect();
    let mut weight: Vec<[u32; 3]> = (0..nodes as u32)
        .map(|v| level.loads.of(v).map(|l| l.min(u32::MAX.into()) as u32))
        .collect();
    pack_components(level, most, parts, &mut label, &mut weight);
    let mut tally = Tally::new(nodes);
    for round in 0..rounds {
        let draw = key.with(round as u64);
        let mut moved = 0usize;
        level.lists.for_each(|node, near, weights| {
            if near.is_empty() {
                return;
            }
            let own = label[node as usize];
            for (i, &neighbor) in near.iter().enumerate() {
                if parts.is_none_or(|p| p[neighbor as usize] == p[node as usize]) {
                    tally.add(label[neighbor as usize], weights.get(i).copied().unwrap_or(1));
                }
            }
            let load = level.loads.of(node);
            let fits = |target: u32| {
                let sum = &weight[target as usize];
                (0..3).all(|c| load[c] == 0 || u64::from(sum[c]) + load[c] <= most[c])
            };
            // Ties are broken at random, or the first labels would swallow their neighborhoods.
            let rank = |target: u32| (tally.sum(target), draw.with(node.into()).u64(target.into()));
            let mut best = (own, rank(own));
            for &target in tally.touched() {
                if tally.sum(target) >= best.1.0 && target != own {
                    let rank = rank(target);
                    if rank > best.1 && fits(target) {
                        best = (target, rank);
                    }
                }
            }
            tally.clear();
            let target = best.0;
            if target != own {
                for c in 0..3 {
                    weight[own as usize][c] -= load[c] as u32;
                    weight[target as usize][c] += load[c] as u32;
                }
                label[node as usize] = target;
                moved += 1;
            }
        })?;
        if moved * 50 < nodes {
            break;
        }
    }
    Ok(renumbered(label, tally))
}

/// Gives nodes without neighbors common labels: no edge would ever join them, though
/// they are whole components of the graph. Each label takes the next ones of a part as long as they
/// fit.
fn pack_components(
    level: &Level,
    most: Load,
    parts: Option<&[u16]>,
    label: &mut [u32],
    weight: &mut [[u32; 3]],
) {
    let mut open: HashMap<u16, u32> = HashMap::new();
    for v in (0..label.len()).filter(|&v| level.lists.lengths()[v] == 0) {
        let load = weight[v];
        let target = open.entry(parts.map_or(0, |of| of[v])).or_insert(v as u32);
        let sum = &mut weight[*target as usize];
        let fits =
            (0..3).all(|c| load[c] == 0 || u64::from(sum[c]) + u64::from(load[c]) <= most[c]);
        if *target == v as u32 || !fits {
            *target = v as u32;
            continue;
        }
        sum.iter_mut().zip(load).for_each(|(s, l)| *s += l);
        label[v] = *target;
    }
}

/// Labels in the order of their first nodes, from 0.
fn renumbered(mut label: Vec<u32>, mut tally: Tally) -> Clusters {
    let names = &mut tally.sums;
    let mut count = 0;
    for l in &mut label {
        let name = &mut names[*l as usize];
        if *name == 0 {
            count += 1;
            *name = count;
        }
        *l = *name - 1;
    }
    Clusters { map: label, count: count as usize }
}
