//! Message graphs in memory.

use std::collections::BTreeSet;

use gnarl_common::Result;
use gnarl_graph::triples::Triples;
use gnarl_graph::{Csc, Dataset};
use gnarl_sample::{HeteroSampleGraph, SampleGraph};
use rayon::prelude::*;

use super::form::type_of_relation;
use crate::data::edge_set::{EdgeSet, Ways};

/// Edges of a graph of one node type, over which messages pass in both directions.
pub(crate) struct MessageEdges<'a> {
    pub edges: &'a Triples,
    /// Their times; empty if neighbors are not sampled by time.
    pub times: &'a [i64],
    pub node_type: &'a str,
    pub nodes: usize,
    pub relations: usize,
}

/// In-neighbor lists of the distinct ones of some edges: source, destination and time, `()` if edges have none. The second
/// result are the times in the order of the lists.
fn lists<T: Ord + Copy + Send>(nodes: usize, mut edges: Vec<(u32, u32, T)>) -> (Csc, Vec<T>) {
    edges.par_sort_unstable_by_key(|&(source, destination, time)| (destination, source, time));
    edges.dedup();
    let times = edges.iter().map(|&(.., time)| time).collect();
    let pairs: Vec<(u32, u32)> = edges.into_iter().map(|(src, dst, _)| (src, dst)).collect();
    (Csc::from_edges(nodes, &pairs), times)
}

/// Edges in both directions, whatever their relation.
fn both<T: Copy>(edges: &Triples, time: impl Fn(usize) -> T) -> Vec<(u32, u32, T)> {
    let ends = edges.heads.iter().zip(&edges.tails).enumerate();
    let both = ends
        .flat_map(|(edge, (&head, &tail))| [(head, tail, time(edge)), (tail, head, time(edge))]);
    both.collect()
}

/// The edges in both directions, whatever their relation.
pub(in crate::encoder) fn regardless(edges: &MessageEdges<'_>) -> Result<SampleGraph> {
    let MessageEdges { edges, times, nodes, .. } = *edges;
    if times.is_empty() {
        return SampleGraph::new(lists(nodes, both(edges, |_| ())).0);
    }
    let (lists, times) = lists(nodes, both(edges, |edge| times[edge]));
    SampleGraph::new(lists)?.with_times(times.into())
}

/// The edges, with an edge type per relation and one for its reverse (Schlichtkrull et al., "Modeling Relational Data
/// with Graph Convolutional Networks", 2018, section 4).
pub(in crate::encoder) fn by_relation(edges: &MessageEdges<'_>) -> Result<HeteroSampleGraph> {
    let MessageEdges { edges, times, node_type, nodes, relations } = *edges;
    let mut graph = HeteroSampleGraph::new().with_nodes(node_type, nodes)?;
    if times.is_empty() {
        for (number, of_type) in of_relations(edges, relations, |_| ()).into_iter().enumerate() {
            let triple = type_of_relation(node_type, number, relations);
            graph = graph.with_edges(&triple, lists(nodes, of_type).0)?;
        }
        return Ok(graph);
    }
    let all = of_relations(edges, relations, |edge| times[edge]);
    for (number, of_type) in all.into_iter().enumerate() {
        let triple = type_of_relation(node_type, number, relations);
        let (lists, times) = lists(nodes, of_type);
        graph = graph.with_edges(&triple, lists)?.with_times(&triple, times.into())?;
    }
    Ok(graph)
}

/// The edges of each edge type of the message graph by relation.
fn of_relations<T: Copy>(
    edges: &Triples,
    relations: usize,
    time: impl Fn(usize) -> T,
) -> Vec<Vec<(u32, u32, T)>> {
    let mut of = vec![Vec::new(); 2 * relations];
    for i in 0..edges.len() {
        let Ways { forth, back } = Ways::of_relation(edges.relations[i], relations);
        of[forth].push((edges.heads[i], edges.tails[i], time(i)));
        if let Some(back) = back {
            of[back].push((edges.tails[i], edges.heads[i], time(i)));
        }
    }
    of
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
