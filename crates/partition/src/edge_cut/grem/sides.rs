//! Algorithms 1 and 2 on a chunk: the side of each node, and the estimates behind it.

use std::sync::Arc;

use gnarl_common::prefetch;

use super::groups::{Group, MOST_SIDES, UNASSIGNED};
use super::lists::{Lists, TOGETHER};
use super::loads::Loads;

/// Most neighbors counted in bytes before the counts are added up.
const MOST_COUNTED: usize = u8::MAX as usize / TOGETHER * TOGETHER;

/// Prefetch distance in nodes.
const NODES_AHEAD: usize = 12;

/// The state of a level: 3 bytes a node, and 2 for each side.
pub(super) struct Sides<'a> {
    /// Loads of nodes.
    pub(super) loads: &'a Loads,
    /// Group of each node.
    pub(super) group: Arc<Vec<u16>>,
    /// The groups.
    pub(super) groups: Vec<Group>,
    /// `parts`: side of each node.
    side: Vec<u8>,
    /// `nbr_counts`: about how many neighbors each node has on each side, [`Self::width`] of
    /// them, rounded.
    counts: Vec<Rounded>,
    /// Sides of the group with most of them, rounded up to a power of two.
    width: usize,
    /// Load of the current node under each quota.
    weights: Vec<u64>,
}

impl<'a> Sides<'a> {
    /// All nodes unassigned.
    pub(super) fn new(loads: &'a Loads, group: Vec<u16>, groups: Vec<Group>) -> Self {
        let sides = groups.iter().map(|g| g.sides.len()).max().unwrap_or(1);
        let width = sides.next_power_of_two().max(2);
        let (side, counts) = (vec![UNASSIGNED; group.len()], Vec::new());
        let weights = vec![0; loads.len()];
        Self { loads, group: Arc::new(group), groups, side, counts, width, weights }
    }

    /// The edges within groups that are to be divided.
    pub(super) fn inside(&self) -> Inside {
        let divided = self.groups.iter().map(|g| g.parts > 1).collect();
        Inside { group: self.group.clone(), divided }
    }

    /// Lines 7 to 10: adopts the sides of the seed algorithm, as far as there is room, and
    /// counts the neighbors in the first chunk.
    pub(super) fn sow(&mut self, sides: &[u8], lists: &Lists) {
        for (v, &side) in sides.iter().enumerate().filter(|(_, side)| **side != UNASSIGNED) {
            let group = &mut self.groups[self.group[v] as usize];
            self.loads.weigh(v, &mut self.weights);
            let fits = group.fits(side, &self.weights);
            // With several quotas one is full early: such nodes do better to wait for neighbors.
            if !fits && self.loads.len() > 1 {
                continue;
            }
            let side = if fits { side } else { group.emptiest(&self.weights) };
            group.add(side, &self.weights);
            self.side[v] = side;
        }
        self.counts = vec![Rounded::default(); self.side.len() * self.width];
        for (i, &v) in lists.nodes().iter().enumerate() {
            let counts = self.count::<MOST_SIDES>(lists, i);
            let row = &mut self.counts[v as usize * self.width..][..self.width];
            row.iter_mut().zip(counts).for_each(|(known, count)| *known = Rounded::new(count));
        }
    }

    /// `cnt_nbrs`: neighbors of the `i`-th node on each side; prefetches the sides of later ones.
    ///
    /// Neighbors are read a few at a time, including some of the next nodes that do not count,
    /// since their number is unpredictable. They are counted in bytes of two registers: counts in
    /// memory, written one by one, would have to reach the cache before they are read together.
    #[inline(always)]
    fn count<const K: usize>(&self, lists: &Lists, i: usize) -> [f32; K] {
        let (mut at, end) = (lists.start(i), lists.start(i + 1));
        let mut counts = [0.0; K];
        while at < end {
            let stop = end.min(at + MOST_COUNTED);
            let mut bytes = [0u64; MOST_SIDES / 8];
            while at < stop {
                for (j, &n) in lists.together(at).iter().enumerate() {
                    let (side, seen) = (self.side[n as usize] as u32, (at + j < stop) as u64);
                    bytes[0] += seen.checked_shl(8 * side).unwrap_or(0);
                    if K > 8 {
                        bytes[1] += seen.checked_shl((8 * side).wrapping_sub(64)).unwrap_or(0);
                    }
                }
                lists.ahead(at).iter().for_each(|&n| prefetch::item(&self.side, n as usize));
                at += TOGETHER;
            }
            let bytes = bytes.map(u64::to_le_bytes);
            counts.iter_mut().zip(bytes.as_flattened()).for_each(|(c, &b)| *c += b as f32);
        }
        counts
    }

    /// Lines 12 to 19 for the nodes of a chunk: `keep` is the weight of earlier neighbor counts
    /// beside those of the chunk, 1/2 in the paper; `None` leaves nodes that have a side alone.
    pub(super) fn refine(&mut self, lists: &Lists, keep: Option<f32>) {
        match self.width {
            2 => self.refine_by::<2>(lists, keep),
            4 => self.refine_by::<4>(lists, keep),
            8 => self.refine_by::<8>(lists, keep),
            _ => self.refine_by::<MOST_SIDES>(lists, keep),
        }
    }

    /// As [`Sides::refine`], by the width of a row of counts.
    fn refine_by<const K: usize>(&mut self, lists: &Lists, keep: Option<f32>) {
        let over = self.over();
        for (i, &v) in lists.nodes().iter().enumerate() {
            if let Some(&next) = lists.nodes().get(i + NODES_AHEAD) {
                prefetch::item(&self.counts, next as usize * K);
                prefetch::item(&self.side, next as usize);
                prefetch::item(&self.group, next as usize);
                prefetch::item(&self.loads.degree, next as usize);
            }
            let mut counts: [f32; K] = self.count(lists, i);
            let row = &mut self.counts.as_chunks_mut::<K>().0[v as usize];
            let side = self.side[v as usize];
            if side != UNASSIGNED {
                let Some(keep) = keep else { continue };
                for (count, known) in counts.iter_mut().zip(&*row) {
                    *count = keep * known.value() + (1.0 - keep) * *count;
                }
            }
            row.iter_mut().zip(counts).for_each(|(known, count)| *known = Rounded::new(count));
            // Most nodes are on their best side already: only others are worth branches.
            let stays = counts.get(side as usize).is_some_and(|&own| {
                counts.iter().map(|&count| (count >= own) as u32).sum::<u32>() == 1
            });
            if !stays || (over && self.leaves(v)) {
                self.assign(v, &counts);
            }
        }
    }

    /// `assign` and `fix_sizes`. The node itself does not count as taking room, so that one on a
    /// full side may stay there.
    fn assign<const K: usize>(&mut self, v: u32, counts: &[f32; K]) {
        let group = &mut self.groups[self.group[v as usize] as usize];
        let side = &mut self.side[v as usize];
        self.loads.weigh(v as usize, &mut self.weights);
        if *side != UNASSIGNED {
            group.remove(*side, &self.weights);
        }
        *side = group.best(&self.weights, counts);
        group.add(*side, &self.weights);
    }

    /// Returns whether a side exceeds a cap.
    fn over(&self) -> bool {
        let mut groups = self.groups.iter();
        self.loads.len() > 1 && groups.any(|g| (0..g.sides.len()).any(|s| g.over(s as u8)))
    }

    /// Returns whether `v` is on a side that exceeds a cap.
    fn leaves(&self, v: u32) -> bool {
        self.groups[self.group[v as usize] as usize].over(self.side[v as usize])
    }

    /// Puts nodes without edges on the emptiest side of their group.
    pub(super) fn place_rest(&mut self) {
        for (v, (side, &group)) in self.side.iter_mut().zip(self.group.iter()).enumerate() {
            let group = &mut self.groups[group as usize];
            if *side == UNASSIGNED && group.parts > 1 {
                self.loads.weigh(v, &mut self.weights);
                *side = group.emptiest(&self.weights);
                group.add(*side, &self.weights);
            }
        }
    }

    /// The groups of the next level: the sides, and finished parts.
    pub(super) fn split(self, fanout: u32, caps: &[u64]) -> (Vec<u16>, Vec<Group>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut first = Vec::with_capacity(self.groups.len());
        for old in &self.groups {
            first.push(groups.len() as u16);
            if old.parts == 1 {
                groups.push(old.clone());
            } else {
                let sides = old.sides.iter().enumerate();
                let new = |(s, &parts)| Group::new(old.loads(s).collect(), parts, fanout, caps);
                groups.extend(sides.map(new));
            }
        }
        let mut group = Arc::unwrap_or_clone(self.group);
        for (group, &side) in group.iter_mut().zip(&self.side) {
            let divided = self.groups[*group as usize].parts > 1;
            *group = first[*group as usize] + if divided { side as u16 } else { 0 };
        }
        (group, groups)
    }
}

/// The edges within groups that are to be divided.
#[derive(Clone)]
pub(super) struct Inside {
    group: Arc<Vec<u16>>,
    divided: Vec<bool>,
}

impl Inside {
    /// Returns whether an edge between `u` and `v` is one.
    #[inline(always)]
    pub(super) fn holds(&self, u: u32, v: u32) -> bool {
        self.divided.len() == 1 || {
            let group = self.group[u as usize];
            group == self.group[v as usize] && self.divided[group as usize]
        }
    }
}

/// A number at or above 0 to 8 binary digits: the upper half of an `f32`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rounded(u16);

impl Rounded {
    #[inline(always)]
    fn new(value: f32) -> Self {
        Self(((value.to_bits() + 0x8000) >> 16) as u16)
    }

    #[inline(always)]
    fn value(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists::Sorter;
    use super::*;
    use crate::PartitionOptions;
    use gnarl_graph::MemoryEdges;

    fn lists(edges: &[[u32; 2]]) -> Lists {
        let mut lists = Lists::default();
        Sorter::new(8, edges.len()).fill(&mut lists, edges, |_, _| true);
        lists
    }

    /// Nodes alone, up to `cap` of them.
    fn nodes_alone(cap: f64) -> Loads {
        let options = PartitionOptions { parts: 2, balance: cap / 4.0, ..Default::default() };
        Loads::new(&MemoryEdges::new(8, []).unwrap(), &options, true)
    }

    /// Eight nodes of which the first four have sides, two each.
    fn sown(loads: &Loads) -> Sides<'_> {
        let groups = vec![Group::new(loads.totals(8), 2, 2, &loads.caps())];
        let mut sides = Sides::new(loads, vec![0; 8], groups);
        let known = [0, 0, 1, 1].into_iter().chain([UNASSIGNED; 4]).collect::<Vec<_>>();
        sides.sow(&known, &lists(&[[0, 1], [2, 3], [1, 2]]));
        sides
    }

    fn sizes(sides: &Sides) -> [u64; 2] {
        [0, 1].map(|side| sides.groups[0].loads(side).next().unwrap())
    }

    #[test]
    fn estimates_are_halved_when_a_node_reappears() {
        let loads = nodes_alone(8.0);
        let mut sides = sown(&loads);
        let counts = |sides: &Sides| [2, 3].map(|i| sides.counts[i].value());
        assert_eq!(counts(&sides), [1.0, 1.0]);
        sides.refine(&lists(&[[1, 2], [1, 3], [1, 2]]), Some(0.5));
        assert_eq!(counts(&sides), [0.5, 2.0]);
        assert_eq!(sides.side[1], 1, "most of its neighbors are there");
        assert_eq!(sizes(&sides), [1, 3]);
    }

    #[test]
    fn frozen_nodes_keep_their_side_and_new_ones_follow_their_neighbors() {
        let loads = nodes_alone(8.0);
        let mut sides = sown(&loads);
        sides.refine(&lists(&[[1, 2], [1, 3], [4, 3], [4, 2], [4, 0]]), None);
        assert_eq!(sides.side[..5], [0, 0, 1, 1, 1]);
    }

    #[test]
    fn full_sides_take_no_more_and_the_rest_evens_out() {
        let loads = nodes_alone(4.0);
        let mut sides = sown(&loads);
        let wish = lists(&[[4, 3], [5, 3], [6, 3], [7, 3]]);
        sides.refine(&wish, Some(0.5));
        assert_eq!(sizes(&sides), [4, 4]);
        let mut sides = sown(&loads);
        sides.place_rest();
        assert_eq!(sizes(&sides), [4, 4]);
    }

    #[test]
    fn counts_are_rounded_to_a_few_digits() {
        assert_eq!(
            [0.0, 1.0, 3.5, 255.0, 1000.0].map(|x| Rounded::new(x).value()),
            [0.0, 1.0, 3.5, 255.0, 1000.0]
        );
        assert!((Rounded::new(0.3).value() / 0.3 - 1.0).abs() < 0.004);
    }
}
