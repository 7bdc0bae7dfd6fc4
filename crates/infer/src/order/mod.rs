//! Orders of nodes (GLISP §III-D): the sequence in which a layer is computed, and in which its rows are kept.
//!
//! Nodes that are close in an order should read the same rows: then few rows that are read for a range have to come from
//! a disk again for the next one. An order changes no result.

mod degree;
mod natural;
mod part;
mod part_degree;
mod sort;

use std::fmt;
use std::str::FromStr;

use gnarl_common::did_you_mean::unknown;
use gnarl_common::{Error, Result};
use rayon::prelude::*;

use degree::Degree;
use natural::Natural;
use part::Part;
use part_degree::PartDegree;
use sort::{About, Sort};

/// The orders, by their names in commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeOrder {
    /// By number.
    #[default]
    Natural,
    /// The most in-neighbors first.
    Degree,
    /// By part.
    Part,
    /// By part, and in a part the most in-neighbors first.
    PartDegree,
}

impl NodeOrder {
    /// All orders.
    pub const ALL: [Self; 4] = [Self::Natural, Self::Degree, Self::Part, Self::PartDegree];

    /// The name in commands: GLISP's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Natural => "ns",
            Self::Degree => "ds",
            Self::Part => "ps",
            Self::PartDegree => "pds",
        }
    }

    /// Returns whether it goes by parts.
    pub fn by_part(self) -> bool {
        matches!(self, Self::Part | Self::PartDegree)
    }

    /// The sequence of `nodes` nodes; none if it is by number.
    pub(crate) fn sequence(
        self,
        nodes: usize,
        part: Option<&[u32]>,
        degree: impl Fn(u32) -> u32 + Sync,
    ) -> Option<Sequence> {
        let sort: &dyn Sort = match self {
            Self::Natural => &Natural,
            Self::Degree => &Degree,
            Self::Part => &Part,
            Self::PartDegree => &PartDegree,
        };
        let key = |node: u32| {
            let part = part.map_or(0, |part| part[node as usize]);
            (sort.key(About { part, degree: degree(node) }), node)
        };
        let sorted = |pair: &[u32]| key(pair[0]) <= key(pair[1]);
        let mut nodes: Vec<u32> = (0..nodes as u32).collect();
        if nodes.par_windows(2).all(sorted) {
            return None;
        }
        nodes.par_sort_unstable_by_key(|&node| key(node));
        Some(Sequence::new(nodes))
    }
}

impl fmt::Display for NodeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NodeOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text);
        found.ok_or_else(|| unknown("order", text, &Self::ALL.map(Self::name)))
    }
}

/// A permutation of nodes. Memory: 8 bytes a node.
#[derive(Debug)]
pub(crate) struct Sequence {
    nodes: Vec<u32>,
    positions: Vec<u32>,
}

impl Sequence {
    fn new(nodes: Vec<u32>) -> Self {
        let mut positions = vec![0; nodes.len()];
        for (position, &node) in nodes.iter().enumerate() {
            positions[node as usize] = position as u32;
        }
        Self { nodes, positions }
    }

    /// The node at a position.
    pub fn node(&self, position: u32) -> u32 {
        self.nodes[position as usize]
    }

    /// The position of a node; none if there is no such node.
    pub fn position(&self, node: u32) -> Option<u32> {
        self.positions.get(node as usize).copied()
    }

    /// The bits of nodes, by position.
    pub fn by_position(&self, bits: &[u64]) -> Vec<u64> {
        let mut out = vec![0; bits.len()];
        for (word, &set) in bits.iter().enumerate() {
            let mut left = set;
            while left != 0 {
                let position = self.positions[64 * word + left.trailing_zeros() as usize];
                out[position as usize / 64] |= 1 << (position % 64);
                left &= left - 1;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEGREES: [u32; 6] = [3, 9, 1, 3, 7, 0];
    const PARTS: [u32; 6] = [1, 0, 1, 0, 1, 0];

    fn nodes(order: NodeOrder) -> Vec<u32> {
        let found = order.sequence(6, Some(&PARTS), |node| DEGREES[node as usize]);
        found.map_or_else(|| (0..6).collect(), |sequence| sequence.nodes)
    }

    #[test]
    fn orders_go_by_parts_and_degrees() {
        assert_eq!(nodes(NodeOrder::Natural), [0, 1, 2, 3, 4, 5]);
        assert_eq!(nodes(NodeOrder::Degree), [1, 4, 0, 3, 2, 5]);
        assert_eq!(nodes(NodeOrder::Part), [1, 3, 5, 0, 2, 4]);
        assert_eq!(nodes(NodeOrder::PartDegree), [1, 3, 5, 4, 0, 2]);
    }

    #[test]
    fn positions_are_the_inverse() {
        let sequence = Sequence::new(vec![2, 0, 3, 1]);
        assert_eq!((0..4).filter_map(|n| sequence.position(n)).collect::<Vec<_>>(), [1, 3, 0, 2]);
        assert_eq!(sequence.by_position(&[0b1001]), [0b0110]);
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!("pds".parse::<NodeOrder>().unwrap(), NodeOrder::PartDegree);
        assert!("pdq".parse::<NodeOrder>().unwrap_err().to_string().contains("pdq"));
    }
}
