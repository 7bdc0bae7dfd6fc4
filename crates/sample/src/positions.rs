//! Positions of the nodes of a batch.

use gnarl_common::prefetch::item as prefetch;
use gnarl_common::rng::mix;
use hashbrown::HashTable;

/// Graphs of more nodes have their batches hashed, which also takes less time from here on, as a table is outside all caches:
/// 14 ns an edge instead of 22 at 16 million nodes and 400,000 edges a batch, 6 instead of 19 at 20,000 edges (at four million
/// nodes 12 and 12, 6 and 9; at one million 15 instead of 9).
const TABLE: usize = 1 << 22;

/// The nodes of a batch in order of first appearance, and where each of them is.
///
/// Small graphs have a table with an entry per node, by a sparse set: node `v` is at position `table[v]` if that is below
/// `count` and `nodes[table[v]] == v`. So nothing is cleared between batches. Large graphs have a hash of the batch's nodes
/// alone until it would exceed the table, so that memory follows the batch and not the graph.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// Position of each local node, meaningful only if confirmed by `nodes`.
    table: Vec<u32>,
    /// Positions by the hash of their nodes, where there is no table.
    hashed: HashTable<u32>,
    is_hashed: bool,
    /// Nodes of the graph.
    of: usize,
    /// The batch's nodes; holds at least `count + 1` values.
    nodes: Vec<u32>,
    count: usize,
}

impl Positions {
    /// Clears the batch and makes room for a graph of `of` nodes.
    pub fn clear(&mut self, of: usize) {
        self.clear_with(of, TABLE);
    }

    /// Clears the batch likewise, with a hash for graphs of more than `largest` nodes.
    pub fn clear_with(&mut self, of: usize, largest: usize) {
        self.count = 0;
        self.of = of;
        // A table that is there is used: an earlier batch was large.
        self.is_hashed = of > largest && self.table.len() < of;
        if self.is_hashed {
            self.hashed.clear();
        } else {
            self.cover();
        }
    }

    /// A table with an entry for each node of the graph.
    fn cover(&mut self) {
        if self.table.len() < self.of {
            self.table.resize(self.of, 0);
        }
    }

    /// The batch's nodes so far.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes[..self.count]
    }

    /// Makes room for `more` new nodes.
    pub fn reserve(&mut self, more: usize) {
        let needed = self.count + more + 1;
        if self.nodes.len() < needed {
            self.nodes.resize(needed.next_power_of_two(), 0);
        }
    }

    /// Prefetches the cache line that [`Positions::insert_all`] needs for `node`.
    #[inline(always)]
    pub fn hint(&self, node: u32) {
        if !self.is_hashed {
            prefetch(&self.table, node as usize);
        }
    }

    /// Replaces nodes by their positions, appending those not met before. All must be nodes of the
    /// graph, and room reserved.
    #[inline]
    pub fn insert_all(&mut self, ids: &mut [u32]) {
        assert!(self.count + ids.len() < self.nodes.len());
        if self.is_hashed && !self.fits(ids.len()) {
            self.turn_into_table();
        }
        match self.is_hashed {
            true => self.insert_hashed(ids),
            false => self.insert_in_table(ids),
        }
    }

    #[inline]
    fn insert_in_table(&mut self, ids: &mut [u32]) {
        let table = &mut self.table[..];
        let nodes = &mut self.nodes[..];
        let mut count = self.count;
        for id in ids {
            // Without branches, which half the edges would mispredict: write the node at the end,
            // look where the table says (a stale entry leads to the end), keep whichever matches.
            let node = *id;
            let slot = &mut table[node as usize];
            nodes[count] = node;
            let guess = (*slot as usize).min(count);
            let position = if nodes[guess] == node { guess } else { count };
            *slot = position as u32;
            *id = position as u32;
            count += usize::from(position == count);
        }
        self.count = count;
    }

    fn insert_hashed(&mut self, ids: &mut [u32]) {
        let Self { hashed, nodes, count, .. } = self;
        for id in ids {
            let node = *id;
            let equal = |&at: &u32| nodes[at as usize] == node;
            let entry = hashed.entry(hash(node), equal, |&at| hash(nodes[at as usize]));
            let position = *entry.or_insert(*count as u32).get();
            if position as usize == *count {
                nodes[*count] = node;
                *count += 1;
            }
            *id = position;
        }
    }

    /// True if a hash of `more` further nodes is not larger than the table.
    fn fits(&self, more: usize) -> bool {
        // Five bytes a slot, and between 8/7 and 16/7 slots a node.
        (self.count + more).saturating_mul(5 * 16 / 7) <= self.of * size_of::<u32>()
    }

    #[cold]
    fn turn_into_table(&mut self) {
        self.hashed = HashTable::new();
        self.is_hashed = false;
        self.cover();
        for (position, &node) in self.nodes[..self.count].iter().enumerate() {
            self.table[node as usize] = position as u32;
        }
    }

    /// Position of `node` in the batch, if it is there.
    #[inline(always)]
    pub fn position(&self, node: u32) -> Option<u32> {
        if self.is_hashed {
            let equal = |&at: &u32| self.nodes[at as usize] == node;
            return self.hashed.find(hash(node), equal).copied();
        }
        let slot = self.table[node as usize];
        let here = (slot as usize) < self.count && self.nodes[slot as usize] == node;
        here.then_some(slot)
    }
}

#[inline(always)]
fn hash(node: u32) -> u64 {
    mix(u64::from(node))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Positions and nodes after inserting `pieces`, for a graph of 1000 nodes.
    fn inserted(positions: &mut Positions, largest: usize, pieces: &[Vec<u32>]) -> Vec<Vec<u32>> {
        positions.clear_with(1000, largest);
        let mut all = Vec::new();
        for piece in pieces {
            let mut ids = piece.clone();
            positions.reserve(ids.len());
            positions.insert_all(&mut ids);
            all.push(ids);
        }
        all.push(positions.nodes().to_vec());
        let found = (0..1000).map(|node| positions.position(node).unwrap_or(u32::MAX));
        all.push(found.collect());
        all
    }

    proptest! {
        #[test]
        fn a_hash_has_the_positions_of_a_table(
            batches in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u32..1000, 0..150), 0..5), 1..5),
        ) {
            let (mut table, mut hash) = (Positions::default(), Positions::default());
            for pieces in batches {
                let expected = inserted(&mut table, 1000, &pieces);
                prop_assert_eq!(inserted(&mut hash, 10, &pieces), expected);
            }
        }
    }

    #[test]
    fn a_large_batch_turns_its_hash_into_a_table() {
        let mut positions = Positions::default();
        inserted(&mut positions, 10, &[vec![1, 2, 3]]);
        assert!(positions.is_hashed && positions.table.is_empty());
        inserted(&mut positions, 10, &[vec![7], (0..1000).collect()]);
        assert!(!positions.is_hashed);
        assert_eq!(positions.position(7), Some(0));
        assert_eq!(positions.position(8), Some(8));
    }
}
