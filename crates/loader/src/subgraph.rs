//! Batches with the reverses of their edges.

use gnarl_graph::blocks::Schema;
use gnarl_sample::{FrontierBatch, FrontierEdges};

/// The start of the names of relations that hold the reverses of others.
const REVERSE: &str = "rev_";

/// Adds the reverses of all edges, as PyTorch Geometric does it: in a homogeneous graph of each to its own type; in a
/// heterogeneous one those of the type `rev_…` if there is one, else those of its own type where that joins nodes of one
/// type, else those of the only type the other way. Edges that were there before the others keep their rows in a homogeneous
/// graph; in a heterogeneous one, where a reverse is of another type, the edges of types with reverses have none.
pub(crate) fn bidirectional(batch: &mut FrontierBatch) {
    if is_homogeneous(&batch.schema) {
        let only = &batch.edges[0];
        batch.edges = vec![joined(only, only, true)];
        return;
    }
    // Beside those that were drawn, whose reverses are still to be read.
    let drawn = &batch.edges;
    let mut with_reverses: Vec<Option<FrontierEdges>> = vec![None; drawn.len()];
    for edge_type in 0..drawn.len() {
        let Some(reverse) = reverse_of(&batch.schema, edge_type) else { continue };
        let (Reverse::Named(other) | Reverse::Of(other)) = reverse;
        let both = joined(&drawn[edge_type], &drawn[other], false);
        if let Reverse::Named(_) = reverse {
            with_reverses[other] = Some(FrontierEdges {
                sources: both.destinations.clone(),
                destinations: both.sources.clone(),
                ..Default::default()
            });
        }
        with_reverses[edge_type] = Some(both);
    }
    for (edges, both) in batch.edges.iter_mut().zip(with_reverses) {
        if let Some(both) = both {
            *edges = both;
        }
    }
}

/// Returns for each edge type whether batches with reverses have rows of its edges.
pub(crate) fn keep_rows(schema: &Schema) -> Vec<bool> {
    let types = schema.edge_types().len();
    let mut keep = vec![true; types];
    if !is_homogeneous(schema) {
        for edge_type in 0..types {
            match reverse_of(schema, edge_type) {
                Some(Reverse::Named(reverse)) => {
                    keep[edge_type] = false;
                    keep[reverse] = false;
                }
                Some(Reverse::Of(_)) => keep[edge_type] = false,
                None => {}
            }
        }
    }
    keep
}

/// Returns whether all edges are of one type between nodes of one type.
fn is_homogeneous(schema: &Schema) -> bool {
    schema.node_types().len() == 1 && schema.edge_types().len() == 1
}

/// The type with the reverses of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reverse {
    /// By its name: it gets the reverses of the other, too.
    Named(usize),
    /// The type itself, or the only one the other way.
    Of(usize),
}

/// The type with the reverses of an edge type; none of those that are themselves reverses by their names, or are ambiguous.
fn reverse_of(schema: &Schema, edge_type: usize) -> Option<Reverse> {
    let types = schema.edge_types();
    let of = &types[edge_type];
    if of.rel.starts_with(REVERSE) {
        return None;
    }
    let named = types.iter().position(|other| {
        other.rel.strip_prefix(REVERSE) == Some(&of.rel)
            && other.src == of.dst
            && other.dst == of.src
    });
    if let Some(named) = named {
        return Some(Reverse::Named(named));
    }
    if of.src == of.dst {
        return Some(Reverse::Of(edge_type));
    }
    let mut others =
        (0..types.len()).filter(|&at| types[at].src == of.dst && types[at].dst == of.src);
    let only = others.next();
    only.filter(|_| others.next().is_none()).map(Reverse::Of)
}

/// The edges of two lists, the second the other way round: each pair of nodes once, by destination and source.
fn joined(edges: &FrontierEdges, reverses: &FrontierEdges, with_rows: bool) -> FrontierEdges {
    let forwards = edges.sources.iter().zip(&edges.destinations).map(|(&s, &d)| (d, s));
    let backwards = reverses.sources.iter().zip(&reverses.destinations).map(|(&s, &d)| (s, d));
    let mut pairs: Vec<(u32, u32, u32)> =
        forwards.chain(backwards).zip(0..).map(|((d, s), at)| (d, s, at)).collect();
    pairs.sort_unstable();
    pairs.dedup_by_key(|&mut (destination, source, _)| (destination, source));
    // Of an edge and the reverse of another the edge, which comes first.
    let count = edges.sources.len();
    let of = |at: u32| at as usize % count.max(1);
    let rows = match with_rows && edges.rows.len() == count {
        true => pairs.iter().map(|&(_, _, at)| edges.rows[of(at)]).collect(),
        false => Vec::new(),
    };
    let weights = edges.weights.as_ref().filter(|_| with_rows);
    FrontierEdges {
        sources: pairs.iter().map(|&(_, source, _)| source).collect(),
        destinations: pairs.iter().map(|&(destination, _, _)| destination).collect(),
        rows,
        weights: weights.map(|all| pairs.iter().map(|&(_, _, at)| all[of(at)]).collect()),
        of_hop: Vec::new(),
    }
}
