//! Training edges in the order of buckets: those between two classes of nodes one after the other, so that the embeddings of
//! few nodes are in use at a time (PyTorch-BigGraph, Lerer et al., MLSys 2019, section 4.1; MariusGNN, Waleffe et al.,
//! EuroSys 2023, section 5). Classes are ranges of ids.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::rng::Key;

use crate::data::target_edges::TargetEdges;

/// The bucket of each training edge.
pub(crate) struct Buckets {
    classes: usize,
    /// Number of nodes.
    nodes: u64,
    /// The pair of classes of each edge, by its number.
    of: Vec<u16>,
}

/// Edges in the order of an epoch.
pub(crate) struct Ordered {
    /// Numbers of the edges.
    pub edges: Vec<u32>,
    /// Positions where buckets begin, and the nodes that the next one has besides those of this one.
    pub ahead: Vec<(usize, Range<u64>)>,
}

impl Buckets {
    /// Sorts the endpoints of `edges` into `classes` classes of `nodes` nodes.
    ///
    /// # Errors
    /// If a part does not reply.
    pub fn new(classes: usize, nodes: usize, edges: &dyn TargetEdges) -> Result<Self> {
        let mut found = Self { classes, nodes: nodes as u64, of: vec![0; edges.count()] };
        edges.scan(&mut |numbers, some| {
            for ((&number, &head), &tail) in numbers.iter().zip(&some.heads).zip(&some.tails) {
                let pair = found.pair(found.class(head), found.class(tail));
                found.of[number as usize] = pair;
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The class of a node.
    fn class(&self, node: u32) -> usize {
        (u64::from(node) * self.classes as u64 / self.nodes) as usize
    }

    /// The nodes of a class.
    fn nodes_of(&self, class: usize) -> Range<u64> {
        let first = |class: usize| (class as u64 * self.nodes).div_ceil(self.classes as u64);
        first(class)..first(class + 1)
    }

    /// The number of an unordered pair of classes.
    fn pair(&self, a: usize, b: usize) -> u16 {
        let (low, high) = (a.min(b), a.max(b));
        (high * (high + 1) / 2 + low) as u16
    }

    /// Pairs of classes in the order of an epoch: those of one class after the other, which changes its partners forth and
    /// back, so that each pair but at most one shares a class with the one before.
    fn pairs(&self, key: Key) -> Vec<[usize; 2]> {
        let mut classes: Vec<usize> = (0..self.classes).collect();
        key.shuffle(&mut classes);
        let mut pairs = Vec::new();
        for (i, &class) in classes.iter().enumerate() {
            let partners = &classes[i..];
            match i % 2 {
                0 => pairs.extend(partners.iter().map(|&other| [class, other])),
                _ => {
                    pairs.extend(partners.iter().rev().map(|&other| [class, other]));
                    // The last partner is the class that comes next.
                    if let [.., _, before, last] = &mut pairs[..]
                        && partners.len() > 2
                    {
                        std::mem::swap(before, last);
                    }
                }
            }
        }
        pairs
    }

    /// Some edges in the order of an epoch: pairs of classes at random, the edges of a pair at random.
    pub fn order(&self, edges: impl Iterator<Item = u32> + Clone, key: Key) -> Ordered {
        let pairs = self.pairs(key.with(0));
        let mut place = vec![0; pairs.len()];
        for (i, &[a, b]) in pairs.iter().enumerate() {
            place[usize::from(self.pair(a, b))] = i;
        }
        let mut starts = vec![0; pairs.len() + 1];
        for edge in edges.clone() {
            starts[place[usize::from(self.of[edge as usize])] + 1] += 1;
        }
        for i in 0..pairs.len() {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut order = vec![0; starts[pairs.len()]];
        for edge in edges {
            let next = &mut next[place[usize::from(self.of[edge as usize])]];
            order[*next] = edge;
            *next += 1;
        }
        for (i, bounds) in starts.windows(2).enumerate() {
            key.with(1 + i as u64).shuffle(&mut order[bounds[0]..bounds[1]]);
        }
        let new = |i: usize| {
            let (now, next) = (pairs[i], pairs.get(i + 1)?);
            let class = next.iter().find(|class| !now.contains(class))?;
            Some((starts[i], self.nodes_of(*class)))
        };
        let ahead = (0..pairs.len()).filter_map(new).collect();
        Ordered { edges: order, ahead }
    }
}

#[cfg(test)]
mod tests {
    use gnarl_graph::triples::Triples;

    use super::*;
    use crate::data::target_edges::EdgesInMemory;

    fn edges() -> EdgesInMemory {
        let mut edges = Triples::default();
        let key = Key::new(5);
        (0..400).for_each(|i| {
            edges.push(key.below(2 * i, 50) as u32, 0, key.below(2 * i + 1, 50) as u32)
        });
        EdgesInMemory::new(edges)
    }

    #[test]
    fn every_edge_is_there_once_and_pairs_share_a_class() {
        let edges = edges();
        for classes in [1, 2, 7, 50] {
            let buckets = Buckets::new(classes, 50, &edges).unwrap();
            for class in 0..classes {
                assert!(buckets.nodes_of(class).all(|node| buckets.class(node as u32) == class));
            }
            assert_eq!(buckets.nodes_of(classes - 1).end, 50);
            let pairs = buckets.pairs(Key::new(3));
            assert_eq!(pairs.len(), classes * (classes + 1) / 2);
            let apart = |two: &&[[usize; 2]]| two[0].iter().all(|class| !two[1].contains(class));
            assert!(pairs.windows(2).filter(apart).count() <= 1, "{pairs:?}");
            let Ordered { edges: order, ahead } = buckets.order(0..400, Key::new(3));
            let of: Vec<u16> = order.iter().map(|&edge| buckets.of[edge as usize]).collect();
            let runs = of.chunk_by(|a, b| a == b).count();
            let mut distinct = of.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(runs, distinct.len(), "a bucket is in one piece");
            assert!(ahead.is_sorted_by_key(|(first, _)| *first));
            let mut all = order.clone();
            all.sort_unstable();
            assert_eq!(all, (0..400).collect::<Vec<u32>>());
            assert_ne!(order, buckets.order(0..400, Key::new(4)).edges);
        }
    }
}
