//! Sums of edge weights by label.

/// Sums of edge weights by label, for one node at a time. Memory: in proportion to the longest
/// list so far.
#[derive(Default)]
pub(super) struct Tally {
    /// Label and sum of each slot; free ones have no sum.
    slots: Vec<(u32, u32)>,
    touched: Vec<u32>,
    /// The high bits of a hash that name a slot; 0 where labels do.
    bits: u32,
}

impl Tally {
    /// Empties the tally for a node of `length` neighbors whose labels are below `labels`.
    pub fn clear(&mut self, length: usize, labels: usize) {
        for slot in self.touched.drain(..) {
            self.slots[slot as usize].1 = 0;
        }
        // At least half of the slots stay free.
        let hashed = (2 * length).next_power_of_two().max(2);
        let direct = labels <= hashed;
        self.bits = if direct { 0 } else { hashed.trailing_zeros() };
        let needed = if direct { labels } else { hashed };
        if self.slots.len() < needed {
            self.slots.resize(needed, (0, 0));
        }
    }

    /// Adds to the sum of a label.
    #[inline]
    pub fn add(&mut self, label: u32, weight: u32) {
        let at = self.find(label);
        let slot = &mut self.slots[at];
        if slot.1 == 0 {
            *slot = (label, 0);
            self.touched.push(at as u32);
        }
        slot.1 = slot.1.saturating_add(weight);
    }

    /// The sum of a label.
    #[inline]
    pub fn sum(&self, label: u32) -> u32 {
        self.slots[self.find(label)].1
    }

    /// Labels and their sums, in the order of their first occurrence.
    #[inline]
    pub fn sums(&self) -> impl Iterator<Item = (u32, u32)> {
        self.touched.iter().map(|&slot| self.slots[slot as usize])
    }

    /// The slot that a label has or would get.
    #[inline]
    fn find(&self, label: u32) -> usize {
        if self.bits == 0 {
            return label as usize;
        }
        let mask = (1usize << self.bits) - 1;
        // The multiplier of Fibonacci hashing: 2³² over the golden ratio.
        let mut slot = (label.wrapping_mul(0x9e37_79b1) >> (32 - self.bits)) as usize;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != label {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_a_map_however_short_the_lists_before() {
        let mut tally = Tally::default();
        for (length, labels) in [(3, 1000), (500, 40), (500, 100_000), (1, 5), (60, 1 << 31)] {
            tally.clear(length, labels);
            let mut expected: Vec<(u32, u32)> = Vec::new();
            for i in 0..length as u32 {
                let label = (i * i * 7919) % (labels as u32).min(97) * (labels as u32 / 97).max(1);
                tally.add(label, i + 1);
                match expected.iter_mut().find(|e| e.0 == label) {
                    Some(e) => e.1 += i + 1,
                    None => expected.push((label, i + 1)),
                }
            }
            assert_eq!(tally.sums().collect::<Vec<_>>(), expected, "{length} of {labels}");
            assert!(expected.iter().all(|&(label, sum)| tally.sum(label) == sum));
            assert_eq!(
                tally.sum(labels as u32 - 1),
                expected.iter().filter(|e| e.0 == labels as u32 - 1).map(|e| e.1).sum::<u32>()
            );
        }
    }
}
