//! Training edges by buckets: those between two classes of nodes one after the other, so that the embeddings of few nodes are
//! in use at a time (PyTorch-BigGraph, Lerer et al., MLSys 2019, section 4.1; MariusGNN, Waleffe et al., EuroSys 2023,
//! section 5). Classes are ranges of ids.
//!
//! The edges themselves are copied in the order of buckets, in memory or in a mapped file, which an epoch reads a bucket at a
//! time.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{BufMut, Home, IdMap, Result};
use gnarl_graph::triples::Triples;

use crate::data::batch::{BatchSpec, Shuffled, Uses};
use crate::data::target_edges::{TargetBatch, TargetEdges};

/// Training edges by buckets.
pub(crate) struct Buckets {
    /// Bounds of the buckets among `edges`, by the number of a pair of classes.
    bounds: Vec<usize>,
    /// Number, head, relation and tail of each edge; the edges of a bucket ascend by number.
    edges: BufMut<[u32; 4]>,
    classes: Classes,
}

/// Classes of nodes: ranges of ids.
#[derive(Clone, Copy)]
struct Classes {
    count: usize,
    nodes: u64,
}

impl Classes {
    /// The class of a node.
    fn of(self, node: u32) -> usize {
        (u64::from(node) * self.count as u64 / self.nodes) as usize
    }

    /// The nodes of a class.
    fn nodes(self, class: usize) -> Range<u64> {
        let first = |class: usize| (class as u64 * self.nodes).div_ceil(self.count as u64);
        first(class)..first(class + 1)
    }

    /// Number of unordered pairs of classes.
    fn pairs(self) -> usize {
        self.count * (self.count + 1) / 2
    }

    /// Pairs of classes in the order of an epoch: those of one class after the other, which changes its partners forth and
    /// back, so that each pair but at most one shares a class with the one before.
    fn order(self, key: Key) -> Vec<[usize; 2]> {
        let mut classes: Vec<usize> = (0..self.count).collect();
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
}

/// The number of an unordered pair of classes.
fn pair(a: usize, b: usize) -> usize {
    let (low, high) = (a.min(b), a.max(b));
    high * (high + 1) / 2 + low
}

/// A bucket in the order of an epoch.
pub(crate) struct Visit {
    /// Places of its edges, in random order.
    pub places: Arc<Shuffled>,
    /// The nodes of their endpoints.
    pub uses: Uses,
}

impl Buckets {
    /// Copies `edges` to `home` by pairs of `count` classes of `nodes` nodes.
    ///
    /// # Errors
    /// If a part does not reply, or the disk has no room.
    pub fn new(
        (count, nodes): (usize, usize),
        edges: &dyn TargetEdges,
        home: &Home,
    ) -> Result<Self> {
        let classes = Classes { count, nodes: nodes as u64 };
        let of = |head: u32, tail: u32| pair(classes.of(head), classes.of(tail));
        let mut bounds = vec![0; classes.pairs() + 1];
        edges.scan(&mut |_, some| {
            some.heads.iter().zip(&some.tails).for_each(|(&h, &t)| bounds[of(h, t) + 1] += 1);
            Ok(())
        })?;
        for pair in 0..classes.pairs() {
            bounds[pair + 1] += bounds[pair];
        }
        let mut sorted = BufMut::<[u32; 4]>::zeros(bounds[classes.pairs()], home)?;
        let mut next = bounds.clone();
        edges.scan(&mut |numbers, some| {
            let ends = some.heads.iter().zip(&some.relations).zip(&some.tails);
            for (&number, ((&head, &relation), &tail)) in numbers.iter().zip(ends) {
                let next = &mut next[of(head, tail)];
                sorted[*next] = [number, head, relation, tail];
                *next += 1;
            }
            Ok(())
        })?;
        // Parts hand over their edges in an order of their own.
        for bounds in bounds.windows(2) {
            let bucket = &mut sorted[bounds[0]..bounds[1]];
            if !bucket.is_sorted_by_key(|edge| edge[0]) {
                bucket.sort_unstable_by_key(|edge| edge[0]);
            }
        }
        Ok(Self { bounds, edges: sorted, classes })
    }

    /// The buckets in the order of an epoch.
    pub fn order(&self, key: Key) -> Vec<Visit> {
        let pairs = self.classes.order(key);
        let visit = |i: usize| {
            let now = pairs[i];
            let pair = pair(now[0], now[1]);
            let next = pairs.get(i + 1);
            let class = next.and_then(|next| next.iter().find(|class| !now.contains(class)));
            let places = self.bounds[pair] as u32..self.bounds[pair + 1] as u32;
            Visit {
                places: Arc::new(Shuffled::new(places, key.with(pair as u64))),
                uses: Uses {
                    now: now.map(|class| self.classes.nodes(class)).to_vec(),
                    ahead: class.map(|&class| self.classes.nodes(class)),
                },
            }
        };
        (0..pairs.len()).map(visit).collect()
    }

    /// The edges of a batch, whose examples are places; those of a part of `owner` one after the other, if there are parts.
    pub fn batch(&self, spec: &BatchSpec, owner: &IdMap) -> TargetBatch {
        if let Some(bucket) = spec.batch.begins() {
            self.edges.expect(bucket.start as usize..bucket.end as usize);
        }
        let some = spec.batch.iter().map(|&place| self.edges[place as usize]);
        let mut some: Vec<[u32; 4]> = some.collect();
        if !owner.is_empty() {
            some.sort_by_key(|edge| owner.part(edge[1] as usize));
        }
        let mut edges = Triples::default();
        some.iter().for_each(|&[_, head, relation, tail]| edges.push(head, relation, tail));
        TargetBatch {
            edges,
            places: some.iter().map(|edge| edge[0]).collect(),
            times: Vec::new(),
            share: spec.share.clone(),
            fetched: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::target_edges::EdgesInMemory;

    fn edges() -> EdgesInMemory {
        let mut edges = Triples::default();
        let node = |i: u64| Key::new(5).below(i, 50) as u32;
        (0..400).for_each(|i| edges.push(node(2 * i), i as u32 % 3, node(2 * i + 1)));
        EdgesInMemory::new(edges)
    }

    #[test]
    fn every_edge_is_there_once_and_pairs_share_a_class() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::Folder(dir.path().into());
        for count in [1, 2, 7, 50] {
            let buckets = Buckets::new((count, 50), &edges(), &home).unwrap();
            let classes = buckets.classes;
            for class in 0..count {
                assert!(classes.nodes(class).all(|node| classes.of(node as u32) == class));
            }
            assert_eq!(classes.nodes(count - 1).end, 50);
            let pairs = classes.order(Key::new(3));
            assert_eq!(pairs.len(), classes.pairs());
            let apart = |two: &&[[usize; 2]]| two[0].iter().all(|class| !two[1].contains(class));
            assert!(pairs.windows(2).filter(apart).count() <= 1, "{pairs:?}");
            let order = |seed| -> Vec<u32> {
                let visits = buckets.order(Key::new(seed));
                visits.iter().flat_map(|visit| visit.places.to_vec()).collect()
            };
            let mut all = order(3);
            assert_ne!(all, order(4));
            let spec = BatchSpec { batch: all.clone().into(), share: 0..9, ..BatchSpec::whole(1) };
            let batch = buckets.batch(&spec, &IdMap::default());
            let found = edges().all().unwrap().edges;
            for (place, &number) in batch.places.iter().enumerate() {
                let of = |all: &Triples, i: usize| [all.heads[i], all.relations[i], all.tails[i]];
                assert_eq!(of(&batch.edges, place), of(&found, number as usize));
            }
            let pairs = batch.edges.heads.iter().zip(&batch.edges.tails);
            let pairs: Vec<usize> =
                pairs.map(|(&h, &t)| pair(classes.of(h), classes.of(t))).collect();
            let mut distinct = pairs.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let runs = pairs.chunk_by(|a, b| a == b).count();
            assert_eq!(runs, distinct.len(), "a bucket is in one piece");
            all.sort_unstable();
            assert_eq!(all, (0..400).collect::<Vec<u32>>());
        }
    }
}
