//! HALO nodes of every part, and the parts that store each edge.

use gnarl_common::error::Result;
use gnarl_common::prefetch;
use gnarl_common::rng::Key;
use gnarl_graph::{EdgeChunk, EdgeStream, for_each_edge};

use crate::edge_cut::partitioner::Assignment;
use crate::read::ahead::for_each_chunk;
use crate::read::bitmap::Bitmap;

/// Prefetch distance in edges.
const AHEAD: usize = 24;

/// The HALO expansion of an assignment. Memory: `parts` bits a node, twice that beyond one hop.
///
/// * 0 hops: a cut edge stays on one side, drawn at random for each pair of endpoints (CATGNN
///   §5.5).
/// * k ≥ 1 hops: all nodes within distance k − 1 of the part's core, against the edges, have their
///   full in-neighbor lists; sources outside the part are HALO nodes.
pub(crate) struct Halo {
    hops: u32,
    key: Key,
    /// For each part, the HALO nodes.
    pub(crate) nodes: Vec<Bitmap>,
    /// For each part, the HALO nodes whose lists are full; empty up to one hop.
    full: Vec<Bitmap>,
    /// Edges from part (row) to part (column).
    pub(crate) cut: Vec<Vec<u64>>,
    /// Nodes with a cut edge.
    pub(crate) cut_nodes: Bitmap,
}

impl Halo {
    /// Expands in `max(hops, 1)` passes over the edges.
    pub(crate) fn expand(
        edges: &mut dyn EdgeStream,
        assignment: &Assignment,
        hops: u32,
        seed: u64,
    ) -> Result<Self> {
        let parts = assignment.parts;
        let none = Bitmap::new(edges.num_nodes());
        let empty = vec![none.clone(); parts];
        let cut = vec![vec![0; parts]; parts];
        let key = Key::new(seed).with(u64::from_le_bytes(*b"cut-edge"));
        let mut halo = Self { hops, key, nodes: empty, full: Vec::new(), cut, cut_nodes: none };
        halo.first_pass(edges, &assignment.of)?;
        for _ in 1..hops {
            halo.full = halo.nodes.clone();
            for_each_edge(edges, &mut |u, v| {
                let home = assignment.of[u as usize] as usize;
                for part in 0..parts {
                    if part != home && halo.full[part].contains(v) {
                        halo.nodes[part].insert(u);
                    }
                }
            })?;
        }
        halo.nodes.iter_mut().for_each(Bitmap::count_ranks);
        Ok(halo)
    }

    /// The replicas of a vertex cut: `nodes` are those each part holds without owning them. One
    /// pass over the edges counts those between owners.
    pub(crate) fn of_copies(
        edges: &mut dyn EdgeStream,
        assignment: &Assignment,
        mut nodes: Vec<Bitmap>,
    ) -> Result<Self> {
        let mut cut = vec![vec![0; assignment.parts]; assignment.parts];
        let mut cut_nodes = Bitmap::new(edges.num_nodes());
        for_each_edge(edges, &mut |u, v| {
            let [from, to] = [u, v].map(|end| assignment.of[end as usize] as usize);
            cut[from][to] += 1;
            if from != to {
                cut_nodes.insert(u);
                cut_nodes.insert(v);
            }
        })?;
        nodes.iter_mut().for_each(Bitmap::count_ranks);
        Ok(Self { hops: 0, key: Key::new(0), nodes, full: Vec::new(), cut, cut_nodes })
    }

    /// No HALO nodes: one pass over the edges counts those between parts.
    pub(crate) fn none(edges: &mut dyn EdgeStream, assignment: &Assignment) -> Result<Self> {
        let nodes = vec![Bitmap::empty(); assignment.parts];
        Self::of_copies(edges, assignment, nodes)
    }

    /// Number of node sets in memory.
    pub(crate) fn sets(&self) -> u64 {
        let sets = self.nodes.iter().chain(&self.full).filter(|set| !set.is_empty());
        sets.count() as u64 + 1
    }

    fn first_pass(&mut self, edges: &mut dyn EdgeStream, of: &[u16]) -> Result<()> {
        for_each_chunk(edges, &mut |chunk| {
            for (i, (u, v)) in chunk.iter().enumerate() {
                self.ask(of, chunk, i);
                let (from, to) = (of[u as usize] as usize, of[v as usize] as usize);
                self.cut[from][to] += 1;
                if from != to {
                    let keeper = if self.hops == 0 { self.side(of, u, v) } else { to };
                    let (guest, host) = if keeper == to { (u, v) } else { (v, u) };
                    self.nodes[keeper].insert(guest);
                    self.cut_nodes.insert(host);
                }
            }
        })?;
        // Halo nodes have a cut edge as well, so they are added here and not marked edge by edge.
        self.nodes.iter().for_each(|guests| self.cut_nodes.insert_all(guests));
        Ok(())
    }

    /// Prefetches for edges after the `i`-th: first the parts of their endpoints, then the sets
    /// they are likely to be added to.
    #[inline(always)]
    fn ask(&self, of: &[u16], chunk: &EdgeChunk, i: usize) {
        if let (Some(&u), Some(&v)) = (chunk.src.get(i + 2 * AHEAD), chunk.dst.get(i + 2 * AHEAD)) {
            prefetch::item(of, u as usize);
            prefetch::item(of, v as usize);
        }
        if let (Some(&u), Some(&v)) = (chunk.src.get(i + AHEAD), chunk.dst.get(i + AHEAD)) {
            self.nodes[of[v as usize] as usize].ask(u);
            self.cut_nodes.ask(v);
        }
    }

    /// The part that keeps a cut edge, equal for both directions.
    fn side(&self, of: &[u16], u: u64, v: u64) -> usize {
        let (low, high) = (u.min(v), u.max(v));
        let end = if self.key.with(low).u64(high) & 1 == 0 { low } else { high };
        of[end as usize] as usize
    }

    /// Calls `visit` with every part among `parts` that stores the edge.
    pub(crate) fn parts_of_edge(
        &self,
        of: &[u16],
        (u, v): (u64, u64),
        parts: std::ops::Range<usize>,
        mut visit: impl FnMut(usize),
    ) {
        let home = if self.hops == 0 { self.side(of, u, v) } else { of[v as usize] as usize };
        if self.full.is_empty() {
            if parts.contains(&home) {
                visit(home);
            }
        } else {
            parts.filter(|&part| part == home || self.full[part].contains(v)).for_each(visit);
        }
    }
}
