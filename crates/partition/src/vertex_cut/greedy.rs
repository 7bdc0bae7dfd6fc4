//! `greedy`: PowerGraph's greedy placement.

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use super::degrees;
use super::loads::{Loads, cap};
use super::partitioner::{EdgePartitioner, EdgeSink, assign_in_order};
use super::sets::{PartSets, bits};
use crate::edge_cut::partitioner::PartitionOptions;

/// Places each edge where its endpoints are already, by the four cases of PowerGraph (Gonzalez et
/// al., OSDI 2012 §4.2): a part that has both endpoints; else, if each has parts, one of those of
/// the endpoint with more edges left; else a part of the endpoint that has any; else the least
/// loaded. Ties go to the least loaded.
///
/// A stream that walks along the graph would fill one part only, so parts that hold
/// `balance · |E| / p` edges are passed over. Two passes, of which the first counts degrees. Memory:
/// 4 bytes and p bits a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl EdgePartitioner for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
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
        let mut left = degrees::count(edges)?;
        let mut sets = PartSets::new(nodes, options.parts);
        let mut loads = Loads::new(vec![0; options.parts], cap(options, edges.num_edges()));
        assign_in_order(edges, sink, |u, v| {
            let (rich, poor) = if left[u as usize] >= left[v as usize] { (u, v) } else { (v, u) };
            let part = least_of(&sets, &loads, |i| sets.word(u, i) & sets.word(v, i))
                .or_else(|| least_of(&sets, &loads, |i| sets.word(rich, i)))
                .or_else(|| least_of(&sets, &loads, |i| sets.word(poor, i)))
                .unwrap_or_else(|| loads.least());
            loads.add(part);
            for end in [u, v] {
                sets.insert(end, part);
                left[end as usize] = left[end as usize].saturating_sub(1);
            }
            part as u16
        })
    }
}

/// The least loaded part with room in the set whose words are `word`.
#[inline]
fn least_of(sets: &PartSets, loads: &Loads, word: impl Fn(usize) -> u64) -> Option<usize> {
    (0..sets.row_words())
        .flat_map(|i| bits(word(i), i))
        .filter(|&p| loads.has_room(p))
        .min_by_key(|&p| loads.of(p))
}
