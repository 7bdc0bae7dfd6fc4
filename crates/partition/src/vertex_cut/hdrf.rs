//! `hdrf`: high-degree nodes are replicated first.

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use super::loads::{Loads, cap};
use super::partitioner::{EdgePartitioner, EdgeSink, assign_in_order};
use super::sets::{PartSets, bits};
use crate::edge_cut::partitioner::PartitionOptions;

/// Places each edge in the part of highest score `C_REP + λ·C_BAL` (Petroni et al., CIKM 2015 §3):
///
/// * `C_REP(p)` adds `1 + (1 − θ)` for each endpoint that `p` has, `θ` being its share of the two
///   endpoints' degrees, so that rather the endpoint of higher degree is replicated;
/// * `C_BAL(p) = (max − |p|) / (1 + max − min)` of the parts' edges.
///
/// Degrees are those seen so far: one pass. The score alone lets a stream that walks along the graph
/// fill one part, so parts that hold `balance · |E| / p` edges are passed over. Memory: 4 bytes and
/// p bits a node.
#[derive(Debug, Clone, Copy)]
pub struct Hdrf {
    /// Weight of balance against replication.
    pub lambda: f64,
}

impl Default for Hdrf {
    /// The paper's λ, 1.1.
    fn default() -> Self {
        Self { lambda: 1.1 }
    }
}

impl EdgePartitioner for Hdrf {
    fn name(&self) -> &'static str {
        "hdrf"
    }

    fn memory(&self, nodes: u64, _edges: u64, parts: usize) -> u64 {
        4 * nodes + PartSets::bytes(nodes, parts)
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        let nodes = edges.num_nodes();
        self.check(edges, options, "raise --memory or use dbh")?;
        let mut degrees = vec![0u32; nodes as usize];
        let mut sets = PartSets::new(nodes, options.parts);
        let mut loads = Loads::new(vec![0; options.parts], cap(options, edges.num_edges()));
        assign_in_order(edges, sink, |u, v| {
            let [du, dv] = [u, v].map(|end| {
                let degree = &mut degrees[end as usize];
                *degree = degree.saturating_add(1);
                *degree as f64
            });
            let gain = [1.0 + dv / (du + dv), 1.0 + du / (du + dv)];
            let part = self.best(&sets, &mut loads, [u, v], gain);
            loads.add(part);
            sets.insert(u, part);
            sets.insert(v, part);
            part as u16
        })
    }
}

impl Hdrf {
    /// The part of highest score: one that has an endpoint, or the least loaded of all, which is
    /// the best of the others.
    #[inline]
    fn best(&self, sets: &PartSets, loads: &mut Loads, ends: [u64; 2], gain: [f64; 2]) -> usize {
        let (max, min) = loads.extremes();
        let scale = self.lambda / (1 + max - min) as f64;
        let balance = |loads: &Loads, p: usize| scale * (max - loads.of(p)) as f64;
        let mut best = loads.least();
        let mut highest = balance(loads, best);
        for i in 0..sets.row_words() {
            let [a, b] = ends.map(|end| sets.word(end, i));
            for p in bits(a | b, i) {
                let has = |word: u64| (word >> (p % 64) & 1) as f64;
                let score = gain[0] * has(a) + gain[1] * has(b) + balance(loads, p);
                if score > highest && loads.has_room(p) {
                    (best, highest) = (p, score);
                }
            }
        }
        best
    }
}
