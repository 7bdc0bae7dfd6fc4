//! Layer-neighbour sampling with one random number a source (Balin and Çatalyürek, NeurIPS 2023,
//! section 3.2: LABOR-0, with a fixed number of neighbours as in their appendix on sequential
//! Poisson sampling).

use gnarl_graph::Result;
use gnarl_graph::prefetch::item as prefetch;
use gnarl_graph::rng::Key;

use crate::graph::View;
use crate::neighbors::{Choose, Fanouts, sample};
use crate::{MiniBatch, SampleGraph, Sampler, Scratch};

/// For every node at every hop, the in-neighbours with the smallest random numbers, where a
/// neighbour has one number for the whole batch.
///
/// For a single node that is a uniform sample without replacement, as [`UniformSampler`]'s; but
/// destinations with common neighbours agree on them, and later hops on those of earlier ones. So a
/// batch has fewer nodes: fewer rows to fetch and to multiply for the same number of edges. Time is
/// proportional to the degrees.
///
/// The numbers depend on the key and the source's dataset id. Give each batch a key of its own, or
/// the neighbours with large numbers are left out of a whole epoch.
///
/// [`UniformSampler`]: crate::UniformSampler
#[derive(Debug, Clone)]
pub struct LaborSampler {
    fanouts: Fanouts,
}

impl LaborSampler {
    /// `fanouts[0]` in-neighbours of each seed, `fanouts[1]` of each node reached so far (seeds
    /// included), and so on; -1 takes all. As many blocks as fan-outs.
    ///
    /// # Errors
    /// If there are no fan-outs, or one is neither positive nor -1.
    pub fn new(fanouts: &[i64]) -> Result<Self> {
        Ok(Self { fanouts: Fanouts::new(fanouts)? })
    }
}

impl Sampler for LaborSampler {
    fn name(&self) -> &'static str {
        "labor"
    }

    fn sample(
        &self,
        graph: &SampleGraph,
        seeds: &[u32],
        key: Key,
        scratch: &mut Scratch,
    ) -> Result<MiniBatch> {
        let ranks = Ranks { hash: Hash::new(key), numbers: Vec::new(), positions: Vec::new() };
        sample(graph, seeds, &self.fanouts, ranks, scratch)
    }
}

/// A random 32-bit number for each dataset id.
#[derive(Clone, Copy)]
struct Hash {
    before: u32,
    between: u32,
}

impl Hash {
    fn new(key: Key) -> Self {
        let bits = key.u64(0);
        Self { before: bits as u32, between: (bits >> 32) as u32 }
    }

    /// The numbers of `sources`.
    #[inline(always)]
    fn all(self, view: View<'_>, sources: &[u32], numbers: &mut [u32; LANES]) {
        match (view.ids, <&[u32; LANES]>::try_from(sources)) {
            (None, Ok(sources)) => {
                for (number, &source) in numbers.iter_mut().zip(sources) {
                    *number = self.of(u64::from(source));
                }
            }
            (None, Err(_)) => {
                for (number, &source) in numbers.iter_mut().zip(sources) {
                    *number = self.of(u64::from(source));
                }
            }
            (Some(ids), _) => {
                for (number, &source) in numbers.iter_mut().zip(sources) {
                    // A source outside the graph is reported when its edge is looked up.
                    *number = self.of(ids.get(source as usize).copied().unwrap_or(u64::MAX));
                }
            }
        }
    }

    /// Two rounds of multiply and shift, each keyed; ids below 2^32 never collide.
    #[inline(always)]
    fn of(self, id: u64) -> u32 {
        let mut x = (id as u32) ^ ((id >> 32) as u32).wrapping_mul(0x9e37_79b9) ^ self.before;
        x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
        x = (x ^ (x >> 15) ^ self.between).wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    }
}

/// Finds the smallest numbers of a list.
struct Ranks {
    hash: Hash,
    /// The small numbers of a list, in its order, with spare room behind them.
    numbers: Vec<u32>,
    positions: Vec<u32>,
}

/// Numbers made at a time, so that the hashing is free of branches.
const LANES: usize = 32;

impl Ranks {
    /// Finds the numbers that are at most `limit`; returns how many there are.
    fn scan(&mut self, view: View<'_>, sources: &[u32], limit: u32) -> usize {
        // Room for all, so that each is written first and kept or overwritten after: a branch
        // would be mispredicted at every other edge of a short list.
        if self.numbers.len() < sources.len() + LANES {
            let room = (sources.len() + LANES).next_power_of_two();
            self.numbers.resize(room, 0);
            self.positions.resize(room, 0);
        }
        let mut found = 0;
        let mut fresh = [0u32; LANES];
        for (block, chunk) in sources.chunks(LANES).enumerate() {
            self.hash.all(view, chunk, &mut fresh);
            let numbers = &mut self.numbers[found..found + LANES];
            let positions = &mut self.positions[found..found + LANES];
            let mut kept = 0;
            for (lane, &number) in fresh[..chunk.len()].iter().enumerate() {
                numbers[kept & (LANES - 1)] = number;
                positions[kept & (LANES - 1)] = (block * LANES + lane) as u32;
                kept += usize::from(number <= limit);
            }
            found += kept;
        }
        found
    }

    /// The positions of the `out.len()` smallest of `found` numbers, in the order of the list.
    /// Equal numbers, those of repeated edges, count in the same order.
    #[cold]
    fn take_sorted(&self, found: usize, out: &mut [u32]) {
        let pair = |(&number, &position)| (number, position);
        let mut order: Vec<(u32, u32)> =
            self.numbers[..found].iter().zip(&self.positions).map(pair).collect();
        order.sort_unstable();
        for (position, &(_, found)) in out.iter_mut().zip(&order) {
            *position = found;
        }
        out.sort_unstable();
    }

    /// The first `out.len()` positions whose numbers are at most `limit`.
    fn take(&self, found: usize, limit: u32, out: &mut [u32]) {
        let mut taken = 0;
        for (&number, &position) in self.numbers[..found].iter().zip(&self.positions[..found]) {
            if taken == out.len() {
                break;
            }
            out[taken] = position;
            taken += usize::from(number <= limit);
        }
    }
}

/// A number that about `wanted` and a margin of `degree` numbers do not exceed.
fn likely_limit(wanted: usize, degree: u32) -> u32 {
    let wanted = wanted as f64;
    let share = (wanted + 2.0 * wanted.sqrt() + 2.0) / f64::from(degree);
    (share * f64::from(u32::MAX)) as u32
}

/// A number that exactly `wanted` of `numbers` do not exceed, if there is one. All are at most
/// `limit`, and at least `wanted`. They are uniform, so interpolation finds it in a few passes
/// without branches, where a sort would mispredict most of its own.
fn exact_limit(numbers: &[u32], limit: u32, wanted: usize) -> Option<u32> {
    if numbers.len() == wanted {
        return Some(limit);
    }
    let (mut low, mut high) = ((0u32, 0usize), (limit, numbers.len()));
    for _ in 0..16 {
        let share = (wanted as f32 - low.1 as f32 + 0.5) / (high.1 as f32 - low.1 as f32 + 1.0);
        let middle = low.0 + ((high.0 - low.0) as f32 * share) as u32;
        let count = numbers.iter().map(|&number| u32::from(number <= middle)).sum::<u32>();
        match (count as usize).cmp(&wanted) {
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Less => low = (middle, count as usize),
            std::cmp::Ordering::Greater => high = (middle.min(high.0), count as usize),
        }
    }
    None
}

impl Choose for Ranks {
    #[inline]
    fn announce(&self, view: View<'_>, (start, degree): (usize, u32)) {
        for line in (0..degree.min(128) as usize).step_by(16) {
            prefetch(view.indices, start + line);
        }
    }

    fn choose(
        &mut self,
        view: View<'_>,
        _: u32,
        (start, degree): (usize, u32),
        _: &mut Scratch,
        out: &mut [u32],
    ) {
        let sources = &view.indices[start..start + degree as usize];
        let mut limit = likely_limit(out.len(), degree);
        let mut found = self.scan(view, sources, limit);
        if found < out.len() {
            limit = u32::MAX;
            found = self.scan(view, sources, limit);
        }
        match exact_limit(&self.numbers[..found], limit, out.len()) {
            Some(limit) => self.take(found, limit, out),
            None => self.take_sorted(found, out),
        }
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
