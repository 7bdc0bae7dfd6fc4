//! The nodes that a layer is computed for.

use gnarl_common::Result;
use rayon::prelude::*;

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
    pub(crate) fn of_bits(nodes: usize, bits: Vec<u64>) -> Self {
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

    /// Calls `visit` with the needed nodes of ranges of about `each`, in no order, on all threads.
    ///
    /// # Errors
    /// Those of `visit`.
    pub(crate) fn for_each(
        &self,
        each: usize,
        visit: impl Fn(&[u32]) -> Result<()> + Sync,
    ) -> Result<()> {
        let words = each.div_ceil(64);
        let ranges = 0..self.nodes.div_ceil(64 * words);
        ranges.into_par_iter().try_for_each(|range| {
            let nodes = 64 * words * range..(64 * words * (range + 1)).min(self.nodes);
            let nodes = nodes.map(|node| node as u32);
            let some: Vec<u32> = match &self.some {
                None => nodes.collect(),
                Some((bits, _)) => {
                    nodes.filter(|n| bits[*n as usize / 64] >> (n % 64) & 1 == 1).collect()
                }
            };
            if some.is_empty() { Ok(()) } else { visit(&some) }
        })
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
