//! The endpoints of a batch of edges.

use gnarl_graph::triples::Triples;

use crate::task::numbers::Numbers;

/// Distinct endpoints by node type, and the indices of heads and of tails among them.
pub(super) type Endpoints = (Vec<Vec<u32>>, [Vec<u32>; 2]);

/// Numbers the endpoints of some edges, which are of one node type or of two.
pub(super) fn endpoints(edges: &Triples, two_types: bool) -> Endpoints {
    let mut first = Numbers::default();
    let heads = first.of(&edges.heads);
    if !two_types {
        let tails = first.of(&edges.tails);
        return (vec![first.ids], [heads, tails]);
    }
    let before = first.ids.len() as u32;
    let mut second = Numbers::default();
    let tails = second.of(&edges.tails).into_iter().map(|tail| before + tail).collect();
    (vec![first.ids, second.ids], [heads, tails])
}
