//! The parts of a level, each about to be divided.

/// No side yet.
pub(super) const UNASSIGNED: u8 = u8::MAX;

/// What will become `parts` parts: its sides share them out as evenly as they can.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Parts it becomes.
    pub(super) parts: u32,
    /// Nodes it has.
    pub(super) nodes: u64,
    /// Parts each side becomes.
    pub(super) sides: Vec<u32>,
    /// Nodes each side has so far.
    pub(super) sizes: Vec<u64>,
    /// Nodes each side may have.
    pub(super) caps: Vec<u64>,
}

impl Group {
    /// A group of `nodes` nodes to be divided into up to `fanout` sides, whose parts may have
    /// `capacity` nodes each; `nodes` is no more than `parts` times that.
    ///
    /// What room there is beyond the nodes is spent evenly over the levels to come.
    pub(super) fn new(nodes: u64, parts: u32, fanout: u32, capacity: u64) -> Self {
        let fanout = fanout.min(parts);
        let up_to = |side: u32| (parts * side).div_ceil(fanout);
        let sides: Vec<u32> = (0..fanout).map(|s| up_to(s + 1) - up_to(s)).collect();
        let levels = levels(parts, fanout);
        let room = (parts as u64 * capacity) as f64 / nodes.max(1) as f64;
        let slack = room.powf(1.0 / levels.max(1) as f64);
        let cap = |&side: &u32| {
            let share = nodes as f64 * side as f64 / parts as f64;
            let most = side as u64 * capacity;
            // The last level has all the room there is: no rounding may take from it.
            if levels <= 1 { most } else { most.min((share * slack).ceil() as u64) }
        };
        let caps = sides.iter().map(cap).collect();
        Self { parts, nodes, sizes: vec![0; sides.len()], sides, caps }
    }

    /// Whether side `a` has fewer nodes for its share of the parts than side `b`.
    pub(super) fn emptier(&self, a: usize, b: usize) -> bool {
        self.sizes[a] * (self.sides[b] as u64) < self.sizes[b] * self.sides[a] as u64
    }

    /// The side with the fewest nodes for its share of the parts, of those with room; the first if
    /// they are alike.
    pub(super) fn emptiest(&self) -> u8 {
        self.best(|_| 0.0)
    }

    /// The side of highest score, of those with room; the emptier, then the first, if they are
    /// alike.
    #[inline(always)]
    pub(super) fn best(&self, score: impl Fn(usize) -> f32) -> u8 {
        let mut best: Option<(usize, f32)> = None;
        for side in 0..self.sizes.len() {
            let score = score(side);
            let better = |(known, highest)| {
                score > highest || (score == highest && self.emptier(side, known))
            };
            if self.sizes[side] < self.caps[side] && best.is_none_or(better) {
                best = Some((side, score));
            }
        }
        best.expect("the sides hold all nodes").0 as u8
    }

    /// Whether `side` has room for one more node.
    pub(super) fn fits(&self, side: u8) -> bool {
        self.sizes[side as usize] < self.caps[side as usize]
    }
}

/// How often `parts` parts must be divided by `fanout`.
pub(super) fn levels(parts: u32, fanout: u32) -> u32 {
    let reach = |&levels: &u32| (fanout as u64).pow(levels) >= parts as u64;
    if fanout < 2 { 0 } else { (0..32).find(reach).unwrap_or(32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_hold_all_nodes_and_parts_stay_within_capacity() {
        for (nodes, fanout) in (1..200u64).flat_map(|n| [2, 3, 16].map(|f| (n, f))) {
            for parts in 2..=nodes.min(20) as u32 {
                for balance in [1.0, 1.05, 2.0] {
                    let mean = nodes as f64 / parts as f64;
                    let capacity = nodes.div_ceil(parts as u64).max((mean * balance) as u64);
                    let Group { sides, caps, .. } = Group::new(nodes, parts, fanout, capacity);
                    assert_eq!(sides.iter().sum::<u32>(), parts);
                    assert!(caps.iter().sum::<u64>() >= nodes, "{nodes} {parts} {caps:?}");
                    let within = |(&cap, &side): (&u64, &u32)| cap <= side as u64 * capacity;
                    assert!(caps.iter().zip(&sides).all(within));
                }
            }
        }
    }

    #[test]
    fn the_emptiest_side_is_judged_by_its_share() {
        let mut group = Group::new(9, 3, 2, 3);
        group.sizes = vec![3, 2];
        assert_eq!(group.emptiest(), 0);
        group.sizes = vec![6, 2];
        assert_eq!(group.emptiest(), 1);
    }

    #[test]
    fn the_best_side_has_room() {
        let mut group = Group::new(9, 3, 3, 4);
        group.sizes = vec![4, 3, 1];
        let best = |scores: [f32; 3]| group.best(|s| scores[s]);
        assert_eq!([best([3.0, 2.0, 1.0]), best([3.0, 1.0, 1.0])], [1, 2]);
    }
}
