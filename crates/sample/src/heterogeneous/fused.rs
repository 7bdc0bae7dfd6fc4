//! Heterogeneous batches as homogeneous blocks: one order of all nodes, one block per layer for all
//! edges.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::{Block, FusedBatch, FusedBlock, NodeInfo, Schema, Segment};

use super::block::{HeteroBatch, HeteroBlock};
use super::graph::HeteroSampleGraph;
use crate::scratch::add_edges;

impl HeteroBatch {
    /// Fuses the batch: all nodes in one order and all edges of a layer in one block, for layers
    /// that handle relations together. Where some edge types have weights, edges of the others
    /// weigh 1. Takes time in proportion to the edges, and to the input nodes of each type times
    /// the edge types that end there.
    ///
    /// # Errors
    /// If `graph` is not the one that was sampled, or a block would exceed 32-bit offsets.
    pub fn fuse(&self, graph: &HeteroSampleGraph) -> Result<FusedBatch> {
        if graph.schema() != &self.schema {
            return Err(Error::usage("the batch belongs to a graph with other node or edge types"));
        }
        fuse_batch(self, &whole_degrees(self, graph)?)
    }

    /// Fuses a batch without its graph, as [`HeteroBatch::fuse`] does. In-degrees of nodes are those over the sampled edge
    /// types, and 0 for nodes that are no destinations: no layer reads them.
    ///
    /// # Errors
    /// If a block would exceed 32-bit offsets.
    pub fn fuse_alone(&self) -> Result<FusedBatch> {
        let mut degrees = no_degrees(self);
        for (edge_type, relation) in
            self.blocks.iter().take(1).flat_map(|b| b.relations().iter().enumerate())
        {
            let of_type = &mut degrees[self.schema.ends(edge_type).1];
            for (sum, &degree) in of_type.iter_mut().zip(relation.degrees()) {
                *sum = sum.saturating_add(degree);
            }
        }
        fuse_batch(self, &degrees)
    }
}

fn fuse_batch(batch: &HeteroBatch, degrees: &[Vec<u32>]) -> Result<FusedBatch> {
    let segments = segments(&batch.blocks);
    let rows = rows(&segments, &batch.input_nodes);
    let info = Arc::new(node_info(batch, degrees, &segments));
    let block = |block| fuse(block, &batch.schema, &segments, &rows, &info);
    let blocks = batch.blocks.iter().map(block).collect::<Result<_>>()?;
    let of_type = |(node_type, seeds): &(usize, Vec<u32>)| -> Vec<u32> {
        seeds.iter().map(|&seed| rows[*node_type][seed as usize]).collect()
    };
    let targets = batch.targets.iter().flat_map(of_type).collect();
    Ok(FusedBatch { blocks, segments, targets })
}

/// The seeds of each type, then the nodes that each hop added of each.
fn segments(blocks: &[HeteroBlock]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut before = vec![0; blocks.last().map_or(0, |block| block.num_dst().len())];
    let counts = blocks.last().map(HeteroBlock::num_dst).into_iter();
    for counts in counts.chain(blocks.iter().rev().map(HeteroBlock::num_src)) {
        for (node_type, (&start, &end)) in before.iter().zip(counts).enumerate() {
            segments.extend((start < end).then_some(Segment { node_type, nodes: start..end }));
        }
        before = counts.to_vec();
    }
    segments
}

/// The row of each input node of each type.
fn rows(segments: &[Segment], input_nodes: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = input_nodes.iter().map(|n| Vec::with_capacity(n.len())).collect();
    let mut next = 0;
    for Segment { node_type, nodes } in segments {
        rows[*node_type].extend(next..next + nodes.len() as u32);
        next += nodes.len() as u32;
    }
    rows
}

fn no_degrees(batch: &HeteroBatch) -> Vec<Vec<u32>> {
    batch.input_nodes.iter().map(|nodes| vec![0; nodes.len()]).collect()
}

/// In-degrees of the input nodes of each type over all edge types.
fn whole_degrees(batch: &HeteroBatch, graph: &HeteroSampleGraph) -> Result<Vec<Vec<u32>>> {
    let mut degrees = no_degrees(batch);
    for edge_type in 0..batch.schema.edge_types().len() {
        let view = graph.view(edge_type);
        let dst = batch.schema.ends(edge_type).1;
        for (sum, &node) in degrees[dst].iter_mut().zip(&batch.input_nodes[dst]) {
            *sum = sum.saturating_add(view.checked_degree(node)?);
        }
    }
    Ok(degrees)
}

fn node_info(batch: &HeteroBatch, degrees: &[Vec<u32>], segments: &[Segment]) -> NodeInfo {
    let schema = &batch.schema;
    let mut info = NodeInfo::default();
    for Segment { node_type, nodes } in segments {
        let (ids, degrees) = (&batch.ids[*node_type], &degrees[*node_type]);
        let key = schema.node_key(*node_type);
        info.ids.extend(ids[nodes.clone()].iter().map(|&id| match schema.node_types().len() {
            1 => id,
            _ => key.with(id).bits(),
        }));
        info.degrees.extend(&degrees[nodes.clone()]);
    }
    info
}

fn fuse(
    heterogeneous: &HeteroBlock,
    schema: &Schema,
    segments: &[Segment],
    rows: &[Vec<u32>],
    info: &Arc<NodeInfo>,
) -> Result<FusedBlock> {
    let num_dst: usize = heterogeneous.num_dst().iter().sum();
    let relations = || heterogeneous.relations().iter().enumerate();
    let weighted = relations().any(|(_, relation)| relation.weights().is_some());
    let mut weights = weighted.then(Vec::new);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    let mut edge_types = Vec::new();
    let mut edges = Vec::new();
    let mut group_degrees = Vec::new();
    let of = segments.iter().flat_map(|s| s.nodes.clone().map(|node| (s.node_type, node)));
    for (node_type, dst) in of.take(num_dst) {
        let mut total = indptr[indptr.len() - 1];
        for (edge_type, relation) in relations().filter(|(e, _)| schema.ends(*e).1 == node_type) {
            let sources = relation.sources(dst);
            let first = relation.indptr()[dst];
            let source_rows = &rows[schema.ends(edge_type).0];
            total = add_edges(total, sources.len() as u32)?;
            indices.extend(sources.iter().map(|&source| source_rows[source as usize]));
            group_degrees.extend((!sources.is_empty()).then(|| relation.degrees()[dst]));
            edge_types.extend(std::iter::repeat_n(edge_type as u16, sources.len()));
            edges.extend(first..first + sources.len() as u32);
            if let Some(out) = &mut weights {
                match relation.weights() {
                    Some(own) => out.extend(&own[first as usize..][..sources.len()]),
                    None => out.extend(std::iter::repeat_n(1.0, sources.len())),
                }
            }
        }
        indptr.push(total);
    }
    let num_src = heterogeneous.num_src().iter().sum();
    let block = Arc::new(Block::new(num_src, indptr, indices, weights, info.clone()));
    Ok(FusedBlock { block, edge_types, edges, group_degrees })
}
