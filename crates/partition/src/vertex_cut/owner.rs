//! From a vertex cut to an owner per node.

use gnarl_common::error::{Context, Result};
use gnarl_common::rng::Key;
use gnarl_graph::EdgeStream;

use super::partitioner::EdgePartitioner;
use super::replicas::Replicas;
use super::sets::PartSets;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};

/// Turns an edge partitioner into a vertex partitioner for training, as CATGNN §5.1 does with its
/// baselines: of the parts that hold a node one, drawn at random by seed and node, becomes its
/// owner; its full list of neighbors is added afterwards, as for any other partitioner.
///
/// A draw that would take a part beyond `balance · |V| / p` nodes goes to the emptiest of the node's
/// other parts if that has room: hubs' parts would else collect their neighbors. Nodes without
/// edges come last and fill the smallest parts. Memory, beside the partitioner's: p bits and the
/// result's 2 bytes a node.
pub struct Owner(pub Box<dyn EdgePartitioner>);

impl VertexPartitioner for Owner {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn memory(&self, nodes: u64, edges: u64, parts: usize) -> Option<u64> {
        Some(self.0.memory(nodes, edges, parts) + 2 * nodes + PartSets::bytes(nodes, parts))
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let held = 2 * nodes + PartSets::bytes(nodes, options.parts);
        options.check_memory(self.name(), held, "raise --memory or use random or range")?;
        let mut replicas = Replicas::new(nodes, options.parts);
        let memory = options.memory - held;
        let inner = PartitionOptions { memory, train: Vec::new(), ..options.clone() };
        let doing = || format!("partitioning the edges beside {} MiB of replicas", held >> 20);
        self.0.partition(edges, &inner, &mut replicas).while_doing(doing)?;
        let of = owners(replicas.sets(), options);
        Ok(Assignment { parts: options.parts, of })
    }
}

/// The owner of every node, drawn among the parts that hold it; see [`Owner`].
pub(crate) fn owners(sets: &PartSets, options: &PartitionOptions) -> Vec<u16> {
    let nodes = sets.num_nodes();
    let key = Key::new(options.seed).with(u64::from_le_bytes(*b"owner-of"));
    let cap = (options.balance * nodes as f64 / options.parts as f64).max(1.0) as u64;
    let mut sizes = vec![0u64; options.parts];
    let mut of = vec![0u16; nodes as usize];
    let mut isolated = Vec::new();
    for v in 0..nodes {
        let count = sets.count(v) as u64;
        if count == 0 {
            isolated.push(v);
            continue;
        }
        let draw = key.with(v).below(0, count) as usize;
        let mut part = sets.parts(v).nth(draw).expect("drawn below the count");
        if sizes[part] >= cap {
            let emptiest = sets.parts(v).min_by_key(|&p| sizes[p]).expect("not isolated");
            part = if sizes[emptiest] < cap { emptiest } else { part };
        }
        sizes[part] += 1;
        of[v as usize] = part as u16;
    }
    let mut smallest: std::collections::BinaryHeap<_> =
        (0..options.parts).map(|p| std::cmp::Reverse((sizes[p], p))).collect();
    for v in isolated {
        let std::cmp::Reverse((size, part)) = smallest.pop().expect("at least one part");
        of[v as usize] = part as u16;
        smallest.push(std::cmp::Reverse((size + 1, part)));
    }
    of
}
