//! The groups of a level, each to be divided into sides.

/// Most sides of a group.
pub(super) const MOST_SIDES: usize = 16;
/// No side yet.
pub(super) const UNASSIGNED: u8 = u8::MAX;

/// One number a side; of sides that a group does not have, 0 or less.
type Row = [i64; MOST_SIDES];

/// A group that becomes `parts` parts, which its sides share as evenly as they can.
///
/// Loads are counted under each quota, that of nodes first. Caps and remaining room of the sides
/// are rows, so that all of them are compared in a few instructions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    /// Number of parts it becomes.
    pub(super) parts: u32,
    /// Its load under each quota.
    pub(super) totals: Vec<u64>,
    /// Number of parts each side becomes.
    pub(super) sides: Vec<u32>,
    /// Cap of each side under each quota.
    caps: Vec<Row>,
    /// Remaining room; below 0 for a side above its cap.
    room: Vec<Row>,
}

impl Group {
    /// A group with the loads `totals`, to be divided into up to `fanout` sides whose parts have
    /// `caps` each; it has no more than `parts` times the cap of nodes.
    ///
    /// Room beyond the loads is spent evenly over the remaining levels.
    pub(super) fn new(totals: Vec<u64>, parts: u32, fanout: u32, caps: &[u64]) -> Self {
        let fanout = fanout.min(parts);
        let up_to = |side: u32| (parts * side).div_ceil(fanout);
        let sides: Vec<u32> = (0..fanout).map(|s| up_to(s + 1) - up_to(s)).collect();
        let levels = levels(parts, fanout);
        let cap = |side: u32, total: u64, cap: u64| {
            // Nodes of degrees beyond a part's cap may have left no room.
            let room = ((parts as u64 * cap) as f64 / total.max(1) as f64).max(1.0);
            let slack = room.powf(1.0 / levels.max(1) as f64);
            let share = total as f64 * side as f64 / parts as f64;
            let most = side as u64 * cap;
            // The last level has all the room there is: no rounding may take from it.
            if levels <= 1 { most } else { most.min((share * slack).ceil() as u64) }
        };
        let row = |(&total, &most): (&u64, &u64)| {
            let of = |s| sides.get(s).map_or(0, |&side| cap(side, total, most) as i64);
            std::array::from_fn(of)
        };
        let caps: Vec<Row> = totals.iter().zip(caps).map(row).collect();
        Self { parts, sides, room: caps.clone(), caps, totals }
    }

    /// The loads of `side`.
    pub(super) fn loads(&self, side: usize) -> impl Iterator<Item = u64> {
        let rows = self.caps.iter().zip(&self.room);
        rows.map(move |(caps, room)| (caps[side] - room[side]) as u64)
    }

    /// Total cap of the sides under the `quota`-th quota, over the load.
    pub(super) fn room(&self, quota: usize) -> f64 {
        let caps = self.caps[quota].iter().sum::<i64>();
        (caps as f64 / self.totals[quota].max(1) as f64).max(1.0)
    }

    /// Adds a node of these weights to `side`.
    #[inline]
    pub(super) fn add(&mut self, side: u8, weights: &[u64]) {
        let rooms = self.room.iter_mut().zip(weights);
        rooms.for_each(|(room, &w)| room[side as usize] -= w as i64);
    }

    /// Removes a node of these weights from `side`.
    #[inline]
    pub(super) fn remove(&mut self, side: u8, weights: &[u64]) {
        let rooms = self.room.iter_mut().zip(weights);
        rooms.for_each(|(room, &w)| room[side as usize] += w as i64);
    }

    /// Returns whether side `a` has fewer nodes for its share of the parts than side `b`.
    fn emptier(&self, a: usize, b: usize) -> bool {
        let nodes = |side| self.caps[0][side] - self.room[0][side];
        nodes(a) * (self.sides[b] as i64) < nodes(b) * self.sides[a] as i64
    }

    /// The side of highest score among those with room for a node of these weights; ties go to the
    /// emptier, then the first. If none has all the room, the one that has room for a node and
    /// would exceed its other quotas least. Scores are at or above 0.
    #[inline]
    pub(super) fn best<const K: usize>(&self, weights: &[u64], scores: &[f32; K]) -> u8 {
        // The branches would be unpredictable, so there are as few as possible.
        let mut left = [0; K];
        for (&w, room) in weights.iter().zip(&self.room) {
            let wanted = if w > 0 { !0 } else { 0 };
            left.iter_mut().zip(room).for_each(|(left, room)| *left |= (room - w as i64) & wanted);
        }
        let fitting = |side: usize| if left[side] < 0 { -1.0 } else { scores[side] };
        let scores_left: [f32; K] = std::array::from_fn(fitting);
        let highest = scores_left.iter().copied().fold(-1.0, f32::max);
        if highest < 0.0 {
            return self.least_exceeded(weights, scores);
        }
        let alike =
            scores_left.iter().enumerate().map(|(s, &score)| ((score == highest) as u32) << s);
        let mut alike = alike.sum::<u32>();
        let mut best = alike.trailing_zeros() as usize;
        while alike & (alike - 1) != 0 {
            alike &= alike - 1;
            let side = alike.trailing_zeros() as usize;
            best = if self.emptier(side, best) { side } else { best };
        }
        best as u8
    }

    /// The side with room for a node that one of these weights would take least beyond a cap; ties
    /// go to the higher score, then to the emptier.
    #[cold]
    fn least_exceeded(&self, weights: &[u64], scores: &[f32]) -> u8 {
        let with_room = (0..self.sides.len()).filter(|&s| self.room[0][s] > 0);
        let exceeding = with_room.map(|s| (s, self.excess(s, weights)));
        let least = exceeding.reduce(|known, new| {
            let order = new.1.total_cmp(&known.1);
            let order = order.then_with(|| scores[known.0].total_cmp(&scores[new.0]));
            let better = order.is_lt() || (order.is_eq() && self.emptier(new.0, known.0));
            if better { new } else { known }
        });
        least.expect("the sides hold all nodes").0 as u8
    }

    /// The largest excess of `side` over a cap with a node of these weights, in units of the cap;
    /// quotas on which the node has no weight do not count.
    fn excess(&self, side: usize, weights: &[u64]) -> f64 {
        let rows = weights.iter().zip(&self.room).zip(&self.caps).filter(|((w, _), _)| **w > 0);
        let excess = rows.map(|((&w, room), caps)| {
            (w as i64 - room[side]).max(0) as f64 / caps[side].max(1) as f64
        });
        excess.fold(0.0, f64::max)
    }

    /// The side with the fewest nodes for its share of the parts, of those with room for a node of
    /// those weights; the first if they are alike.
    pub(super) fn emptiest(&self, weights: &[u64]) -> u8 {
        self.best(weights, &[0.0; MOST_SIDES])
    }

    /// Returns whether `side` has room for a node of those weights.
    pub(super) fn fits(&self, side: u8, weights: &[u64]) -> bool {
        let mut rooms = self.room.iter().zip(weights);
        rooms.all(|(room, &w)| w == 0 || w as i64 <= room[side as usize])
    }

    /// Returns whether `side` exceeds a cap.
    pub(super) fn over(&self, side: u8) -> bool {
        self.room.iter().any(|room| room[side as usize] < 0)
    }
}

/// Number of times that `parts` parts must be divided by `fanout`.
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
                    assert!(caps[0].iter().sum::<i64>() as u64 >= nodes, "{nodes} {caps:?}");
                    let within = |(&cap, &side): (&i64, &u32)| cap as u64 <= side as u64 * capacity;
                    assert!(caps[0].iter().zip(&sides).all(within));
                }
            }
        }
    }

    /// Adds these loads to the sides: under each quota of the first side, then of the next.
    fn load(group: &mut Group, loads: &[u64]) {
        group.room = group.caps.clone();
        for (side, loads) in loads.chunks(group.totals.len()).enumerate() {
            group.add(side as u8, loads);
        }
    }

    #[test]
    fn the_emptiest_side_is_judged_by_its_share() {
        let mut group = Group::new(vec![9], 3, 2, &[3]);
        load(&mut group, &[3, 2]);
        assert_eq!(group.emptiest(&[1]), 0);
        load(&mut group, &[6, 2]);
        assert_eq!(group.emptiest(&[1]), 1);
    }

    #[test]
    fn the_best_side_has_room() {
        let mut group = Group::new(vec![9], 3, 3, &[4]);
        load(&mut group, &[4, 3, 1]);
        let best = |scores: [f32; 3]| group.best(&[1], &scores);
        assert_eq!([best([3.0, 2.0, 1.0]), best([3.0, 1.0, 1.0])], [1, 2]);
    }

    #[test]
    fn the_best_side_has_room_for_all_that_a_node_takes() {
        // Three sides of 4 nodes and 10 edges; the second has all its nodes, the third its edges.
        let mut group = Group::new(vec![12, 30], 3, 3, &[4, 10]);
        load(&mut group, &[1, 6, 4, 0, 1, 10]);
        let best = |edges| group.best(&[1, edges], &[0.0, 2.0, 1.0]);
        assert_eq!([best(0), best(1), best(4)], [2, 0, 0]);
        assert_eq!(best(100), 0, "a hub that fits nowhere goes where it exceeds least");
        assert!(group.fits(2, &[1, 0]) && !group.fits(2, &[1, 1]));
        assert!(!group.over(2));
        group.add(2, &[1, 1]);
        assert!(group.over(2));
        assert_eq!(group.loads(2).collect::<Vec<_>>(), [2, 11]);
    }
}
