//! Random numbers of nodes.

use gnarl_common::rng::Key;
use gnarl_graph::NarrowSlice;

use crate::lanes::{LANES, Lanes};
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
            // Numbers past the end of the list are wasted, but loops of known length are faster.
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
            // Looked up first, so that the loop over numbers is one of vectors.
            (Some(NarrowSlice::U32(ids)), Some(nodes)) => {
                let known = nodes.map(|node| ids.get(node as usize).copied().unwrap_or(u32::MAX));
                for (number, id) in numbers.iter_mut().zip(known) {
                    *number = self.of(u64::from(id));
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

    /// The number of an edge from `source` at a time, of which `repeat` equal ones come before it.
    #[inline(always)]
    pub fn of_event(self, source: u64, time: i64, repeat: u32) -> u32 {
        let first = Self { before: self.of(source), ..self }.of(time as u64);
        if repeat == 0 { first } else { Self { before: first, ..self }.of(repeat.into()) }
    }

    /// As [`Hash::all`] for the sources of a list's edges from `from` on, where the second and later
    /// of equal edges have numbers of their own.
    #[inline(always)]
    pub fn all_edges(
        self,
        view: View<'_>,
        list: (usize, u32),
        from: usize,
        numbers: &mut [u32; LANES],
    ) {
        self.all(view, list, from, numbers);
        let edges = &view.indices[list.0..list.0 + list.1 as usize];
        for lane in repeats(view, list, from) {
            let (before, source) = edges.split_at(from + lane);
            let earlier = before.iter().rev().take_while(|&&s| s == source[0]).count();
            numbers[lane] = Self { before: numbers[lane], ..self }.of(earlier as u64);
        }
    }
}

/// Those of the edges `from..from + LANES` that equal the edge before them in their list.
#[inline(always)]
fn repeats(view: View<'_>, list: (usize, u32), from: usize) -> Lanes {
    let start = list.0 + from;
    let here = view.indices[start..].first_chunk::<LANES>();
    let before = start.checked_sub(1).and_then(|at| view.indices[at..].first_chunk::<LANES>());
    let equal = match (here, before) {
        (Some(here), Some(before)) => Lanes::that(|lane| here[lane] == before[lane]),
        // At the ends of the whole array.
        _ => Lanes::that(|lane| {
            let pair = (start + lane).checked_sub(1).and_then(|at| view.indices.get(at..at + 2));
            pair.is_some_and(|pair| pair[0] == pair[1])
        }),
    };
    let equal = equal.and(Lanes::of_list(list, from));
    if from > 0 { equal } else { equal.without(Lanes::first(1)) }
}

#[cfg(test)]
mod tests {
    use gnarl_graph::Csc;

    use super::*;
    use crate::SampleGraph;

    #[test]
    fn numbers_of_neighboring_ids_and_keys_are_unrelated() {
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

    #[test]
    fn repeated_edges_have_numbers_of_their_own_wherever_lists_begin_and_end() {
        // Lists of 0 to 89 edges, of which some repeat, also from one list to the next.
        let key = Key::new(7);
        let edges: Vec<(u32, u32)> = (0..90u32)
            .flat_map(|dst| {
                (0..dst).map(move |i| (key.with(dst.into()).below(i.into(), 30) as u32, dst))
            })
            .collect();
        let graph = SampleGraph::new(Csc::from_edges(90, &edges)).unwrap();
        let (view, hash) = (graph.view(), Hash::new(Key::new(1)));
        for dst in 0..90 {
            let list = view.list(dst).unwrap();
            let sources = graph.csc().sources(dst);
            let mut expected: Vec<u32> = Vec::new();
            for (i, &source) in sources.iter().enumerate() {
                let first = sources.iter().position(|&s| s == source).unwrap();
                let number = hash.of(source.into());
                let again = Hash { before: number, ..hash }.of((i - first) as u64);
                expected.push(if i == first { number } else { again });
            }
            for from in (0..sources.len()).step_by(LANES) {
                let (mut numbers, left) = ([0; LANES], LANES.min(sources.len() - from));
                hash.all_edges(view, list, from, &mut numbers);
                assert_eq!(numbers[..left], expected[from..from + left], "list {dst} from {from}");
            }
        }
    }
}
