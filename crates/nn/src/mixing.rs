//! Mean aggregation per edge type, mixed by one learned weight per edge type.

use crate::lists::{EdgeLists, Lists};
use crate::{ParamId, Tape, Tensor, Var};

/// The edges of a heterogeneous block, with a self-loop per destination, whose weights are *parts*
/// of a whole: a destination divides 1 among itself and the edge types that it receives messages
/// over, each of which divides its part among its edges.
#[derive(Debug)]
pub(crate) struct Mixing {
    /// Per destination one part for itself, then one per group.
    parts: EdgeLists,
    /// Edge type of each part; the number of edge types for a self-loop.
    relation: Vec<u32>,
    /// Per destination itself, then the sources of its groups.
    edges: EdgeLists,
    /// The part that each edge belongs to.
    part: Vec<u32>,
    /// Share of each edge in its part: those of a part add up to 1.
    shares: Tensor,
}

impl Mixing {
    /// The edges of `groups`, each of one of `relations` edge types, with the weights of the edges if
    /// they have any; `destinations` lists the groups of each destination.
    pub fn new(
        groups: &EdgeLists,
        destinations: &EdgeLists,
        (types, relations): (&[u32], u32),
        weights: Option<&[f32]>,
    ) -> Self {
        let num_dst = destinations.num_dst();
        let count = num_dst + groups.num_edges();
        let (mut parts, mut edges) = (vec![0u32], (vec![0u32], Vec::with_capacity(count)));
        let (mut relation, mut ends) = (Vec::new(), Vec::new());
        let (mut part, mut shares) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for destination in 0..num_dst {
            part.push(relation.len() as u32);
            relation.push(relations);
            edges.1.push(destination as u32);
            shares.push(1.0);
            for &group in destinations.sources(destination) {
                let group = group as usize;
                let own = groups.indptr()[group] as usize..groups.indptr()[group + 1] as usize;
                part.extend(std::iter::repeat_n(relation.len() as u32, own.len()));
                relation.push(types[group]);
                edges.1.extend(groups.sources(group));
                match weights {
                    Some(weights) => shares.extend(&weights[own]),
                    None => shares.extend(std::iter::repeat_n(1.0 / own.len() as f32, own.len())),
                }
            }
            ends.resize(relation.len(), destination as u32);
            parts.push(relation.len() as u32);
            edges.0.push(edges.1.len() as u32);
        }
        Self {
            parts: EdgeLists::new(num_dst, parts, ends),
            relation,
            edges: EdgeLists::new(groups.num_src(), edges.0, edges.1),
            part,
            shares: Tensor::from_vec(shares.len(), 1, shares),
        }
    }

    /// Adjacency lists, one per destination, that the weights belong to.
    pub fn edges(&self) -> &EdgeLists {
        &self.edges
    }

    /// The weight of each edge: parts are softmaxes of `scores`, one per edge type and one for
    /// self-loops.
    pub fn weights<'b>(&'b self, tape: &mut Tape<'b>, scores: ParamId) -> Var {
        let scores = tape.param(scores);
        let scores = tape.gather_rows(scores, &self.relation);
        let parts = tape.edge_softmax(&self.parts, scores);
        let parts = tape.gather_rows(parts, &self.part);
        let shares = tape.dense(self.shares.clone());
        tape.mul(parts, shares)
    }
}
