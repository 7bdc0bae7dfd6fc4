//! The parts of a level, each about to be divided.

/// No side yet.
pub(super) const UNASSIGNED: u8 = u8::MAX;

/// What will become `parts` parts: its sides share them out as evenly as they can.
///
/// Loads are counted under each quota, that of nodes first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Parts it becomes.
    pub(super) parts: u32,
    /// Its load under each quota.
    pub(super) totals: Vec<u64>,
    /// Parts each side becomes.
    pub(super) sides: Vec<u32>,
    /// Load of each side so far: under each quota of the first side, then of the next.
    loads: Vec<u64>,
    /// What a side may have, likewise.
    caps: Vec<u64>,
}

impl Group {
    /// A group with the loads `totals`, to be divided into up to `fanout` sides whose parts may
    /// have `caps` each; of nodes, it has no more than `parts` times that.
    ///
    /// What room there is beyond the loads is spent evenly over the levels to come.
    pub(super) fn new(totals: Vec<u64>, parts: u32, fanout: u32, caps: &[u64]) -> Self {
        let fanout = fanout.min(parts);
        let up_to = |side: u32| (parts * side).div_ceil(fanout);
        let sides: Vec<u32> = (0..fanout).map(|s| up_to(s + 1) - up_to(s)).collect();
        let levels = levels(parts, fanout);
        let cap = |side: u32, total: u64, cap: u64| {
            // Nodes of degrees beyond a part's may have left no room.
            let room = ((parts as u64 * cap) as f64 / total.max(1) as f64).max(1.0);
            let slack = room.powf(1.0 / levels.max(1) as f64);
            let share = total as f64 * side as f64 / parts as f64;
            let most = side as u64 * cap;
            // The last level has all the room there is: no rounding may take from it.
            if levels <= 1 { most } else { most.min((share * slack).ceil() as u64) }
        };
        let of = |&side: &u32| totals.iter().zip(caps).map(move |(&t, &c)| cap(side, t, c));
        let caps: Vec<u64> = sides.iter().flat_map(of).collect();
        Self { parts, sides, loads: vec![0; caps.len()], caps, totals }
    }

    /// The loads of `side`.
    pub(super) fn loads(&self, side: usize) -> &[u64] {
        &self.loads[side * self.totals.len()..][..self.totals.len()]
    }

    /// What `side` may have.
    fn caps(&self, side: usize) -> &[u64] {
        &self.caps[side * self.totals.len()..][..self.totals.len()]
    }

    /// What the sides may have together of the `quota`-th, over what there is.
    pub(super) fn room(&self, quota: usize) -> f64 {
        let caps = self.caps.iter().skip(quota).step_by(self.totals.len());
        (caps.sum::<u64>() as f64 / self.totals[quota].max(1) as f64).max(1.0)
    }

    /// Adds a node of those weights to `side`.
    pub(super) fn add(&mut self, side: u8, weights: &[u64]) {
        let loads = &mut self.loads[side as usize * self.totals.len()..];
        loads.iter_mut().zip(weights).for_each(|(load, w)| *load += w);
    }

    /// Takes a node of those weights from `side`.
    pub(super) fn remove(&mut self, side: u8, weights: &[u64]) {
        let loads = &mut self.loads[side as usize * self.totals.len()..];
        loads.iter_mut().zip(weights).for_each(|(load, w)| *load -= w);
    }

    /// Whether side `a` has fewer nodes for its share of the parts than side `b`.
    fn emptier(&self, a: usize, b: usize) -> bool {
        let nodes = |side| self.loads(side)[0];
        nodes(a) * (self.sides[b] as u64) < nodes(b) * self.sides[a] as u64
    }

    /// The side of highest score, of those with room for a node of those weights; the emptier, then
    /// the first, if they are alike. If none has all the room, the one that has room for a node and
    /// would exceed its other quotas least.
    pub(super) fn best(&self, weights: &[u64], score: impl Fn(usize) -> f32) -> u8 {
        let mut best: Option<(usize, f64, f32)> = None;
        for side in 0..self.sides.len() {
            let (loads, caps) = (self.loads(side), self.caps(side));
            if loads[0] >= caps[0] {
                continue;
            }
            let score = score(side);
            // A side with room for all of the node is beaten by higher scores only.
            if best.is_some_and(|(_, least, highest)| least == 0.0 && score < highest) {
                continue;
            }
            let excess = excess(weights, loads, caps);
            let better = best.is_none_or(|(known, least, highest)| {
                excess < least
                    || excess == least
                        && (score > highest || (score == highest && self.emptier(side, known)))
            });
            if better {
                best = Some((side, excess, score));
            }
        }
        best.expect("the sides hold all nodes").0 as u8
    }

    /// The side with the fewest nodes for its share of the parts, of those with room for a node of
    /// those weights; the first if they are alike.
    pub(super) fn emptiest(&self, weights: &[u64]) -> u8 {
        self.best(weights, |_| 0.0)
    }

    /// Whether `side` has room for a node of those weights.
    pub(super) fn fits(&self, side: u8, weights: &[u64]) -> bool {
        let side = side as usize;
        let mut loads = self.loads(side).iter().zip(self.caps(side)).zip(weights);
        loads.all(|((&load, &cap), &w)| w == 0 || load + w <= cap)
    }

    /// Whether `side` has more of something than it may have.
    pub(super) fn over(&self, side: u8) -> bool {
        let side = side as usize;
        self.loads(side).iter().zip(self.caps(side)).any(|(load, cap)| load > cap)
    }
}

/// How far a node of those weights would take a side beyond a cap at most, in units of the cap; of
/// what the node has nothing of does not count.
fn excess(weights: &[u64], loads: &[u64], caps: &[u64]) -> f64 {
    let mut most = 0.0f64;
    for ((&w, &load), &cap) in weights.iter().zip(loads).zip(caps) {
        let sum = load + w;
        if w > 0 && sum > cap {
            most = most.max((sum - cap) as f64 / cap.max(1) as f64);
        }
    }
    most
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
                    let group = Group::new(vec![nodes], parts, fanout, &[capacity]);
                    let Group { sides, caps, .. } = group;
                    assert_eq!(sides.iter().sum::<u32>(), parts);
                    assert!(caps.iter().sum::<u64>() >= nodes, "{nodes} {parts} {caps:?}");
                    let within = |(&cap, &side): (&u64, &u32)| cap <= side as u64 * capacity;
                    assert!(caps.iter().zip(&sides).all(within));
                }
            }
        }
    }

    fn best(group: &Group, weights: &[u64], scores: &[f32]) -> u8 {
        group.best(weights, |side| scores[side])
    }

    #[test]
    fn the_emptiest_side_is_judged_by_its_share() {
        let mut group = Group::new(vec![9], 3, 2, &[3]);
        group.loads = vec![3, 2];
        assert_eq!(best(&group, &[1], &[0.0; 2]), 0);
        group.loads = vec![6, 2];
        assert_eq!(best(&group, &[1], &[0.0; 2]), 1);
    }

    #[test]
    fn the_best_side_has_room() {
        let mut group = Group::new(vec![9], 3, 3, &[4]);
        group.loads = vec![4, 3, 1];
        let best = |scores: [f32; 3]| best(&group, &[1], &scores);
        assert_eq!([best([3.0, 2.0, 1.0]), best([3.0, 1.0, 1.0])], [1, 2]);
    }

    #[test]
    fn the_best_side_has_room_for_all_that_a_node_takes() {
        // Three sides of 4 nodes and 10 edges; the second has all its nodes, the third its edges.
        let mut group = Group::new(vec![12, 30], 3, 3, &[4, 10]);
        group.loads = vec![1, 6, 4, 0, 1, 10];
        let best = |edges| best(&group, &[1, edges], &[0.0, 2.0, 1.0]);
        assert_eq!([best(0), best(1), best(4)], [2, 0, 0]);
        assert_eq!(best(100), 0, "a hub that fits nowhere goes where it exceeds least");
        assert!(group.fits(2, &[1, 0]) && !group.fits(2, &[1, 1]));
        assert!(!group.over(2));
        group.add(2, &[1, 1]);
        assert!(group.over(2));
    }
}
