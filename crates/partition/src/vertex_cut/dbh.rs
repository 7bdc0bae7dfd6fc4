//! `dbh`: degree-based hashing.

use gnarl_common::error::Result;
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use super::degrees;
use super::partitioner::{EdgePartitioner, EdgeSink, assign_each};
use crate::edge_cut::partitioner::PartitionOptions;

/// Hashes the endpoint of lower degree, so that hubs are cut and others are whole (Xie et al.,
/// "Distributed power-law graph computing", NeurIPS 2014 §4; also called Libra).
///
/// Two passes, of which the first counts degrees: 4 bytes a node. Ties go to the lower id, so both
/// directions of an edge meet in one part.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dbh;

impl EdgePartitioner for Dbh {
    fn name(&self) -> &'static str {
        "dbh"
    }

    fn memory(&self, nodes: u64, _edges: u64, _parts: usize) -> u64 {
        4 * nodes
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
        sink: &mut dyn EdgeSink,
    ) -> Result<()> {
        self.check(edges, options, "raise --memory or use hash-2d")?;
        let degrees = degrees::count(edges)?;
        let (key, parts) = (Key::new(options.seed), options.parts as u64);
        assign_each(edges, sink, |u, v| {
            let (_, end) = (degrees[u as usize], u).min((degrees[v as usize], v));
            key.with(end).below(0, parts) as u16
        })
    }
}
