//! The rounds of an expansion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gnarl_common::rng::Key;
use rayon::prelude::*;

use super::graph::Graph;
use super::settle::{Bounds, settle};
use crate::vertex_cut::sets::{PartSets, bits};

/// A growing part.
pub(in crate::vertex_cut) struct Part {
    /// Edges of the stream in it.
    pub(in crate::vertex_cut) edges: u64,
    /// Nodes with an edge in it.
    pub(in crate::vertex_cut) nodes: u64,
    /// Share of the boundary that is expanded in a round.
    pub(in crate::vertex_cut) lambda: f64,
    /// Nodes in the part that may have open edges.
    boundary: Vec<u32>,
    /// Nodes expanded in this round, with the end of each one's claims.
    expanded: Vec<(u32, usize)>,
    /// Claimed edges of this round: the other endpoint and the edge.
    claims: Vec<(u32, u32)>,
    /// Nodes that joined in this round.
    newcomers: Vec<u32>,
}

/// The rules by which the expansions differ.
pub(in crate::vertex_cut) trait Rules: Sync {
    /// λ at the start.
    fn lambda(&self) -> f64;
    /// Edges a part may have for `edges` in all.
    fn cap(&self, edges: u64, parts: usize) -> u64;
    /// Edges a part may get by one-hop in a round when `left` of all are open; at least 1.
    fn batch(&self, left: u64, parts: usize) -> u64;
    /// Adjusts the parts' λ before a round; those with `cap` edges grow no more.
    fn pace(&self, parts: &mut [Part], cap: u64);
    /// Balance bounds of the result beyond the cap, if any.
    fn bounds(&self) -> Option<Bounds>;
    /// Number of nodes to expand at `lambda` from a boundary of `size`; 0 if the part waits, which
    /// not all parts with room may do at once.
    fn count(&self, lambda: f64, size: usize) -> usize;
}

/// Edges granted to one part before another's turn: long enough to keep neighborhoods together.
const TURN: u64 = 64;

/// Not assigned to a part yet.
const OPEN: u16 = u16::MAX;

/// The state of an expansion.
pub(super) struct Rounds<'g> {
    graph: &'g mut Graph,
    /// Part of each edge.
    owner: Vec<u16>,
    /// Open edges of each node.
    open: Vec<u32>,
    /// Total number of open edges.
    left: usize,
    sets: PartSets,
    parts: Vec<Part>,
    /// All nodes in random order, and the next candidate as a seed.
    seeds: Vec<u32>,
    next_seed: usize,
}

impl<'g> Rounds<'g> {
    pub(super) fn new(graph: &'g mut Graph, parts: usize, key: Key) -> Self {
        let nodes = graph.num_nodes();
        let mut seeds: Vec<u32> = (0..nodes as u32).collect();
        key.shuffle(&mut seeds);
        let part = || Part {
            edges: 0,
            nodes: 0,
            lambda: 0.0,
            boundary: Vec::new(),
            expanded: Vec::new(),
            claims: Vec::new(),
            newcomers: Vec::new(),
        };
        Self {
            owner: vec![OPEN; graph.num_edges()],
            open: (0..nodes as u32).map(|v| graph.list(v).len() as u32).collect(),
            left: graph.num_edges(),
            graph,
            sets: PartSets::new(nodes as u64, parts),
            parts: std::iter::repeat_with(part).take(parts).collect(),
            seeds,
            next_seed: 0,
        }
    }

    /// Expands until no edge is open; returns the part of every edge.
    pub(super) fn run(mut self, rules: &dyn Rules) -> Vec<u16> {
        let edges: u64 = self.graph.weight.iter().map(|&w| w as u64).sum();
        let parts = self.parts.len();
        let cap = rules.cap(edges, parts);
        self.parts.iter_mut().for_each(|p| p.lambda = rules.lambda());
        let mut rounds = 0u64;
        while self.left > 0 {
            let given: u64 = self.parts.iter().map(|p| p.edges).sum();
            rules.pace(&mut self.parts, cap);
            self.choose(rules, cap);
            self.claim();
            self.one_hop(rules.batch(edges - given, parts), cap);
            self.two_hop(cap);
            rounds += 1;
        }
        tracing::debug!(rounds, "expansion");
        let Self { graph, mut owner, parts, .. } = self;
        if let Some(bounds) = rules.bounds() {
            let parts = parts.len();
            graph.restore();
            settle(graph, &mut owner, parts, bounds);
        }
        owner
    }

    /// Chooses the nodes that each part expands: some of its boundary, or a seed if that is empty.
    fn choose(&mut self, rules: &dyn Rules, cap: u64) {
        let open = &self.open;
        each(&mut self.parts, Part::boundary, |_, part| {
            part.expanded.clear();
            if part.edges < cap && rules.count(part.lambda, part.boundary.len().max(1)) > 0 {
                part.drop_closed(open);
                part.select(rules.count(part.lambda, part.boundary.len()), open);
            }
        });
        for p in 0..self.parts.len() {
            let part = &self.parts[p];
            if part.idle() && part.edges < cap && rules.count(part.lambda, 1) > 0 {
                self.seed(p);
            }
        }
    }

    /// Selects a random node with open edges as the part's seed.
    fn seed(&mut self, p: usize) {
        loop {
            let v = self.seeds[self.next_seed];
            self.next_seed = (self.next_seed + 1) % self.seeds.len();
            if self.open[v as usize] > 0 {
                self.parts[p].expanded.push((v, 0));
                return;
            }
        }
    }

    /// Collects the open edges of the expanded nodes.
    fn claim(&mut self) {
        let (graph, owner) = (&*self.graph, &self.owner);
        each(
            &mut self.parts,
            |part| part.listed(graph),
            |_, part| {
                part.claim(graph, |_, e| owner[e as usize] == OPEN);
            },
        );
    }

    /// Grants claims in turns, the next one always to the part with the fewest edges; nodes that a
    /// part cannot expand in this round go back to its boundary.
    fn one_hop(&mut self, batch: u64, cap: u64) {
        let limit = |part: &Part| part.edges.saturating_add(batch).min(cap);
        let limits: Vec<u64> = self.parts.iter().map(limit).collect();
        let mut next = vec![(0, 0); self.parts.len()];
        let mut turns: BinaryHeap<_> =
            self.parts.iter().enumerate().map(|(p, part)| Reverse((part.edges, p))).collect();
        self.parts.iter_mut().for_each(|p| p.newcomers.clear());
        while let Some(Reverse((edges, p))) = turns.pop() {
            let (node, mut i) = next[p];
            if edges >= limits[p] {
                let part = &mut self.parts[p];
                part.boundary.extend(part.expanded[node..].iter().map(|&(v, _)| v));
                continue;
            }
            let Some(&(v, end)) = self.parts[p].expanded.get(node) else { continue };
            let turn = limits[p].min(edges + TURN);
            while i < end && self.parts[p].edges < turn {
                let (w, e) = self.parts[p].claims[i];
                self.grant(p, (v, w), e);
                i += 1;
            }
            next[p] = (node + (i == end) as usize, i);
            turns.push(Reverse((self.parts[p].edges, p)));
        }
    }

    /// Assigns the edge between `v` and `w` to a part if it is open.
    fn grant(&mut self, p: usize, (v, w): (u32, u32), e: u32) {
        if self.owner[e as usize] != OPEN {
            return;
        }
        self.owner[e as usize] = p as u16;
        self.left -= 1;
        self.open[v as usize] -= 1;
        let part = &mut self.parts[p];
        part.edges += self.graph.weight[e as usize] as u64;
        part.nodes += self.sets.insert(v as u64, p) as u64;
        if w != v {
            self.open[w as usize] -= 1;
            if self.sets.insert(w as u64, p) {
                part.nodes += 1;
                part.boundary.push(w);
                part.newcomers.push(w);
            }
        }
    }

    /// Grants open edges between newcomers and nodes of the same part, each to the smallest part
    /// that has both endpoints.
    fn two_hop(&mut self, cap: u64) {
        for part in &mut self.parts {
            part.expanded.clear();
            for &v in &part.newcomers {
                let open = self.open[v as usize];
                // Otherwise every part that a hub joins would scan its closed edges again.
                if open < self.graph.list(v).len() as u32 / 2 {
                    self.graph.shorten(v, |e| self.owner[e as usize] == OPEN);
                }
                if open > 0 {
                    part.expanded.push((v, 0));
                }
            }
        }
        let graph = &*self.graph;
        let owner = &self.owner;
        let sets = &self.sets;
        each(
            &mut self.parts,
            |part| part.listed(graph),
            |p, part| {
                let joint =
                    |w: u32, e: u32| owner[e as usize] == OPEN && sets.contains(w as u64, p);
                part.claim(graph, joint);
            },
        );
        for p in 0..self.parts.len() {
            let mut i = 0;
            for node in 0..self.parts[p].expanded.len() {
                let (v, end) = self.parts[p].expanded[node];
                while i < end {
                    let (w, e) = self.parts[p].claims[i];
                    if let Some(smallest) = self.smallest_common(v, w, cap) {
                        self.grant(smallest, (v, w), e);
                    }
                    i += 1;
                }
            }
        }
    }

    /// The part with the fewest edges of those that have both nodes and room.
    fn smallest_common(&self, v: u32, w: u32, cap: u64) -> Option<usize> {
        (0..self.sets.row_words())
            .flat_map(|i| bits(self.sets.word(v as u64, i) & self.sets.word(w as u64, i), i))
            .filter(|&p| self.parts[p].edges < cap)
            .min_by_key(|&p| self.parts[p].edges)
    }
}

impl Part {
    fn boundary(&self) -> usize {
        self.boundary.len()
    }

    /// Returns whether the part has nothing to expand, now or later.
    fn idle(&self) -> bool {
        self.expanded.is_empty() && self.boundary.is_empty()
    }

    /// Length of the lists of the expanded nodes.
    fn listed(&self, graph: &Graph) -> usize {
        self.expanded.iter().map(|&(v, _)| graph.list(v).len()).sum()
    }

    /// Removes boundary nodes without open edges.
    fn drop_closed(&mut self, open: &[u32]) {
        self.boundary.retain(|&v| open[v as usize] > 0);
    }

    /// Moves the nodes with the fewest open edges from the boundary to the expanded.
    fn select(&mut self, count: usize, open: &[u32]) {
        let count = count.min(self.boundary.len());
        if count == 0 {
            return;
        }
        let key = |&v: &u32| (open[v as usize], v);
        self.boundary.select_nth_unstable_by_key(count - 1, key);
        let chosen = &mut self.boundary[..count];
        chosen.sort_unstable_by_key(key);
        self.expanded.extend(self.boundary.drain(..count).map(|v| (v, 0)));
    }

    /// Claims the edges of the expanded nodes that `wanted` accepts.
    fn claim(&mut self, graph: &Graph, wanted: impl Fn(u32, u32) -> bool) {
        self.claims.clear();
        for (v, end) in &mut self.expanded {
            self.claims.extend(graph.list(*v).iter().filter(|&&(w, e)| wanted(w, e)));
            *end = self.claims.len();
        }
    }
}

/// Runs over the parts, in parallel if their work outweighs scheduling.
fn each(parts: &mut [Part], size: impl Fn(&Part) -> usize, work: impl Fn(usize, &mut Part) + Sync) {
    /// A few microseconds of work.
    const TASK: usize = 1 << 12;
    if parts.iter().map(size).sum::<usize>() < TASK {
        parts.iter_mut().enumerate().for_each(|(p, part)| work(p, part));
    } else {
        parts.par_iter_mut().enumerate().for_each(|(p, part)| work(p, part));
    }
}
