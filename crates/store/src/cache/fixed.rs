//! A fixed set of keys, chosen beforehand as in PaGraph (Lin et al., SoCC 2020) and SALIENT++
//! (Kaler et al., MLSys 2023).

use hashbrown::HashMap;

use super::Policy;
use super::budget::table_bytes;

/// Caches the rows of its keys from their first use, and no others.
pub(super) struct Fixed {
    slots: HashMap<u64, u32>,
    /// True if the row of a slot is cached.
    filled: Vec<bool>,
}

impl Fixed {
    pub fn new(keys: &[u64]) -> Self {
        let mut slots = HashMap::with_capacity(keys.len());
        for &key in keys {
            let next = slots.len() as u32;
            slots.entry(key).or_insert(next);
        }
        let filled = vec![false; slots.len()];
        Self { slots, filled }
    }

    pub fn bytes(rows: u64) -> u64 {
        table_bytes(rows, size_of::<(u64, u32)>()) + rows
    }
}

impl Policy for Fixed {
    fn slots(&self) -> usize {
        self.filled.len()
    }

    fn get(&mut self, key: u64) -> Option<u32> {
        let slot = *self.slots.get(&key)?;
        self.filled[slot as usize].then_some(slot)
    }

    fn insert(&mut self, key: u64) -> Option<u32> {
        let slot = *self.slots.get(&key)?;
        self.filled[slot as usize] = true;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chosen_keys_are_kept_and_for_good() {
        let mut fixed = Fixed::new(&[7, 3, 7]);
        assert_eq!(fixed.slots(), 2, "a key named twice has one slot");
        assert_eq!(fixed.get(3), None, "its row is not there yet");
        assert_eq!((fixed.insert(3), fixed.insert(5)), (Some(1), None));
        (10..100).for_each(|key| assert_eq!(fixed.insert(key), None));
        assert_eq!((fixed.get(3), fixed.get(7)), (Some(1), None));
    }
}
