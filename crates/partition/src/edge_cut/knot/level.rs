//! A graph of the hierarchy: neighbor lists and node weights.

use std::ops::Range;
use std::path::Path;

use gnarl_common::error::Result;
use gnarl_common::prefetch;
use gnarl_common::rng::mix;
use gnarl_graph::{EdgeStream, for_each_edge};
use rayon::prelude::*;

use super::lists::{Lists, ListsWriter, Piece};
use super::pass::Pass;
use crate::read::adjacency::{for_each_list_within, ranges, starts};

/// Prefetch distance in neighbors.
const AHEAD: usize = 16;
/// Fewest lists that a thread sorts at a time.
const LEAST_SORTED: usize = 256;

/// The weight of a node, a cluster or a part: nodes, in-edges, training nodes.
pub(super) type Load = [u64; 3];

/// The weights of a level's nodes.
pub(super) enum Loads {
    /// Nodes of the graph itself: one node, some in-edges, perhaps a training node. Nodes without
    /// neighbors weigh nothing here: they are placed at the end.
    Single { edges: Vec<u32>, train: Vec<u64>, connected: Vec<u64> },
    /// Clusters of them.
    Cluster(Vec<[u32; 3]>),
}

impl Loads {
    #[inline]
    pub fn of(&self, node: u32) -> Load {
        let node = node as usize;
        match self {
            Self::Single { edges, train, connected } => {
                let bit = |set: &[u64]| set[node / 64] >> (node % 64) & 1;
                match bit(connected) {
                    0 => [0; 3],
                    _ => [1, u64::from(edges[node]), bit(train)],
                }
            }
            Self::Cluster(loads) => loads[node].map(u64::from),
        }
    }
}

/// One graph of the hierarchy.
pub(super) struct Level {
    pub lists: Lists,
    pub loads: Loads,
}

impl Level {
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Reads a graph. Repeated edges stay repeated: each counts in the cut. Self loops are dropped.
    ///
    /// A pass counts, then each pass fills the lists of a range of nodes, as many as `budget` bytes
    /// hold. A graph with every edge in both directions needs only half of each.
    pub fn read(
        edges: &mut dyn EdgeStream,
        train: &[u64],
        budget: usize,
        scratch: &Path,
    ) -> Result<Self> {
        let nodes = edges.num_nodes() as usize;
        let (mut outgoing, mut incoming) = (vec![0u32; nodes], vec![0u32; nodes]);
        let mut asymmetry = 0u64;
        for_each_edge(edges, &mut |u, v| {
            incoming[v as usize] = incoming[v as usize].saturating_add(1);
            outgoing[u as usize] = outgoing[u as usize].saturating_add(1);
            asymmetry = asymmetry.wrapping_add(pair(u, v)).wrapping_sub(pair(v, u));
        })?;
        let symmetric = asymmetry == 0 && incoming == outgoing;
        let edges_in = incoming;
        let mut room = outgoing;
        if !symmetric {
            room.iter_mut().zip(&edges_in).for_each(|(r, i)| *r = r.saturating_add(*i));
        }
        let mut writer = ListsWriter::create(scratch, nodes, false)?;
        for_each_list_within(edges, &room, !symmetric, budget as u64, &mut |_, list| {
            list.sort_unstable();
            writer.push(list, &[])
        })?;
        drop(room);
        let lists = writer.finish()?;
        let set = |members: &mut dyn Iterator<Item = usize>| {
            let mut set = vec![0u64; nodes.div_ceil(64)];
            members.for_each(|v| set[v / 64] |= 1 << (v % 64));
            set
        };
        let train = set(&mut train.iter().map(|&v| v as usize));
        let connected = set(&mut (0..nodes).filter(|&v| lists.lengths()[v] > 0));
        Ok(Self { lists, loads: Loads::Single { edges: edges_in, train, connected } })
    }

    /// Contracts clusters: `map` gives each node's, from 0 without gaps. Edges within a cluster
    /// vanish, those between two clusters add up.
    pub fn contract(
        &self,
        map: &[u32],
        clusters: usize,
        budget: usize,
        scratch: &Path,
    ) -> Result<Self> {
        let mut loads = vec![[0u32; 3]; clusters];
        let mut room = vec![0u32; clusters];
        for (node, (&cluster, &length)) in map.iter().zip(self.lists.lengths()).enumerate() {
            let load = self.loads.of(node as u32);
            let sum = &mut loads[cluster as usize];
            sum.iter_mut().zip(load).for_each(|(s, l)| *s = s.saturating_add(l as u32));
            room[cluster as usize] = room[cluster as usize].saturating_add(length);
        }
        let mut writer = ListsWriter::create(scratch, clusters, true)?;
        let mut slots: Vec<u64> = Vec::new();
        let mut ids = Vec::new();
        let mut weights = Vec::new();
        for range in ranges(&room, budget / 8) {
            let next = starts(&room[range.clone()], &mut slots);
            let mut scatter = Scatter { map, range: range.clone(), next, slots: &mut slots };
            self.lists.run(&mut scatter)?;
            let next = scatter.next;
            let lists = sorted(&mut slots, &room[range], &next);
            for list in lists {
                add_up(list, &mut ids, &mut weights);
                writer.push(&ids, &weights)?;
            }
        }
        Ok(Self { lists: writer.finish()?, loads: Loads::Cluster(loads) })
    }
}

/// Collects the edges that leave the clusters of a range, list by list.
struct Scatter<'a> {
    map: &'a [u32],
    range: Range<usize>,
    /// The place of the next edge of each cluster.
    next: Vec<usize>,
    /// Edges as the other cluster in the upper half and a weight in the lower.
    slots: &'a mut [u64],
}

impl Pass for Scatter<'_> {
    /// Clusters of the range, and their edges.
    type Decided = Vec<(u32, u64)>;

    fn decide(&self, piece: &Piece) -> Self::Decided {
        let mut found = Vec::new();
        piece.for_each(|node, near, weights| {
            let own = self.map[node as usize];
            if !self.range.contains(&(own as usize)) {
                return;
            }
            let list = own - self.range.start as u32;
            for (i, &neighbor) in near.iter().enumerate() {
                if let Some(&next) = near.get(i + AHEAD) {
                    prefetch::item(self.map, next as usize);
                }
                let other = self.map[neighbor as usize];
                if other != own {
                    let weight = weights.get(i).copied().unwrap_or(1);
                    found.push((list, u64::from(other) << 32 | u64::from(weight)));
                }
            }
        });
        found
    }

    fn apply(&mut self, block: &[(Piece, Self::Decided)]) {
        for &(list, slot) in block.iter().flat_map(|(_, found)| found) {
            let at = &mut self.next[list as usize];
            self.slots[*at] = slot;
            *at += 1;
        }
    }
}

/// The lists, which have `room` and end at `ends`, each sorted.
fn sorted<'a>(slots: &'a mut [u64], room: &[u32], ends: &[usize]) -> Vec<&'a mut [u64]> {
    let mut rest = slots;
    let mut start = 0;
    let mut lists = Vec::with_capacity(room.len());
    for (&room, &end) in room.iter().zip(ends) {
        let (list, after) = rest.split_at_mut(room as usize);
        lists.push(&mut list[..end - start]);
        start += room as usize;
        rest = after;
    }
    lists.par_iter_mut().with_min_len(LEAST_SORTED).for_each(|list| list.sort_unstable());
    lists
}

/// A hash that is nearly injective on ordered pairs.
fn pair(u: u64, v: u64) -> u64 {
    mix(mix(u) ^ v)
}

/// Sums the weights of equal ids, which ascend.
fn add_up(slots: &[u64], ids: &mut Vec<u32>, weights: &mut Vec<u32>) {
    ids.clear();
    weights.clear();
    for &slot in slots {
        let (id, weight) = ((slot >> 32) as u32, slot as u32);
        match (ids.last(), weights.last_mut()) {
            (Some(&last), Some(sum)) if last == id => *sum = sum.saturating_add(weight),
            _ => {
                ids.push(id);
                weights.push(weight);
            }
        }
    }
}
