//! Algorithms 1 and 2 on a chunk: the side of each node, and the estimates behind it.

use super::groups::{Group, UNASSIGNED};
use super::lists::Lists;

/// The state of a level. 11 bytes a node.
pub(super) struct Sides {
    /// Group of each node.
    pub(super) group: Vec<u16>,
    /// The groups.
    pub(super) groups: Vec<Group>,
    /// `parts`: side of each node.
    side: Vec<u8>,
    /// `nbr_counts`: about how many neighbours each node has on either side.
    counts: Vec<[f32; 2]>,
}

impl Sides {
    /// All nodes unassigned.
    pub(super) fn new(group: Vec<u16>, groups: Vec<Group>) -> Self {
        let (side, counts) = (vec![UNASSIGNED; group.len()], vec![[0.0; 2]; group.len()]);
        Self { group, groups, side, counts }
    }

    /// Whether `u` and `v` are in one group that is to be halved.
    pub(super) fn together(&self, u: u32, v: u32) -> bool {
        let group = self.group[u as usize];
        group == self.group[v as usize] && self.groups[group as usize].parts > 1
    }

    /// Lines 7 to 10: takes over the sides the seed algorithm found, as far as there is room, and
    /// counts the neighbours in the first chunk.
    pub(super) fn sow(&mut self, sides: &[u8], lists: &Lists) {
        for (v, &side) in sides.iter().enumerate().filter(|(_, side)| **side != UNASSIGNED) {
            let group = &mut self.groups[self.group[v] as usize];
            let side = if group.fits(side) { side } else { 1 - side };
            group.sizes[side as usize] += 1;
            self.side[v] = side;
        }
        for (i, &v) in lists.nodes().iter().enumerate() {
            self.counts[v as usize] = self.count(lists.neighbours(i));
        }
    }

    /// `cnt_nbrs`: neighbours on each side.
    fn count(&self, neighbours: &[u32]) -> [f32; 2] {
        let mut counts = [0u32; 3];
        neighbours.iter().for_each(|&n| counts[self.side[n as usize] as usize] += 1);
        [counts[0] as f32, counts[1] as f32]
    }

    /// Lines 12 to 19 for the nodes of a chunk: `keep` is the weight of what is known of a node's
    /// neighbours beside what the chunk shows, 1/2 in the paper; `None` leaves nodes that have a
    /// side alone.
    pub(super) fn refine(&mut self, lists: &Lists, keep: Option<f32>) {
        for (i, &v) in lists.nodes().iter().enumerate() {
            let mut counts = self.count(lists.neighbours(i));
            if self.side[v as usize] != UNASSIGNED {
                let Some(keep) = keep else { continue };
                let before = self.counts[v as usize];
                counts = [0, 1].map(|s| keep * before[s] + (1.0 - keep) * counts[s]);
            }
            self.counts[v as usize] = counts;
            self.assign(v, counts);
        }
    }

    /// `assign` and `fix_sizes`. The node itself does not count as taking room, so that one on a
    /// full side may stay there.
    fn assign(&mut self, v: u32, counts: [f32; 2]) {
        let group = &mut self.groups[self.group[v as usize] as usize];
        let side = &mut self.side[v as usize];
        if *side != UNASSIGNED {
            group.sizes[*side as usize] -= 1;
        }
        *side = if counts[0] < counts[1] && group.fits(1) {
            1
        } else if counts[1] < counts[0] && group.fits(0) {
            0
        } else {
            group.emptier()
        };
        group.sizes[*side as usize] += 1;
    }

    /// Gives nodes that were in no edge the emptier side of their group.
    pub(super) fn place_rest(&mut self) {
        for (side, &group) in self.side.iter_mut().zip(&self.group) {
            let group = &mut self.groups[group as usize];
            if *side == UNASSIGNED && group.parts > 1 {
                *side = group.emptier();
                group.sizes[*side as usize] += 1;
            }
        }
    }

    /// The groups of the next level: the halves, and what was a part already.
    pub(super) fn split(self, capacity: u64) -> (Vec<u16>, Vec<Group>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut first = Vec::with_capacity(self.groups.len());
        for old in &self.groups {
            first.push(groups.len() as u16);
            if old.parts == 1 {
                groups.push(old.clone());
            } else {
                groups.extend([0, 1].map(|s| Group::new(old.sizes[s], old.halves[s], capacity)));
            }
        }
        let mut group = self.group;
        for (group, &side) in group.iter_mut().zip(&self.side) {
            let halved = self.groups[*group as usize].parts > 1;
            *group = first[*group as usize] + if halved { side as u16 } else { 0 };
        }
        (group, groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(edges: &[[u32; 2]]) -> Lists {
        let mut lists = Lists::new(8);
        lists.fill(edges, |_, _| true);
        lists
    }

    /// Eight nodes of which the first four have sides, two each.
    fn sown(capacity: u64) -> Sides {
        let mut sides = Sides::new(vec![0; 8], vec![Group::new(8, 2, capacity)]);
        let known = [0, 0, 1, 1].into_iter().chain([UNASSIGNED; 4]).collect::<Vec<_>>();
        sides.sow(&known, &lists(&[[0, 1], [2, 3], [1, 2]]));
        sides
    }

    #[test]
    fn estimates_are_halved_when_a_node_reappears() {
        let mut sides = sown(8);
        assert_eq!(sides.counts[1], [1.0, 1.0]);
        sides.refine(&lists(&[[1, 2], [1, 3], [1, 2]]), Some(0.5));
        assert_eq!(sides.counts[1], [0.5, 2.0]);
        assert_eq!(sides.side[1], 1, "most of its neighbours are there");
        assert_eq!(sides.groups[0].sizes, [1, 3]);
    }

    #[test]
    fn frozen_nodes_keep_their_side_and_new_ones_follow_their_neighbours() {
        let mut sides = sown(8);
        sides.refine(&lists(&[[1, 2], [1, 3], [4, 3], [4, 2], [4, 0]]), None);
        assert_eq!(sides.side[..5], [0, 0, 1, 1, 1]);
    }

    #[test]
    fn full_sides_take_no_more_and_the_rest_evens_out() {
        let mut sides = sown(4);
        let wish = lists(&[[4, 3], [5, 3], [6, 3], [7, 3]]);
        sides.refine(&wish, Some(0.5));
        assert_eq!(sides.groups[0].sizes, [4, 4]);
        let mut sides = sown(4);
        sides.place_rest();
        assert_eq!(sides.groups[0].sizes, [4, 4]);
    }
}
