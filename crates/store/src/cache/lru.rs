//! Least recently used (LRU).

use std::num::NonZeroUsize;

use hashbrown::DefaultHashBuilder;
use lru::LruCache;

use super::Policy;
use super::budget::{churning, table_bytes};

/// Keys in the order of their last use.
pub(super) struct Lru {
    slots: LruCache<u64, u32>,
}

/// Bytes of a list node on the heap: key, slot, two links, and the allocator's overhead.
const NODE: u64 = 48;

impl Lru {
    pub fn new(rows: NonZeroUsize) -> Self {
        Self { slots: LruCache::with_hasher(rows, DefaultHashBuilder::default()) }
    }

    pub fn bytes(rows: u64) -> u64 {
        // The table holds two pointers: to the key and to the list.
        table_bytes(churning(rows), 2 * size_of::<usize>()) + rows * NODE
    }
}

impl Policy for Lru {
    fn slots(&self) -> usize {
        self.slots.cap().get()
    }

    fn get(&mut self, key: u64) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    fn insert(&mut self, key: u64) -> Option<u32> {
        let slot = if self.slots.len() < self.slots() {
            self.slots.len() as u32
        } else {
            self.slots.pop_lru()?.1
        };
        self.slots.put(key, slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        let mut lru = Lru::new(NonZeroUsize::new(3).unwrap());
        for key in [1, 2, 3] {
            lru.insert(key);
        }
        assert_eq!(lru.get(1), Some(0));
        assert_eq!(lru.insert(4), Some(1));
        assert_eq!([1, 2, 3, 4].map(|key| lru.get(key)), [Some(0), None, Some(2), Some(1)]);
    }
}
