//! Message graphs in memory.

use std::collections::BTreeSet;

use gnarl_common::Result;
use gnarl_graph::triples::Triples;
use gnarl_graph::{Csc, Dataset};
use gnarl_sample::{HeteroSampleGraph, SampleGraph};

use super::form::type_of_relation;
use crate::data::edge_set::{EdgeSet, Ways};

/// Edges of a graph of one node type, over which messages pass in both directions.
pub(crate) struct MessageEdges<'a> {
    pub edges: &'a Triples,
    pub node_type: &'a str,
    pub nodes: usize,
    pub relations: usize,
}

/// The edges in both directions, whatever their relation.
pub(in crate::encoder) fn regardless(edges: &MessageEdges<'_>) -> Result<SampleGraph> {
    let Triples { heads, tails, .. } = edges.edges;
    let both = heads.iter().zip(tails).flat_map(|(&h, &t)| [(h, t), (t, h)]);
    let mut pairs: Vec<(u32, u32)> = both.collect();
    pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
    pairs.dedup();
    SampleGraph::new(Csc::from_edges(edges.nodes, &pairs))
}

/// The edges, with an edge type per relation and one for its reverse (Schlichtkrull et al., "Modeling Relational Data
/// with Graph Convolutional Networks", 2018, section 4).
pub(in crate::encoder) fn by_relation(edges: &MessageEdges<'_>) -> Result<HeteroSampleGraph> {
    let (name, all) = (edges.node_type, edges.edges);
    let mut of = vec![Vec::new(); 2 * edges.relations];
    for i in 0..all.len() {
        let Ways { forth, back } = Ways::of_relation(all.relations[i], edges.relations);
        of[forth].push((all.heads[i], all.tails[i]));
        if let Some(back) = back {
            of[back].push((all.tails[i], all.heads[i]));
        }
    }
    let mut graph = HeteroSampleGraph::new().with_nodes(name, edges.nodes)?;
    for (number, mut pairs) in of.into_iter().enumerate() {
        pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
        pairs.dedup();
        let triple = type_of_relation(name, number, edges.relations);
        graph = graph.with_edges(&triple, Csc::from_edges(edges.nodes, &pairs))?;
    }
    Ok(graph)
}

/// All edge types of a dataset but the edges `held`.
pub(in crate::encoder) fn by_type(dataset: &Dataset, held: &EdgeSet) -> Result<HeteroSampleGraph> {
    let mut graph = HeteroSampleGraph::open(dataset)?;
    let touched: BTreeSet<usize> = held.iter().map(|(edge_type, ..)| *edge_type).collect();
    for edge_type in touched {
        let drop = |src: u32, dst: u32| held.contains(&(edge_type, src.into(), dst.into()));
        graph = graph.without(edge_type, drop)?;
    }
    Ok(graph)
}
