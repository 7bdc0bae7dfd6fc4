//! Clusters of bounded size by label propagation (Meyerhenke, Sanders and Schulz, SEA 2014;
//! semi-externally as Akhremtsev, Sanders and Schulz, ALENEX 2015, section 4).

use std::collections::HashMap;

use gnarl_common::error::Result;
use gnarl_common::prefetch;
use gnarl_common::rng::Key;

use super::known::Known;
use super::level::{Level, Load};
use super::lists::Piece;
use super::pass::Pass;
use super::tally::Tally;

/// Prefetch distance in neighbors.
const AHEAD: usize = 16;

/// The clusters of a level's nodes.
pub(super) struct Clusters {
    /// Cluster of each node, from 0 without gaps.
    pub map: Vec<u32>,
    pub count: usize,
}

/// Each node starts alone and joins, for `rounds` rounds, the cluster most of its edges lead to,
/// as far as no cluster outgrows `most`. With `known` partitions, clusters cross none of them.
pub(super) fn cluster(
    level: &Level,
    most: Load,
    rounds: usize,
    known: Option<&Known>,
    key: Key,
) -> Result<Clusters> {
    let nodes = level.len();
    let label = (0..nodes as u32).collect();
    let weight = (0..nodes as u32)
        .map(|v| level.loads.of(v).map(|l| l.min(u32::MAX.into()) as u32))
        .collect();
    let mut joining =
        Joining { level, most, known, label, weight, draw: key, moved: 0, tally: Tally::default() };
    joining.pack_components();
    for round in 0..rounds {
        joining.draw = key.with(round as u64);
        joining.moved = 0;
        level.lists.run(&mut joining)?;
        if joining.moved * 50 < nodes {
            break;
        }
    }
    Ok(renumbered(joining.label))
}

/// A round in which nodes join clusters.
struct Joining<'a> {
    level: &'a Level,
    /// Upper bounds of the clusters.
    most: Load,
    known: Option<&'a Known<'a>>,
    label: Vec<u32>,
    /// Weight of the cluster of each label.
    weight: Vec<[u32; 3]>,
    draw: Key,
    moved: usize,
    tally: Tally,
}

impl Pass for Joining<'_> {
    type Decided = Vec<(u32, u32)>;

    fn decide(&self, piece: &Piece) -> Self::Decided {
        let mut tally = Tally::default();
        let mut moves = Vec::new();
        // Nodes see where those before them in the piece went.
        let first = piece.nodes().start;
        let end = piece.nodes().end;
        let mut label = self.label[first as usize..end as usize].to_vec();
        piece.for_each(|node, near, weights| {
            let now = |v: u32| match label.get(v.wrapping_sub(first) as usize) {
                Some(&label) => label,
                None => self.label[v as usize],
            };
            if let Some(target) = self.target(node, near, weights, now, &mut tally) {
                label[(node - first) as usize] = target;
                moves.push((node, target));
            }
        });
        moves
    }

    fn apply(&mut self, block: &[(Piece, Self::Decided)]) {
        for (piece, moves) in block {
            let mut late = Vec::new();
            for &(node, target) in moves {
                if self.fits(node, target) {
                    self.join(node, target);
                } else {
                    late.push(node);
                }
            }
            // Their clusters have filled up since: they look again.
            let mut tally = std::mem::take(&mut self.tally);
            piece.for_some(&late, |node, near, weights| {
                let now = |v: u32| self.label[v as usize];
                if let Some(target) = self.target(node, near, weights, now, &mut tally) {
                    self.join(node, target);
                }
            });
            self.tally = tally;
        }
    }
}

impl Joining<'_> {
    /// The cluster that a node leaves its own for, by the labels of its neighbors.
    fn target(
        &self,
        node: u32,
        near: &[u32],
        weights: &[u32],
        label: impl Fn(u32) -> u32,
        tally: &mut Tally,
    ) -> Option<u32> {
        if near.is_empty() {
            return None;
        }
        let region = |v: u32| self.known.map(|known| known.region(v));
        let own_region = region(node);
        tally.clear(near.len(), self.label.len());
        for (i, &neighbor) in near.iter().enumerate() {
            if let Some(&next) = near.get(i + AHEAD) {
                prefetch::item(&self.label, next as usize);
                if let Some(known) = self.known {
                    prefetch::item(&known.best, next as usize);
                }
            }
            if region(neighbor) == own_region {
                tally.add(label(neighbor), weights.get(i).copied().unwrap_or(1));
            }
        }
        let own = label(node);
        // Ties are broken at random, or the first labels would swallow their neighborhoods.
        let draw = self.draw.with(node.into());
        let rank = |target: u32, sum: u32| (sum, draw.u64(target.into()));
        let mut best = (own, rank(own, tally.sum(own)));
        for (target, sum) in tally.sums() {
            if sum >= best.1.0 && target != own {
                let rank = rank(target, sum);
                if rank > best.1 && self.fits(node, target) {
                    best = (target, rank);
                }
            }
        }
        (best.0 != own).then_some(best.0)
    }

    /// Returns whether a cluster has room for a node.
    #[inline]
    fn fits(&self, node: u32, target: u32) -> bool {
        let load = self.level.loads.of(node);
        let sum = &self.weight[target as usize];
        (0..3).all(|c| load[c] == 0 || u64::from(sum[c]) + load[c] <= self.most[c])
    }

    fn join(&mut self, node: u32, target: u32) {
        let own = std::mem::replace(&mut self.label[node as usize], target);
        let load = self.level.loads.of(node);
        for c in 0..3 {
            self.weight[own as usize][c] -= load[c] as u32;
            self.weight[target as usize][c] += load[c] as u32;
        }
        self.moved += 1;
    }

    /// Gives nodes without neighbors common labels: no edge would ever join them, though they are
    /// whole components of the graph. Each label takes the next ones of a region as long as they
    /// fit.
    fn pack_components(&mut self) {
        let mut open: HashMap<u32, u32> = HashMap::new();
        let lengths = self.level.lists.lengths();
        for v in (0..lengths.len()).filter(|&v| lengths[v] == 0) {
            let load = self.weight[v];
            let region = self.known.map_or(0, |known| known.region(v as u32));
            let target = open.entry(region).or_insert(v as u32);
            if *target == v as u32 || !self.fits(v as u32, *target) {
                *target = v as u32;
                continue;
            }
            let sum = &mut self.weight[*target as usize];
            sum.iter_mut().zip(load).for_each(|(s, l)| *s += l);
            self.label[v] = *target;
        }
    }
}

/// Labels in the order of their first nodes, from 0.
fn renumbered(mut label: Vec<u32>) -> Clusters {
    let mut names = vec![0u32; label.len()];
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
