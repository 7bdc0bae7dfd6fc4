//! The measured cost of a random access.

use std::hint::black_box;
use std::time::Instant;

use gnarl_common::rng::mix;

const ACCESSES: u64 = 1 << 20;
/// Table size beyond which accesses hardly slow down.
const MOST: u64 = 256 << 20;

/// Seconds of one read and write at a random place of a table of so many bytes.
pub(super) fn random_access(bytes: u64) -> f64 {
    let slots = (bytes.clamp(4096, MOST) / 4) as usize;
    let mut table = vec![1u32; slots];
    let start = Instant::now();
    for i in 0..ACCESSES {
        // The high half of a product maps a hash to 0..slots without a division.
        let slot = ((u128::from(mix(i)) * slots as u128) >> 64) as usize;
        table[slot] = table[slot].wrapping_add(1);
    }
    black_box(&table);
    start.elapsed().as_secs_f64() / ACCESSES as f64
}
