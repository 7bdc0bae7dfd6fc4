//! R-MAT: recursive matrix graphs (Chakrabarti, Zhan and Faloutsos, SDM 2004), the skewed graphs
//! of Graph 500, of any size.

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use serde::Serialize;

use super::attributes::Attributes;
use super::permute::Permutation;
use super::stream::EdgeFunction;
use crate::edges::EdgeChunk;

/// Options of [`rmat`](super::rmat).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RmatOptions {
    /// Number of nodes, any number from 2.
    pub nodes: u64,
    /// Edges drawn. Self loops are never drawn; repeated edges are, unless coalesced.
    pub edges: u64,
    /// Probability of the upper left quadrant of the adjacency matrix.
    pub a: f64,
    /// Probability of the upper right quadrant.
    pub b: f64,
    /// Probability of the lower left quadrant; the rest goes to the lower right.
    pub c: f64,
    /// Random seed.
    pub seed: u64,
    /// Add the reverse of every edge: twice as many edges.
    pub symmetrize: bool,
    /// Drop repeated edges.
    pub coalesce: bool,
    /// Features, labels and splits.
    pub attributes: Attributes,
    /// Memory limit of building the topology, in bytes.
    pub memory: u64,
}

impl Default for RmatOptions {
    fn default() -> Self {
        Self {
            nodes: 1 << 20,
            edges: 16 << 20,
            a: 0.57,
            b: 0.19,
            c: 0.19,
            seed: 0,
            symmetrize: false,
            coalesce: false,
            attributes: Attributes::default(),
            memory: 1 << 30,
        }
    }
}

impl RmatOptions {
    /// Graph 500's shape: `2^scale` nodes, 16 edges for each.
    pub fn scale(scale: u32) -> Self {
        Self { nodes: 1 << scale, edges: 16 << scale, ..Self::default() }
    }
}

/// Levels of the recursion resolved by one table look-up.
const LEVELS: u32 = 4;
/// Bits of an alias-table threshold.
const FRACTION: u32 = 24;

/// The edges of an R-MAT graph, by index.
#[derive(Debug, Clone)]
pub struct RmatEdges {
    nodes: u64,
    draws: u64,
    symmetrize: bool,
    key: Key,
    scramble: Permutation,
    /// Tables for four levels at a time, then for the levels that remain, if any.
    full: AliasTable,
    full_lookups: u32,
    rest: Option<AliasTable>,
}

impl RmatEdges {
    /// Prepares the tables.
    ///
    /// # Errors
    /// If the sizes or probabilities are invalid.
    pub fn new(options: &RmatOptions) -> Result<Self> {
        let RmatOptions { nodes, edges, a, b, c, .. } = *options;
        if !(2..=1 << 48).contains(&nodes) {
            return Err(Error::usage(format!(
                "invalid number of R-MAT nodes '{nodes}': expected 2 to 2^48"
            )));
        }
        let quadrants = [a, b, c, 1.0 - a - b - c];
        if !quadrants.iter().all(|p| (0.0..1.0).contains(p)) {
            return Err(Error::usage(format!("invalid probabilities a = {a}, b = {b}, c = {c}"))
                .hint("each must be in 0..1 and their sum at most 1"));
        }
        if a + quadrants[3] < 0.01 && nodes == 2 || b + c < 1e-6 {
            return Err(Error::usage("with b + c = 0 all edges would be self loops"));
        }
        let bits = u64::BITS - (nodes - 1).leading_zeros();
        let key = Key::new(options.seed).with(0x726d_6174);
        Ok(Self {
            nodes,
            draws: edges,
            symmetrize: options.symmetrize,
            key: key.with(0),
            scramble: Permutation::new(nodes, key.with(1)),
            full: AliasTable::new(quadrants, LEVELS),
            full_lookups: bits / LEVELS,
            rest: (bits % LEVELS > 0).then(|| AliasTable::new(quadrants, bits % LEVELS)),
        })
    }

    /// The `i`-th edge drawn.
    #[inline]
    pub fn edge(&self, i: u64) -> (u64, u64) {
        let key = self.key.with(i);
        let mut words = 0;
        loop {
            let (src, dst) = self.cell(key, &mut words);
            // Matrices are a power of two wide, so edges outside the graph or on its diagonal are
            // redrawn.
            if src < self.nodes && dst < self.nodes && src != dst {
                return (self.scramble.apply(src), self.scramble.apply(dst));
            }
        }
    }

    /// A cell of the matrix, from the words of `key` after the first `words`.
    #[inline(always)]
    fn cell(&self, key: Key, words: &mut u64) -> (u64, u64) {
        let (mut src, mut dst) = (0u64, 0u64);
        let (mut word, mut halves) = (0u64, 0);
        let mut half = || {
            if halves == 0 {
                (word, halves) = (key.u64(*words), 2);
                *words += 1;
            }
            let half = word as u32;
            word >>= 32;
            halves -= 1;
            half
        };
        for _ in 0..self.full_lookups {
            let (s, d) = self.full.pick(half());
            (src, dst) = (src << LEVELS | s, dst << LEVELS | d);
        }
        if let Some(table) = &self.rest {
            let (s, d) = table.pick(half());
            (src, dst) = (src << table.levels | s, dst << table.levels | d);
        }
        (src, dst)
    }
}

impl EdgeFunction for RmatEdges {
    fn num_nodes(&self) -> u64 {
        self.nodes
    }

    fn num_draws(&self) -> u64 {
        self.draws
    }

    fn edges_per_draw(&self) -> u64 {
        1 + u64::from(self.symmetrize)
    }

    fn draw(&self, draws: Range<u64>, chunk: &mut EdgeChunk) {
        for i in draws {
            let (src, dst) = self.edge(i);
            chunk.src.push(src);
            chunk.dst.push(dst);
            if self.symmetrize {
                chunk.src.push(dst);
                chunk.dst.push(src);
            }
        }
    }
}

/// Draws several levels of the recursion at once by Walker's alias method: outcome `s·2^levels + d`
/// is a path of quadrants, the bits of `s` choosing rows and those of `d` columns.
#[derive(Debug, Clone)]
struct AliasTable {
    levels: u32,
    /// Threshold below which the entry itself is taken, and the outcome taken otherwise.
    entries: Vec<(u32, u32)>,
}

impl AliasTable {
    fn new(quadrants: [f64; 4], levels: u32) -> Self {
        let size = 1usize << (2 * levels);
        let weight = |outcome: usize| -> f64 {
            let quadrant =
                |level: u32| 2 * (outcome >> (levels + level) & 1) + (outcome >> level & 1);
            (0..levels).map(|l| quadrants[quadrant(l)]).product()
        };
        let mut share: Vec<f64> = (0..size).map(|o| weight(o) * size as f64).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..size).partition(|&o| share[o] < 1.0);
        let mut entries: Vec<(u32, u32)> = (0..size as u32).map(|o| (1 << FRACTION, o)).collect();
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            entries[s] = ((share[s] * f64::from(1 << FRACTION)) as u32, l as u32);
            share[l] -= 1.0 - share[s];
            if share[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self { levels, entries }
    }

    /// The rows and columns selected by 32 random bits.
    #[inline(always)]
    fn pick(&self, bits: u32) -> (u64, u64) {
        let index = (bits >> FRACTION) as usize & (self.entries.len() - 1);
        let (threshold, alias) = self.entries[index];
        let own = bits & ((1 << FRACTION) - 1) < threshold;
        let outcome = if own { index as u32 } else { alias };
        let mask = (1 << self.levels) - 1;
        ((outcome >> self.levels) as u64, (outcome & mask) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_draw_each_outcome_in_its_share() {
        let q = [0.57, 0.19, 0.19, 0.05];
        let table = AliasTable::new(q, 2);
        let mut counts = [0u32; 16];
        let key = Key::new(1);
        let draws = 200_000;
        for i in 0..draws {
            let (s, d) = table.pick(key.u64(i) as u32);
            counts[(s << 2 | d) as usize] += 1;
        }
        for s in 0..4usize {
            for d in 0..4usize {
                let p = q[2 * (s >> 1) + (d >> 1)] * q[2 * (s & 1) + (d & 1)];
                let (got, want) = (f64::from(counts[s << 2 | d]), p * draws as f64);
                assert!((got - want).abs() < 5.0 * want.sqrt() + 1.0, "{s},{d}: {got} for {want}");
            }
        }
    }

    #[test]
    fn ids_above_32_bits_are_drawn() {
        let options = RmatOptions { nodes: (1 << 33) + 5, edges: 1000, ..Default::default() };
        let edges = RmatEdges::new(&options).unwrap();
        let drawn: Vec<(u64, u64)> = (0..1000).map(|i| edges.edge(i)).collect();
        assert!(drawn.iter().all(|&(s, d)| s.max(d) < options.nodes && s != d));
        assert!(drawn.iter().any(|&(s, _)| s > 1 << 32));
    }

    #[test]
    fn impossible_options_are_refused() {
        let bad = |change: fn(&mut RmatOptions)| {
            let mut options = RmatOptions::default();
            change(&mut options);
            RmatEdges::new(&options).unwrap_err().to_string()
        };
        assert!(bad(|o| o.nodes = 1).contains("R-MAT nodes '1'"));
        assert!(bad(|o| o.a = 0.9).contains("invalid probabilities"));
        assert!(bad(|o| (o.a, o.b, o.c) = (0.9, 0.0, 0.0)).contains("self loops"));
    }
}
