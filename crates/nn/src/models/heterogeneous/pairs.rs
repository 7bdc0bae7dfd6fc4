//! Pairs of nodes and edge types.

use std::ops::Range;

use gnarl_graph::blocks::{Schema, Transpose};

use crate::lists::EdgeLists;
use crate::{Lists, Span};

/// Pairs of an own node and an edge type that ends in its type, whether it receives messages over
/// it or not: by edge type, and within one by node. A node of a *silent* type, which no edge type
/// ends in, has one pair with itself, after all others.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The node of each pair, counted from the first own one.
    pub(super) nodes: Vec<u32>,
    /// The pairs of each edge type.
    pub(super) relations: Vec<Range<usize>>,
    /// The pairs of each node type with itself.
    pub(super) silent: Vec<Range<usize>>,
    /// Per pair with an edge type the place of its group among the own ones by edge type, if it has
    /// one.
    pub(super) groups: EdgeLists,
    /// The pairs of each own node.
    pub(super) of_nodes: EdgeLists,
}

impl Pairs {
    /// The pairs of own nodes, whose types are those of the spans `own`. `groups` has the node of each
    /// own group by edge type, as lists of one, and `by_edge_type` the groups of each.
    pub(super) fn new(
        schema: &Schema,
        own: &[Span],
        groups: &EdgeLists,
        by_edge_type: &[Span],
    ) -> Self {
        let mut by_type = vec![Vec::new(); schema.node_types().len()];
        for span in own {
            by_type[span.weight].extend(span.rows.start as u32..span.rows.end as u32);
        }
        let ends: Vec<usize> = (0..schema.edge_types().len()).map(|e| schema.ends(e).1).collect();
        let mut nodes = Vec::new();
        let mut add = |more: &[u32]| {
            nodes.extend_from_slice(more);
            nodes.len() - more.len()..nodes.len()
        };
        let relations: Vec<Range<usize>> = ends.iter().map(|&end| add(&by_type[end])).collect();
        ends.iter().for_each(|&end| by_type[end].clear());
        let silent = by_type.iter().map(|nodes| add(nodes)).collect();

        let (mut offsets, mut places) = (vec![0u32], Vec::with_capacity(groups.num_edges()));
        for (edge_type, pairs) in relations.iter().enumerate() {
            let span = by_edge_type.iter().find(|span| span.weight == edge_type);
            let mut own = span.map_or(0..0, |span| span.rows.clone()).peekable();
            for &node in &nodes[pairs.clone()] {
                // Groups of one type are in the order of nodes, too.
                let place = own.next_if(|&place| groups.indices()[place] == node);
                places.extend(place.map(|place| place as u32));
                offsets.push(places.len() as u32);
            }
        }
        let all: Vec<u32> = (0..=nodes.len() as u32).collect();
        let of_nodes = Transpose::of(groups.num_src(), &all, &nodes);
        Self {
            groups: EdgeLists::new(groups.num_edges(), offsets, places),
            of_nodes: EdgeLists::new(nodes.len(), of_nodes.indptr, of_nodes.dst),
            nodes,
            relations,
            silent,
        }
    }
}
