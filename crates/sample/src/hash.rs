//! Random numbers of nodes.

use gnarl_graph::rng::Key;

use crate::lanes::LANES;
use crate::view::{View, known_id};

/// A random 32-bit number for each dataset id.
#[derive(Clone, Copy)]
pub struct Hash {
    before: u32,
    between: u32,
}

impl Hash {
    pub fn new(key: Key) -> Self {
        let bits = key.u64(0);
        Self { before: bits as u32, between: (bits >> 32) as u32 }
    }

    /// The numbers of the sources of the edges `from..from + LANES` (or fewer, at the end) of a list.
    #[inline(always)]
    pub fn all(
        self,
        view: View<'_>,
        (start, degree): (usize, u32),
        from: usize,
        numbers: &mut [u32; LANES],
    ) {
        let nodes = &view.indices[start + from..];
        let left = LANES.min(degree as usize - from);
        match (view.source_ids, nodes.first_chunk::<LANES>()) {
            // What follows the list is numbered in vain: loops whose length is known take less.
            (None, Some(nodes)) => {
                for (number, &node) in numbers.iter_mut().zip(nodes) {
                    *number = self.of(u64::from(node));
                }
            }
            (None, None) => {
                for (number, &node) in numbers.iter_mut().zip(&nodes[..left]) {
                    *number = self.of(u64::from(node));
                }
            }
            (Some(ids), _) => {
                for (number, &node) in numbers.iter_mut().zip(&nodes[..left]) {
                    *number = self.of(known_id(ids, node));
                }
            }
        }
    }

    /// Two rounds of multiply and shift, each keyed; ids below 2^32 never collide.
    #[inline(always)]
    pub fn of(self, id: u64) -> u32 {
        let mut x = (id as u32) ^ ((id >> 32) as u32).wrapping_mul(0x9e37_79b9) ^ self.before;
        x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
        x = (x ^ (x >> 15) ^ self.between).wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    }

    /// As [`Hash::all`] for the sources of a list's edges from `from` on, where the second and later
    /// of equal edges have numbers of their own.
    #[inline(always)]
    pub fn all_edges(
        self,
        view: View<'_>,
        (start, degree): (usize, u32),
        from: usize,
        numbers: &mut [u32; LANES],
    ) {
        self.all(view, (start, degree), from, numbers);
        let list = &view.indices[start..start + degree as usize];
        let nodes = &list[from..list.len().min(from + LANES)];
        if (from > 0 && list[from - 1] == nodes[0]) || any_repeats(nodes) {
            self.part_equals(list, from, &mut numbers[..nodes.len()]);
        }
    }

    #[cold]
    fn part_equals(self, list: &[u32], from: usize, numbers: &mut [u32]) {
        for (i, number) in numbers.iter_mut().enumerate() {
            let at = from + i;
            let earlier = list[..at].iter().rev().take_while(|&&s| s == list[at]).count();
            if earlier > 0 {
                *number = Self { before: *number, ..self }.of(earlier as u64);
            }
        }
    }
}

/// Whether a node follows itself; without a branch for each where there are [`LANES`] nodes.
#[inline(always)]
fn any_repeats(nodes: &[u32]) -> bool {
    match <&[u32; LANES]>::try_from(nodes) {
        Ok(nodes) => (1..LANES).fold(false, |any, i| any | (nodes[i] == nodes[i - 1])),
        Err(_) => nodes.windows(2).any(|pair| pair[0] == pair[1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_neighbouring_ids_and_keys_are_unrelated() {
        let keys: Vec<Hash> = (0..64).map(|k| Hash::new(Key::new(k))).collect();
        let mut counts = [0f64; 64];
        for (k, hash) in keys.iter().enumerate() {
            for id in 0..1000u64 {
                let next = hash.of(id + 1) ^ keys[(k + 1) % 64].of(id);
                counts[((hash.of(id) ^ next) >> 26) as usize] += 1.0;
            }
        }
        let expected = 1000.0;
        let chi: f64 = counts.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
        assert!(chi < 103.4, "chi-square {chi} exceeds the 0.1 % point of 63 degrees of freedom");
    }

    #[test]
    fn ids_above_32_bits_have_numbers_of_their_own() {
        let hash = Hash::new(Key::new(3));
        assert_ne!(hash.of(5), hash.of(5 | 1 << 32));
    }
}
