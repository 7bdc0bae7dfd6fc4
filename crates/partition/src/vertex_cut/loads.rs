//! Loads of the parts.

use crate::edge_cut::partitioner::PartitionOptions;

/// Edges in each part, with the least loaded one found in amortized constant time.
pub(super) struct Loads {
    of: Vec<u64>,
    /// Maximum edges of a part: `balance · |E| / parts`, rounded up.
    cap: u64,
    max: u64,
    min: u64,
    /// Parts with `min` edges.
    at_min: usize,
    /// No part between the last least loaded one and this has `min` edges.
    cursor: usize,
}

/// `balance · edges / parts`, rounded up: all parts together always have room for all edges.
pub(super) fn cap(options: &PartitionOptions, edges: u64) -> u64 {
    let mean = edges as f64 / options.parts as f64;
    ((options.balance * mean).ceil() as u64).max(edges.div_ceil(options.parts as u64)).max(1)
}

impl Loads {
    pub(super) fn new(of: Vec<u64>, cap: u64) -> Self {
        let (max, min) = (of.iter().copied().max(), of.iter().copied().min());
        let (max, min) = (max.unwrap_or(0), min.unwrap_or(0));
        let at_min = of.iter().filter(|&&l| l == min).count();
        Self { of, cap, max, min, at_min, cursor: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, part: usize) {
        let load = &mut self.of[part];
        *load += 1;
        self.max = self.max.max(*load);
        if *load == self.min + 1 {
            self.at_min -= 1;
            if self.at_min == 0 {
                self.min += 1;
                self.at_min = self.of.iter().filter(|&&l| l == self.min).count();
            }
        }
    }

    #[inline]
    pub(super) fn of(&self, part: usize) -> u64 {
        self.of[part]
    }

    /// Number of parts.
    pub(super) fn count(&self) -> usize {
        self.of.len()
    }

    #[inline]
    pub(super) fn has_room(&self, part: usize) -> bool {
        self.of[part] < self.cap
    }

    /// Edges of the fullest and the emptiest part.
    #[inline]
    pub(super) fn extremes(&self) -> (u64, u64) {
        (self.max, self.min)
    }

    /// A part with the fewest edges; it has room while an edge is left.
    #[inline]
    pub(super) fn least(&mut self) -> usize {
        while self.of[self.cursor] != self.min {
            self.cursor = if self.cursor + 1 == self.of.len() { 0 } else { self.cursor + 1 };
        }
        self.cursor
    }
}

#[cfg(test)]
mod tests {
    use gnarl_common::rng::Key;

    use super::*;

    #[test]
    fn extremes_follow_the_loads() {
        let mut loads = Loads::new(vec![3, 1, 2, 1, 5], 1000);
        for i in 0..2000 {
            let part = if i % 3 == 0 { loads.least() } else { Key::new(i).below(0, 5) as usize };
            loads.add(part);
            let extremes = (*loads.of.iter().max().unwrap(), *loads.of.iter().min().unwrap());
            assert_eq!(loads.extremes(), extremes);
            let least = loads.least();
            assert_eq!(loads.of(least), extremes.1);
        }
    }
}
