//! The pairs of node and time in a temporal batch.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use gnarl_common::rng::mix;
use gnarl_common::{Error, Result};

/// Nodes with times, each pair once, in order of first appearance.
#[derive(Debug, Default)]
pub struct Pairs {
    table: HashMap<(u32, i64), u32, BuildHasherDefault<Mixer>>,
    pub nodes: Vec<u32>,
    pub times: Vec<i64>,
}

impl Pairs {
    pub fn clear(&mut self) {
        self.table.clear();
        self.nodes.clear();
        self.times.clear();
    }

    /// Positions of seeds at times.
    ///
    /// # Errors
    /// If there are not as many times as seeds.
    pub fn insert_seeds(&mut self, seeds: &[u32], times: &[i64]) -> Result<Vec<u32>> {
        if seeds.len() != times.len() {
            let (seeds, times) = (seeds.len(), times.len());
            return Err(Error::usage(format!(
                "expected {seeds} times, one per seed; found {times}"
            )));
        }
        Ok(seeds.iter().zip(times).map(|(&seed, &time)| self.insert(seed, time)).collect())
    }

    /// Position of a pair, which is appended if it is new.
    pub fn insert(&mut self, node: u32, time: i64) -> u32 {
        let next = self.nodes.len() as u32;
        let position = *self.table.entry((node, time)).or_insert(next);
        if position == next {
            self.nodes.push(node);
            self.times.push(time);
        }
        position
    }
}

/// A hash in a few instructions; the standard one would take as long as the rest of a hop.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.wrapping_add(value) ^ 0x9e37_79b9_7f4a_7c15);
    }
}
