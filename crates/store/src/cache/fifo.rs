//! First in, first out (FIFO).

use std::num::NonZeroUsize;

use hashbrown::HashMap;

use super::Policy;
use super::budget::{churning, table_bytes};

/// A ring: the slot filled longest ago is replaced next.
pub(super) struct Fifo {
    slots: HashMap<u64, u32>,
    /// The key of each slot filled so far.
    keys: Vec<u64>,
    next: usize,
    rows: usize,
}

impl Fifo {
    pub fn new(rows: NonZeroUsize) -> Self {
        let rows = rows.get();
        Self {
            slots: HashMap::with_capacity(churning(rows as u64) as usize),
            keys: Vec::with_capacity(rows),
            next: 0,
            rows,
        }
    }

    pub fn bytes(rows: u64) -> u64 {
        table_bytes(churning(rows), size_of::<(u64, u32)>()) + rows * size_of::<u64>() as u64
    }
}

impl Policy for Fifo {
    fn slots(&self) -> usize {
        self.rows
    }

    fn get(&mut self, key: u64) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    fn insert(&mut self, key: u64) -> Option<u32> {
        let slot = self.next;
        match self.keys.get_mut(slot) {
            Some(oldest) => {
                self.slots.remove(oldest);
                *oldest = key;
            }
            None => self.keys.push(key),
        }
        self.slots.insert(key, slot as u32);
        self.next = (slot + 1) % self.rows;
        Some(slot as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_however_often_it_was_used() {
        let mut fifo = Fifo::new(NonZeroUsize::new(3).unwrap());
        for key in [1, 2, 3] {
            fifo.insert(key);
        }
        (0..5).for_each(|_| assert_eq!(fifo.get(1), Some(0)));
        assert_eq!(fifo.insert(4), Some(0));
        assert_eq!([1, 2, 3, 4].map(|key| fifo.get(key)), [None, Some(1), Some(2), Some(0)]);
    }
}
