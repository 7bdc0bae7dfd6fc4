//! The nodes that a layer is computed for.

use rayon::prelude::*;

use crate::layers::Layers;

/// Nodes of one type, with the place of each among them.
#[derive(Debug, Clone)]
pub struct Needed {
    nodes: usize,
    /// None if all are needed; else a bit per node, and the number of bits before each word.
    some: Option<(Vec<u64>, Vec<u32>)>,
    count: usize,
}

impl Needed {
    /// All of so many nodes.
    pub fn all(nodes: usize) -> Self {
        Self { nodes, some: None, count: nodes }
    }

    /// Some of so many nodes.
    ///
    /// # Panics
    /// If one of `wanted` is not below `nodes`.
    pub fn some(nodes: usize, wanted: &[u32]) -> Self {
        let mut bits = vec![0; nodes.div_ceil(64)];
        wanted.iter().for_each(|&node| bits[node as usize / 64] |= 1 << (node % 64));
        Self::of_bits(nodes, bits)
    }

    /// Those of so many nodes whose bits are set.
    fn of_bits(nodes: usize, bits: Vec<u64>) -> Self {
        let mut count = 0u32;
        let before = bits.iter().map(|word| {
            let first = count;
            count += word.count_ones();
            first
        });
        let before = before.collect();
        match count as usize {
            count if count == nodes => Self::all(nodes),
            count => Self { nodes, some: Some((bits, before)), count },
        }
    }

    /// Number of needed nodes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether no node is needed.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether all nodes are needed.
    pub fn is_all(&self) -> bool {
        self.some.is_none()
    }

    /// The place of a node among the needed ones; none if it is not one of them.
    #[inline]
    pub fn place(&self, node: u32) -> Option<usize> {
        let Some((bits, before)) = &self.some else {
            return ((node as usize) < self.nodes).then_some(node as usize);
        };
        let (word, bit) = (node as usize / 64, node % 64);
        let word_bits = *bits.get(word)?;
        let below = word_bits & ((1 << bit) - 1);
        (word_bits >> bit & 1 == 1).then(|| before[word] as usize + below.count_ones() as usize)
    }

    /// Calls `visit` with all needed nodes, in no order, on all threads.
    fn for_each(&self, visit: impl Fn(u32) + Sync) {
        let words = 0..self.nodes.div_ceil(64);
        words.into_par_iter().for_each(|word| {
            let nodes = (64 * word) as u32..(64 * (word + 1)).min(self.nodes) as u32;
            match &self.some {
                None => nodes.for_each(&visit),
                Some((bits, _)) => {
                    nodes.filter(|n| bits[word] >> (n % 64) & 1 == 1).for_each(&visit)
                }
            }
        });
    }

    /// The needed nodes, ascending.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.some {
            None => Box::new(0..self.nodes as u32),
            Some((bits, _)) => Box::new(bits.iter().enumerate().flat_map(|(word, &bits)| {
                let set =
                    std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
                let set = set.take_while(|&bits| bits != 0);
                set.map(move |bits| (64 * word) as u32 + bits.trailing_zeros())
            })),
        }
    }
}

/// The nodes of each type that each layer is computed for, the first layer first, where those of the last one are
/// `wanted`.
pub(crate) fn of_layers<L: Layers>(layers: &L, wanted: &[(usize, Vec<u32>)]) -> Vec<Vec<Needed>> {
    let counts = layers.num_nodes();
    let mut last: Vec<Vec<u64>> = counts.iter().map(|n| vec![0; n.div_ceil(64)]).collect();
    for (node_type, nodes) in wanted {
        nodes.iter().for_each(|&node| last[*node_type][node as usize / 64] |= 1 << (node % 64));
    }
    let of = |bits: Vec<Vec<u64>>| -> Vec<Needed> {
        counts.iter().zip(bits).map(|(&nodes, bits)| Needed::of_bits(nodes, bits)).collect()
    };
    let mut all = vec![of(last)];
    for layer in (1..layers.num_layers()).rev() {
        // The first of `all` so far is what this layer is computed for.
        let needed = all.last().map_or(&[][..], |needed| needed);
        let read = read_by(layers, layer, needed, &counts);
        all.push(of(read));
    }
    all.reverse();
    all
}

/// A bit for each node that a layer reads for the nodes `needed`.
fn read_by<L: Layers>(
    layers: &L,
    layer: usize,
    needed: &[Needed],
    counts: &[usize],
) -> Vec<Vec<u64>> {
    use std::sync::atomic::{AtomicU64, Ordering};
    let bits: Vec<Vec<AtomicU64>> =
        counts.iter().map(|n| (0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()).collect();
    for (node_type, needed) in needed.iter().enumerate() {
        needed.for_each(|node| {
            layers.inputs_of(layer, node_type, node, &mut |of, input| {
                let word = &bits[of][input as usize / 64];
                let bit = 1 << (input % 64);
                // Hubs are met over and over: a set bit is not written again.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            });
        });
    }
    let plain = |words: Vec<AtomicU64>| words.into_iter().map(AtomicU64::into_inner).collect();
    bits.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_the_nodes_before() {
        let mut bits = vec![0u64; 3];
        let set = [0u32, 5, 63, 64, 100, 129];
        set.iter().for_each(|&node| bits[node as usize / 64] |= 1 << (node % 64));
        let needed = Needed::of_bits(130, bits);
        assert_eq!(needed.len(), set.len());
        assert_eq!(needed.iter().collect::<Vec<_>>(), set);
        for node in 0..140 {
            assert_eq!(needed.place(node), set.iter().position(|&s| s == node), "{node}");
        }
    }

    #[test]
    fn all_nodes_need_no_bits() {
        let needed = Needed::of_bits(70, vec![u64::MAX, 63]);
        assert!(needed.is_all() && needed.len() == 70);
        assert_eq!((needed.place(69), needed.place(70)), (Some(69), None));
        assert_eq!(needed.iter().count(), 70);
    }
}
