//! Training edges by buckets: those between two classes of nodes one after the other, so that the embeddings of few nodes are
//! in use at a time (PyTorch-BigGraph, Lerer et al., MLSys 2019, section 4.1; MariusGNN, Waleffe et al., EuroSys 2023,
//! section 5). Classes are ranges of ids.
//!
//! The edges themselves are copied in the order of buckets, in memory or in a mapped file, which an epoch reads a bucket at a
//! time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{BufMut, Home, IdMap, Result};
use gnarl_config::SampleSection;
use gnarl_graph::triples::Triples;
use gnarl_store::embedding::Nodes;

use crate::data::batch::{BatchSpec, Shuffled, Uses};
use crate::data::resident::visits;
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
pub(crate) struct Classes {
    count: usize,
    nodes: u64,
    /// Classes in memory at a time.
    in_memory: usize,
}

/// A pair of classes in the order of an epoch.
struct Meeting {
    pair: [usize; 2],
    /// Classes in memory, these two among them.
    now: Vec<usize>,
    /// The class that comes into memory next.
    next: Option<usize>,
}

impl Classes {
    /// Those of `sample`, of so many nodes.
    pub fn new(sample: &SampleSection, nodes: usize) -> Self {
        let in_memory = sample.buckets_in_memory.min(sample.buckets);
        Self { count: sample.buckets, nodes: nodes as u64, in_memory }
    }

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

    /// Pairs of classes in the order of an epoch.
    fn order(self, key: Key) -> Vec<Meeting> {
        match self.in_memory {
            0..=2 => self.by_twos(key),
            _ => self.by_visits(key),
        }
    }

    /// With two classes in memory: pairs of one class after the other, which changes its partners forth and back, so that each
    /// pair but at most one shares a class with the one before.
    fn by_twos(self, key: Key) -> Vec<Meeting> {
        let pairs = self.back_and_forth(key);
        let meeting = |i: usize| {
            let pair: [usize; 2] = pairs[i];
            let next = pairs.get(i + 1);
            let next = next.and_then(|next| next.iter().find(|class| !pair.contains(class)));
            Meeting { pair, now: pair.to_vec(), next: next.copied() }
        };
        (0..pairs.len()).map(meeting).collect()
    }

    /// With more of them: one class at a time gives way to another one, in the order of Marius (BETA), and each newcomer meets
    /// those that are there, in random order. Rows are read and written once for many pairs.
    fn by_visits(self, key: Key) -> Vec<Meeting> {
        let mut classes: Vec<usize> = (0..self.count).collect();
        key.shuffle(&mut classes);
        let visits = visits(self.count, self.in_memory);
        let visits: Vec<Vec<usize>> = visits
            .into_iter()
            .map(|visit| visit.into_iter().map(|number| classes[number]).collect())
            .collect();
        let mut met = BTreeSet::new();
        let mut meetings = Vec::new();
        for (number, now) in visits.iter().enumerate() {
            let both = now.iter().flat_map(|&a| now.iter().map(move |&b| [a.min(b), a.max(b)]));
            let mut pairs: Vec<[usize; 2]> = both.filter(|&pair| met.insert(pair)).collect();
            pairs.sort_unstable();
            key.with(number as u64).shuffle(&mut pairs);
            let following = visits.get(number + 1).into_iter().flatten();
            let next = following.copied().find(|class| !now.contains(class));
            // From the first pair on: the last one alone is too short to read a class meanwhile.
            let meeting = |pair| Meeting { pair, now: now.clone(), next };
            meetings.extend(pairs.into_iter().map(meeting));
        }
        meetings
    }

    /// Each class with those that come after it, forth and back by turns.
    fn back_and_forth(self, key: Key) -> Vec<[usize; 2]> {
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
    /// Copies `edges` to `home` by pairs of `classes`.
    ///
    /// # Errors
    /// If a part does not reply, or the disk has no room.
    pub fn new(classes: Classes, edges: &dyn TargetEdges, home: &Home) -> Result<Self> {
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
        let nodes = |class: usize| Nodes::Ids(self.classes.nodes(class));
        let visit = |Meeting { pair: [a, b], now, next }| {
            let pair = pair(a, b);
            let places = self.bounds[pair] as u32..self.bounds[pair + 1] as u32;
            Visit {
                places: Arc::new(Shuffled::new(places, key.with(pair as u64))),
                uses: Uses {
                    now: now.into_iter().map(nodes).collect(),
                    ahead: next.into_iter().map(nodes).collect(),
                },
            }
        };
        self.classes.order(key).into_iter().map(visit).collect()
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
        for (count, in_memory) in
            [(1, 2), (2, 2), (7, 2), (50, 2), (7, 3), (7, 4), (50, 12), (5, 9)]
        {
            let sample = SampleSection {
                buckets: count,
                buckets_in_memory: in_memory,
                ..SampleSection::default()
            };
            let buckets = Buckets::new(Classes::new(&sample, 50), &edges(), &home).unwrap();
            let classes = buckets.classes;
            for class in 0..count {
                assert!(classes.nodes(class).all(|node| classes.of(node as u32) == class));
            }
            assert_eq!(classes.nodes(count - 1).end, 50);
            let meetings = classes.order(Key::new(3));
            assert_eq!(meetings.len(), classes.pairs());
            let fits = |now: &[usize]| now.len() <= in_memory.max(2);
            assert!(meetings.iter().all(|meeting| fits(&meeting.now)));
            let both = |meeting: &Meeting| meeting.pair.iter().all(|c| meeting.now.contains(c));
            assert!(meetings.iter().all(both));
            let new = |two: &[Meeting]| -> Vec<usize> {
                let now = two[1].now.iter().copied();
                now.filter(|class| !two[0].now.contains(class)).collect()
            };
            let news: Vec<Vec<usize>> = meetings.windows(2).map(new).collect();
            // One class at a time, but for the pair that shares none with the one before.
            let several = |two: &[Meeting]| new(two).iter().collect::<BTreeSet<_>>().len() > 1;
            assert!(meetings.windows(2).filter(|two| several(two)).count() <= 1);
            let read = news.iter().filter(|new| !new.is_empty()).count();
            if in_memory == 12 {
                // Of 1,275 pairs: all but twelve classes meet twelve, eleven leave for others, and so on.
                assert!(read < 150, "{read} classes read");
            }
            let mut before = meetings.iter().zip(&news).filter(|(_, new)| !new.is_empty());
            assert!(before.all(|(meeting, new)| meeting.next == Some(new[0])));
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
