//! `dne`: distributed neighbor expansion.

use gnarl_common::error::Result;
use gnarl_graph::EdgeStream;

use super::expansion::{self, Bounds, Part, Rules};
use super::partitioner::{EdgePartitioner, EdgeSink};
use crate::edge_cut::partitioner::PartitionOptions;

/// Grows all parts at once from random seeds, along their boundaries (Hanai et al., "Distributed
/// edge partitioning for trillion-edge graphs", VLDB 2019 §4; in short GLISP §III-B).
///
/// In each round a part expands a constant fraction λ of its boundary: the nodes with the fewest
/// open edges. Of a part with `β·|E| / p` edges nothing more grows; β is 1.1, or `options.balance`
/// if that is larger. Parts that run out of boundary start again from a random node.
///
/// All copies and directions of an edge go together, so a part may exceed the bound by the copies of
/// one edge. Not a stream: about 46 bytes an edge, or half that if both directions are there, 52
/// bytes and p bits a node; three passes.
#[derive(Debug, Clone, Copy)]
pub struct Dne {
    /// Share of the boundary expanded in a round.
    pub lambda: f64,
}

impl Default for Dne {
    /// The paper's λ, 0.1.
    fn default() -> Self {
        Self { lambda: 0.1 }
    }
}

/// The paper's β.
const BALANCE: f64 = 1.1;

impl EdgePartitioner for Dne {
    fn name(&self) -> &'static str {
        "dne"
    }

    fn memory(&self, nodes: u64, edges: u64, parts: usize) -> u64 {
        expansion::memory(nodes, edges, parts)
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        let rules = Constant { lambda: self.lambda, balance: options.balance.max(BALANCE) };
        expansion::run(self.name(), edges, options, sink, &rules)
    }
}

/// A constant λ, with bounded edges.
struct Constant {
    lambda: f64,
    balance: f64,
}

impl Rules for Constant {
    fn lambda(&self) -> f64 {
        self.lambda
    }

    fn cap(&self, edges: u64, parts: usize) -> u64 {
        (self.balance * edges as f64 / parts as f64).ceil() as u64
    }

    fn batch(&self, _: u64, _: usize) -> u64 {
        u64::MAX
    }

    fn pace(&self, _: &mut [Part], _: u64) {}

    fn bounds(&self) -> Option<Bounds> {
        None
    }

    fn count(&self, lambda: f64, size: usize) -> usize {
        (lambda * size as f64).ceil() as usize
    }
}
