//! Node numbering of endpoints: where heads and tails are of two node types, those of the tails'
//! type follow.

use std::ops::Range;

use gnarl_graph::triples::{Side, Triples};

use crate::data::seeds::Seeds;

/// Node types of heads and of tails.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    node_types: [String; 2],
    /// Number of nodes of each.
    counts: [u32; 2],
}

impl Endpoints {
    pub fn new(node_types: [String; 2], counts: [u32; 2]) -> Self {
        Self { node_types, counts }
    }

    /// Returns whether heads are of another type than tails.
    pub fn are_two_types(&self) -> bool {
        self.node_types[0] != self.node_types[1]
    }

    /// The node type of heads.
    pub fn head_type(&self) -> &str {
        &self.node_types[0]
    }

    /// Number of all nodes.
    pub fn nodes(&self) -> usize {
        self.range(Side::Tail).end as usize
    }

    /// The node range of endpoints on a side.
    pub fn range(&self, side: Side) -> Range<u32> {
        let first = self.first_tail();
        match side {
            Side::Head => 0..self.counts[0],
            Side::Tail => first..first + self.counts[1],
        }
    }

    /// Index of the tails' first node.
    pub fn first_tail(&self) -> u32 {
        if self.are_two_types() { self.counts[0] } else { 0 }
    }

    /// The edges in dataset ids.
    pub fn in_dataset(&self, mut edges: Triples) -> Triples {
        edges.tails.iter_mut().for_each(|tail| *tail -= self.first_tail());
        edges
    }

    /// Nodes as seeds at `times`, or at none, and the position of each as by [`Endpoints::by_type`].
    pub fn seeds(&self, nodes: Vec<u32>, times: Vec<i64>) -> (Seeds, Vec<u32>) {
        let times = match (times.is_empty(), self.are_two_types()) {
            (true, _) => Vec::new(),
            (false, false) => vec![times],
            (false, true) => {
                let (mut heads, mut tails) = (Vec::new(), Vec::new());
                for (&node, time) in nodes.iter().zip(times) {
                    if node < self.first_tail() { heads.push(time) } else { tails.push(time) }
                }
                vec![heads, tails]
            }
        };
        let (nodes, places) = self.by_type(nodes);
        (Seeds { nodes, times }, places)
    }

    /// Dataset ids of some nodes by their types, and the position of each node where those of one
    /// type follow the other.
    pub fn by_type(&self, nodes: Vec<u32>) -> (Vec<Vec<u32>>, Vec<u32>) {
        if !self.are_two_types() {
            let places = (0..nodes.len() as u32).collect();
            return (vec![nodes], places);
        }
        let first_tail = self.first_tail();
        let heads = nodes.iter().filter(|&&node| node < first_tail).count() as u32;
        let (mut types, mut places) = ([Vec::new(), Vec::new()], Vec::with_capacity(nodes.len()));
        for node in nodes {
            let tail = node >= first_tail;
            let ids = &mut types[usize::from(tail)];
            places.push(ids.len() as u32 + if tail { heads } else { 0 });
            ids.push(if tail { node - first_tail } else { node });
        }
        (types.into(), places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_two_types_are_told_apart() {
        let endpoints = Endpoints::new(["user".into(), "item".into()], [10, 4]);
        assert_eq!(
            (endpoints.nodes(), endpoints.range(Side::Head), endpoints.range(Side::Tail)),
            (14, 0..10, 10..14)
        );
        let (types, places) = endpoints.by_type(vec![12, 3, 10, 7]);
        assert_eq!(types, [vec![3, 7], vec![2, 0]]);
        assert_eq!(places, [2, 0, 3, 1]);
        let (seeds, places) = endpoints.seeds(vec![12, 3, 10, 7], vec![1, 2, 3, 4]);
        assert_eq!((seeds.nodes, seeds.times), (types, vec![vec![2, 4], vec![1, 3]]));
        assert_eq!(places, [2, 0, 3, 1]);
        let mut edges = Triples::default();
        edges.push(3, 0, 12);
        assert_eq!(endpoints.in_dataset(edges).tails, [2]);
    }

    #[test]
    fn nodes_of_one_type_stay_as_they_are() {
        let endpoints = Endpoints::new(["user".into(), "user".into()], [10, 10]);
        assert_eq!((endpoints.nodes(), endpoints.range(Side::Tail)), (10, 0..10));
        assert_eq!(endpoints.by_type(vec![5, 2]), (vec![vec![5, 2]], vec![0, 1]));
    }
}
