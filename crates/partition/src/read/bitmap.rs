//! Sets of nodes with ranks: one bit a node, and a count every 512.

use gnarl_common::prefetch;

/// A set of ids below a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    /// Members before each block of [`BLOCK`] words; filled by [`Bitmap::count_ranks`].
    ranks: Vec<u64>,
}

const BLOCK: usize = 8;

impl Bitmap {
    pub(crate) fn new(limit: u64) -> Self {
        Self { words: vec![0; limit.div_ceil(64) as usize], ranks: Vec::new() }
    }

    pub(crate) fn insert(&mut self, id: u64) {
        self.words[(id / 64) as usize] |= 1 << (id % 64);
    }

    /// A set without members, of no memory, which answers for any id.
    pub(crate) fn empty() -> Self {
        Self::new(0)
    }

    /// Returns whether it was made without room for members.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.words.get((id / 64) as usize).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Adds the members of `other`, a set below the same limit.
    pub(crate) fn insert_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(to, from)| *to |= from);
    }

    /// Prefetches the bit of `id`.
    #[inline(always)]
    pub(crate) fn ask(&self, id: u64) {
        prefetch::item(&self.words, (id / 64) as usize);
    }

    /// Updates the counts for [`Bitmap::rank`]; call again after inserting.
    pub(crate) fn count_ranks(&mut self) {
        let mut total = 0;
        self.ranks.clear();
        for block in self.words.chunks(BLOCK) {
            self.ranks.push(total);
            total += block.iter().map(|w| w.count_ones() as u64).sum::<u64>();
        }
        self.ranks.push(total);
    }

    /// Members below `id`, which is at most the limit.
    pub(crate) fn rank(&self, id: u64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let word = (id / 64) as usize;
        let block = word / BLOCK;
        let whole = &self.words[block * BLOCK..word];
        let rank = self.ranks[block] + whole.iter().map(|w| w.count_ones() as u64).sum::<u64>();
        match id % 64 {
            0 => rank,
            bits => rank + (self.words[word] & ((1 << bits) - 1)).count_ones() as u64,
        }
    }

    /// Members within `range`, ascending.
    pub(crate) fn iter(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = u64> + '_ {
        range.filter(|&id| self.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_members_below() {
        let members: Vec<u64> = (0..2000).filter(|i| i * i % 7 < 3).collect();
        let mut set = Bitmap::new(2000);
        members.iter().for_each(|&id| set.insert(id));
        set.count_ranks();
        for id in 0..=2000 {
            assert_eq!(set.rank(id), members.iter().filter(|&&m| m < id).count() as u64);
        }
        assert_eq!(set.iter(0..2000).collect::<Vec<_>>(), members);
        let mut none = Bitmap::empty();
        none.count_ranks();
        assert!(!none.contains(77) && none.rank(2000) == 0 && none.iter(0..99).next().is_none());
    }
}
