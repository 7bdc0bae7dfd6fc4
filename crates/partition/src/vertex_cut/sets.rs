//! The parts of each node as bits.

/// A set of parts per node.
///
/// Memory: the number of parts in bits a node, rounded up to a power of two, so that up to 64 parts
/// a set never straddles two words; beyond that to a multiple of 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSets {
    nodes: u64,
    /// Bits of a narrow set, a power of two up to 64.
    width: u32,
    /// Words of a set; 1 for narrow ones.
    row: usize,
    words: Vec<u64>,
}

impl PartSets {
    /// Empty sets of `parts` parts for `nodes` nodes.
    pub fn new(nodes: u64, parts: usize) -> Self {
        let (width, row) = shape(parts);
        let words = vec![0; Self::bytes(nodes, parts) as usize / 8];
        Self { nodes, width, row, words }
    }

    /// Memory in bytes.
    pub fn bytes(nodes: u64, parts: usize) -> u64 {
        let (width, row) = shape(parts);
        if row > 1 { 8 * nodes * row as u64 } else { 8 * nodes.div_ceil((64 / width) as u64) }
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> u64 {
        self.nodes
    }

    /// Words of each set.
    #[inline]
    pub(crate) fn row_words(&self) -> usize {
        self.row
    }

    /// Position of the bits of `v`: word and bit.
    #[inline]
    fn place(&self, v: u64) -> (usize, u32) {
        if self.row > 1 {
            return (v as usize * self.row, 0);
        }
        let log = self.width.trailing_zeros();
        let bit = v << log;
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    /// The `i`-th word of the set of `v`: parts from `64·i` on.
    #[inline]
    pub(crate) fn word(&self, v: u64, i: usize) -> u64 {
        let (word, bit) = self.place(v);
        self.words[word + i] >> bit & (!0 >> (64 - self.width))
    }

    /// Adds `part` to the set of `v`; returns whether it was missing.
    #[inline]
    pub fn insert(&mut self, v: u64, part: usize) -> bool {
        let (word, bit) = self.place(v);
        let word = &mut self.words[word + part / 64];
        let mask = 1 << (bit + part as u32 % 64);
        let missing = *word & mask == 0;
        *word |= mask;
        missing
    }

    /// Returns whether `part` is in the set of `v`.
    #[inline]
    pub fn contains(&self, v: u64, part: usize) -> bool {
        self.word(v, part / 64) >> (part % 64) & 1 == 1
    }

    /// Number of parts of `v`.
    pub fn count(&self, v: u64) -> usize {
        (0..self.row).map(|i| self.word(v, i).count_ones() as usize).sum()
    }

    /// The parts of `v`, ascending.
    pub fn parts(&self, v: u64) -> impl Iterator<Item = usize> + '_ {
        (0..self.row).flat_map(move |i| bits(self.word(v, i), i))
    }
}

/// Bits of a narrow set and words of a set.
fn shape(parts: usize) -> (u32, usize) {
    (parts.clamp(1, 64).next_power_of_two() as u32, parts.div_ceil(64).max(1))
}

/// The parts in the `i`-th word of a set.
#[inline]
pub(crate) fn bits(mut word: u64, i: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(64 * i + bit)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gnarl_common::rng::Key;

    use super::*;

    #[test]
    fn sets_of_any_width_are_sets() {
        for parts in [1, 2, 3, 7, 8, 33, 64, 65, 128, 1000] {
            let mut sets = PartSets::new(37, parts);
            let mut expected = vec![BTreeSet::new(); 37];
            for i in 0..500 {
                let key = Key::new(i);
                let (v, part) = (key.below(0, 37), key.below(1, parts as u64) as usize);
                assert_eq!(sets.insert(v, part), expected[v as usize].insert(part));
            }
            for v in 0..37 {
                let parts: Vec<usize> = sets.parts(v).collect();
                assert!(parts.iter().all(|&p| sets.contains(v, p)));
                assert_eq!(sets.count(v), parts.len());
                assert_eq!(parts, expected[v as usize].iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
