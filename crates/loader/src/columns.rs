//! Columns of the nodes and edges of a sampled batch.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::memory::SparePages;
use gnarl_sample::FrontierBatch;

use crate::batch::{Batch, BatchEdges, BatchNodes};
use crate::graph::LoaderGraph;
use crate::options::Columns;

/// A sampled batch in the types of tensors, with the columns that are asked for, in memory of `rows`. Edges of some types have
/// rows in the dataset, by which these are read.
pub(crate) fn batch(
    (graph, has_rows): (&LoaderGraph, &[bool]),
    found: FrontierBatch,
    seed_type: usize,
    input_ids: Vec<i64>,
    (columns, rows): (Columns, &Arc<SparePages>),
) -> Result<Batch> {
    let of_hop = |counts: &[usize]| counts.iter().map(|&count| count as i64).collect();
    let mut nodes = Vec::with_capacity(found.nodes.len());
    for (node_type, own) in found.nodes.iter().enumerate() {
        let features = match columns.features {
            true => graph.features_of(node_type, own, rows)?,
            false => None,
        };
        let trees = found.trees.as_ref();
        nodes.push(BatchNodes {
            ids: own.iter().map(|&node| node.into()).collect(),
            features,
            labels: columns.labels.then(|| graph.labels_of(node_type, own)).flatten(),
            times: columns.others.then(|| graph.times_of(node_type, own)).flatten(),
            trees: trees.map(|trees| trees[node_type].iter().map(|&tree| tree.into()).collect()),
            of_hop: of_hop(&found.nodes_of_hop[node_type]),
        });
    }
    let mut edges = Vec::with_capacity(found.edges.len());
    for (edge_type, own) in found.edges.iter().enumerate() {
        let has_rows = has_rows[edge_type];
        let features = match columns.features && has_rows {
            true => graph.edge_features_of(edge_type, &own.rows, rows)?,
            false => None,
        };
        let stored = || graph.weights_of(edge_type, &own.rows).filter(|_| has_rows);
        let weights = || own.weights.clone().or_else(stored);
        let times = || graph.edge_times_of(edge_type, &own.rows).filter(|_| has_rows);
        edges.push(BatchEdges {
            ends: ends(&own.sources, &own.destinations),
            ids: has_rows.then(|| own.rows.iter().map(|&row| row as i64).collect()),
            features,
            weights: columns.others.then(weights).flatten(),
            times: columns.others.then(times).flatten(),
            of_hop: of_hop(&own.of_hop),
        });
    }
    let schema = found.schema;
    Ok(Batch { schema, seed_type, input_ids, nodes, edges, seed_times: None, links: None })
}

/// Two rows of positions as one list.
fn ends(sources: &[u32], destinations: &[u32]) -> Vec<i64> {
    let mut ends = Vec::with_capacity(sources.len() + destinations.len());
    ends.extend(sources.iter().map(|&at| i64::from(at)));
    ends.extend(destinations.iter().map(|&at| i64::from(at)));
    ends
}
