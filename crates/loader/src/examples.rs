//! The examples that batches are made around: nodes, or edges with negatives.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};

use crate::graph::Seeds;

/// The purpose of the random numbers that draw negatives, apart from those that draw neighbors.
const NEGATIVES: u64 = 0x6e65_6761;

/// Negatives of a batch.
const MOST: f64 = (1u64 << 28) as f64;

/// Edges that batches are made around.
#[derive(Debug, Clone)]
pub struct SeedEdges {
    /// Sources, of one node type.
    pub sources: Seeds,
    /// Destinations, one for each source.
    pub destinations: Seeds,
    /// The negatives that batches bring.
    pub negatives: Negatives,
}

/// Pairs of nodes that are drawn beside the edges of a batch, uniformly, whether the graph has such an edge or not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Negatives {
    /// None.
    #[default]
    None,
    /// So many pairs for each edge, rounded up over a batch; both endpoints are drawn.
    Pairs(f64),
    /// So many destinations for the source of each edge.
    Destinations(usize),
}

/// The examples of a loader.
#[derive(Debug)]
pub(crate) enum Examples {
    Nodes(Seeds),
    Edges(SeedEdges),
}

/// The nodes of an example or a negative, by seed type.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub sources: Vec<u32>,
    pub destinations: Vec<u32>,
    pub negative_sources: Vec<u32>,
    pub negative_destinations: Vec<u32>,
}

impl SeedEdges {
    /// Edges between `sources` and `destinations`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there are more of one than of the other, or the share of negatives is no positive
    /// number.
    pub fn new(sources: Seeds, destinations: Seeds, negatives: Negatives) -> Result<Self> {
        let from = sources.nodes.len();
        let to = destinations.nodes.len();
        if from != to {
            return Err(Error::usage(format!("{from} sources and {to} destinations of edges")));
        }
        let is_valid = match negatives {
            Negatives::None => true,
            Negatives::Pairs(share) => share.is_finite() && share > 0.0,
            Negatives::Destinations(count) => count > 0,
        };
        match is_valid {
            true => Ok(Self { sources, destinations, negatives }),
            false => Err(Error::usage("invalid number of negatives: expected a positive number")
                .hint("ask for none by leaving them out")),
        }
    }

    /// The endpoints of the edges at `places`, and of their negatives, of types with so many nodes.
    ///
    /// # Errors
    /// [`Kind::Limit`] if there would be more negatives than a batch can have.
    pub(crate) fn ends(&self, places: &[u32], counts: (usize, usize), key: Key) -> Result<Ends> {
        let pick = |seeds: &Seeds| -> Vec<u32> {
            places.iter().map(|&place| seeds.nodes[place as usize]).collect()
        };
        let mut ends = Ends {
            sources: pick(&self.sources),
            destinations: pick(&self.destinations),
            ..Default::default()
        };
        let (count, with_sources) = match self.negatives {
            Negatives::None => return Ok(ends),
            Negatives::Pairs(share) => ((share * places.len() as f64).ceil(), true),
            Negatives::Destinations(each) => (each as f64 * places.len() as f64, false),
        };
        if count > MOST {
            let message = format!("a batch would have {count:.3e} negatives");
            return Err(Error::new(Kind::Limit, message)
                .hint("take fewer for each edge, or smaller batches"));
        }
        let count = count as usize;
        let key = key.with(NEGATIVES);
        // Those of an edge depend on the edge alone, not on its place in a batch.
        for negative in 0..count {
            let (round, place) = match self.negatives {
                Negatives::Destinations(each) => (negative % each, negative / each),
                _ => (negative / places.len(), negative % places.len()),
            };
            let key = key.with(places[place].into());
            let draw = |end: u64, count: usize| {
                key.below(2 * round as u64 + end, count.max(1) as u64) as u32
            };
            if with_sources {
                ends.negative_sources.push(draw(0, counts.0));
            }
            ends.negative_destinations.push(draw(1, counts.1));
        }
        Ok(ends)
    }
}

impl Examples {
    /// Number of examples.
    pub fn count(&self) -> usize {
        match self {
            Self::Nodes(seeds) => seeds.nodes.len(),
            Self::Edges(edges) => edges.sources.nodes.len(),
        }
    }
}

impl From<Seeds> for Examples {
    fn from(seeds: Seeds) -> Self {
        Self::Nodes(seeds)
    }
}

/// Distinct nodes, ascending, and the position of each of several lists among them.
pub(crate) fn distinct(lists: &[&[u32]]) -> (Vec<u32>, Vec<Vec<i64>>) {
    let mut all: Vec<u32> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let place = |node: &u32| all.partition_point(|known| known < node) as i64;
    let places = lists.iter().map(|list| list.iter().map(place).collect()).collect();
    (all, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(nodes: &[u32]) -> Seeds {
        Seeds::new(0, nodes.to_vec())
    }

    #[test]
    fn negatives_of_an_edge_depend_on_the_edge_alone() {
        let edges = |negatives| {
            SeedEdges::new(seeds(&[1, 2, 3, 4]), seeds(&[5, 6, 7, 8]), negatives).unwrap()
        };
        let key = Key::new(3);
        let triples = edges(Negatives::Destinations(3));
        let all = triples.ends(&[0, 1, 2, 3], (100, 100), key).unwrap();
        let some = triples.ends(&[2, 0], (100, 100), key).unwrap();
        assert_eq!(some.negative_destinations[..3], all.negative_destinations[6..9]);
        assert_eq!(some.negative_destinations[3..], all.negative_destinations[..3]);
        assert!(some.negative_sources.is_empty());
        let pairs = edges(Negatives::Pairs(1.5)).ends(&[0, 1, 2], (100, 10), key).unwrap();
        assert_eq!((pairs.negative_sources.len(), pairs.negative_destinations.len()), (5, 5));
        assert!(pairs.negative_destinations.iter().all(|&node| node < 10));
    }

    #[test]
    fn more_negatives_than_a_batch_can_have_are_refused() {
        for negatives in [Negatives::Pairs(1e30), Negatives::Destinations(usize::MAX)] {
            let edges = SeedEdges::new(seeds(&[1]), seeds(&[2]), negatives).unwrap();
            let error = edges.ends(&[0], (10, 10), Key::new(0)).unwrap_err();
            assert!(error.to_string().contains("negatives"), "{error}");
        }
    }

    #[test]
    fn lists_of_nodes_have_distinct_ones_in_order() {
        let (all, places) = distinct(&[&[7, 3, 7], &[9], &[]]);
        assert_eq!((all, places), (vec![3, 7, 9], vec![vec![1, 0, 1], vec![2], vec![]]));
    }

    #[test]
    fn lists_that_disagree_are_refused() {
        let error = SeedEdges::new(seeds(&[1]), seeds(&[1, 2]), Negatives::None).unwrap_err();
        assert!(error.to_string().contains("1 sources and 2 destinations"));
        for negatives in
            [Negatives::Pairs(0.0), Negatives::Pairs(f64::NAN), Negatives::Destinations(0)]
        {
            assert!(SeedEdges::new(seeds(&[1]), seeds(&[2]), negatives).is_err());
        }
    }
}
