//! CLOCK-Pro from `quick_cache`, near S3-FIFO. Of the well-maintained crates with a modern policy
//! it has the fewest dependencies (4; `moka` 15, `foyer-memory` 53), and it alone has a variant
//! without locks of its own, which a policy under the lock of its cache does not need.

use std::num::NonZeroUsize;

use hashbrown::DefaultHashBuilder;
use quick_cache::unsync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, UnitWeighter};

use super::Policy;
use super::budget::{churning, table_bytes};

/// New keys start in a probationary state; those used meanwhile become protected. Evicted keys are
/// remembered for a while, and protected at once if they come back.
pub(super) struct ClockPro {
    slots: Cache<u64, u32, UnitWeighter, DefaultHashBuilder, Freed>,
    free: Vec<u32>,
    rows: usize,
}

/// The slot of a key without one yet.
const UNPLACED: u32 = u32::MAX;

/// Collects the slots of evicted keys.
struct Freed;

impl Lifecycle<u64, u32> for Freed {
    type RequestState = Vec<u32>;

    fn on_evict(&self, free: &mut Vec<u32>, _: u64, slot: u32) {
        // A key that came back may go again at once, if all others are in use.
        if slot != UNPLACED {
            free.push(slot);
        }
    }
}

/// Ratio of remembered evicted keys to cached ones.
const GHOSTS: f64 = 0.5;

/// Bytes per key, cached or remembered.
const ENTRY: u64 = 48;

/// Number of keys tracked for `rows` cached ones.
fn noted(rows: u64) -> u64 {
    rows + (rows as f64 * GHOSTS) as u64
}

impl ClockPro {
    pub fn new(rows: NonZeroUsize) -> Self {
        let rows = rows.get();
        let options = OptionsBuilder::new()
            .estimated_items_capacity(rows)
            .weight_capacity(rows as u64)
            .ghost_allocation(GHOSTS)
            .build()
            .expect("both capacities are given");
        let mut slots =
            Cache::with_options(options, UnitWeighter, DefaultHashBuilder::default(), Freed);
        slots.reserve(noted(rows as u64) as usize);
        Self { slots, free: (0..rows as u32).rev().collect(), rows }
    }

    pub fn bytes(rows: u64) -> u64 {
        let noted = noted(rows);
        let table = table_bytes(churning(noted), size_of::<u32>());
        table + noted * ENTRY + rows * size_of::<u32>() as u64
    }
}

impl Policy for ClockPro {
    fn slots(&self) -> usize {
        self.rows
    }

    fn get(&mut self, key: u64) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    fn insert(&mut self, key: u64) -> Option<u32> {
        // The slot is known only once the cache has evicted a key to make room.
        self.slots.insert_with_lifecycle(key, UNPLACED, &mut self.free);
        let mut entry = self.slots.peek_mut(&key)?;
        *entry = self.free.pop()?;
        Some(*entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_does_not_displace_what_is_used_again() {
        let mut policy = ClockPro::new(NonZeroUsize::new(100).unwrap());
        for key in (0..100).chain(0..50).chain(0..50) {
            if policy.get(key).is_none() {
                policy.insert(key);
            }
        }
        (1000..3000).for_each(|key| assert!(policy.insert(key).is_some()));
        assert!((0..50).all(|key| policy.get(key).is_some()));
    }

    #[test]
    fn notes_take_no_more_than_reckoned() {
        for rows in [1u64, 2, 9, 100, 300, 5000] {
            let mut policy = ClockPro::new(NonZeroUsize::new(rows as usize).unwrap());
            for key in (0..20 * rows).map(|i| i * i % (7 * rows)) {
                if policy.get(key).is_none() {
                    policy.insert(key);
                }
            }
            let used = policy.slots.memory_used().total() + policy.free.capacity() * 4;
            assert!(used as u64 <= ClockPro::bytes(rows), "{rows} rows take {used} bytes");
        }
    }
}
