//! The parts of a level, each about to be halved.

/// No side yet.
pub(super) const UNASSIGNED: u8 = 2;

/// What will become `parts` parts: one of its halves gets ⌈`parts`/2⌉ of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Parts it becomes.
    pub(super) parts: u32,
    /// Nodes it has.
    pub(super) nodes: u64,
    /// Parts each half becomes.
    pub(super) halves: [u32; 2],
    /// Nodes each half has so far.
    pub(super) sizes: [u64; 2],
    /// Nodes each half may have.
    pub(super) caps: [u64; 2],
}

impl Group {
    /// A group of `nodes` nodes whose parts may have `capacity` nodes each; `nodes` is no more
    /// than `parts` times that.
    ///
    /// What room there is beyond the nodes is spent evenly over the levels to come.
    pub(super) fn new(nodes: u64, parts: u32, capacity: u64) -> Self {
        let halves = [parts.div_ceil(2), parts / 2];
        let levels = parts.next_power_of_two().trailing_zeros().max(1);
        let room = (parts as u64 * capacity) as f64 / nodes.max(1) as f64;
        let slack = room.powf(1.0 / levels as f64);
        let caps = halves.map(|half| {
            let share = nodes as f64 * half as f64 / parts as f64;
            let most = half as u64 * capacity;
            // The last level has all the room there is: no rounding may take from it.
            if levels == 1 { most } else { most.min((share * slack).ceil() as u64) }
        });
        Self { parts, nodes, halves, sizes: [0; 2], caps }
    }

    /// The side with the fewest nodes for its share of the parts, of those with room; the first if
    /// they are alike.
    pub(super) fn emptier(&self) -> u8 {
        let [a, b] = [self.sizes[0] * self.halves[1] as u64, self.sizes[1] * self.halves[0] as u64];
        let wanted = (b < a) as u8;
        if self.fits(wanted) { wanted } else { 1 - wanted }
    }

    /// Whether `side` has room for one more node.
    pub(super) fn fits(&self, side: u8) -> bool {
        self.sizes[side as usize] < self.caps[side as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_hold_all_nodes_and_parts_stay_within_capacity() {
        for nodes in 1..200u64 {
            for parts in 2..=nodes.min(20) as u32 {
                for balance in [1.0, 1.05, 2.0] {
                    let mean = nodes as f64 / parts as f64;
                    let capacity = nodes.div_ceil(parts as u64).max((mean * balance) as u64);
                    let Group { halves, caps, .. } = Group::new(nodes, parts, capacity);
                    assert_eq!(halves[0] + halves[1], parts);
                    assert!(caps[0] + caps[1] >= nodes, "{nodes} {parts} {caps:?}");
                    assert!((0..2).all(|s| caps[s] <= halves[s] as u64 * capacity));
                }
            }
        }
    }

    #[test]
    fn the_emptier_side_is_judged_by_its_share() {
        let mut group = Group::new(9, 3, 3);
        group.sizes = [3, 2];
        assert_eq!(group.emptier(), 0);
        group.sizes = [6, 2];
        assert_eq!(group.emptier(), 1);
    }
}
