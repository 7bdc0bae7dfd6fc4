//! The examples that batches are made around: nodes, or edges with negatives.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};

use crate::endpoints::{EdgeKind, Ends, LeftOut};
use crate::graph::{LoaderGraph, Seeds};
use crate::negatives::{Candidates, Negatives};

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
    /// Weights by which sources of negatives are drawn, in place of all alike.
    source_weights: Option<Arc<[f64]>>,
    /// Weights by which destinations of negatives are drawn.
    destination_weights: Option<Arc<[f64]>>,
    /// The edges that neighborhoods leave out.
    pub(crate) left_out: Option<LeftOut>,
}

/// The examples of a loader.
#[derive(Debug)]
pub(crate) enum Examples {
    Nodes(Seeds),
    Edges(SeedEdges, Box<Drawn>),
}

/// The nodes that negatives of edges are drawn among, as far as they are drawn.
#[derive(Debug)]
pub(crate) struct Drawn {
    sources: Option<Candidates>,
    destinations: Option<Candidates>,
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
            true => Ok(Self {
                sources,
                destinations,
                negatives,
                source_weights: None,
                destination_weights: None,
                left_out: None,
            }),
            false => Err(Error::usage("invalid number of negatives: expected a positive number")
                .hint("ask for none by leaving them out")),
        }
    }

    /// Draws negatives by the weights of nodes, of sources and of destinations where these are given.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there are no such negatives.
    pub fn weighted(self, sources: Option<&[f64]>, destinations: Option<&[f64]>) -> Result<Self> {
        let unused = match self.negatives {
            Negatives::None => sources.is_some() || destinations.is_some(),
            Negatives::Pairs(_) => false,
            Negatives::Destinations(_) => sources.is_some(),
        };
        match unused {
            true => Err(Error::usage("weights of negatives that are not drawn")
                .hint("pairs have both endpoints drawn, triplets their destinations")),
            false => Ok(Self {
                source_weights: sources.map(Arc::from),
                destination_weights: destinations.map(Arc::from),
                ..self
            }),
        }
    }

    /// The nodes that negatives are drawn among.
    ///
    /// # Errors
    /// As [`Candidates::new`].
    pub(crate) fn drawn(&self, graph: &LoaderGraph) -> Result<Drawn> {
        let timed = self.sources.times.is_some();
        let of = |seeds: &Seeds, weights: &Option<Arc<[f64]>>, wanted: bool| {
            let made =
                wanted.then(|| Candidates::new(graph, seeds.node_type, weights.as_deref(), timed));
            made.transpose()
        };
        let both = matches!(self.negatives, Negatives::Pairs(_));
        let any = self.negatives != Negatives::None;
        Ok(Drawn {
            sources: of(&self.sources, &self.source_weights, both)?,
            destinations: of(&self.destinations, &self.destination_weights, any)?,
        })
    }

    /// Leaves the edges of a batch, which are of this type, out of its neighborhoods, and those between the same nodes the
    /// other way round of the type `reversed`.
    #[must_use]
    pub fn leaving_out(self, edge_type: usize, reversed: Option<usize>) -> Self {
        Self { left_out: Some(LeftOut { edge_type, reversed }), ..self }
    }

    /// The kind of edges.
    pub(crate) fn kind(&self) -> EdgeKind {
        EdgeKind {
            source_type: self.sources.node_type,
            destination_type: self.destinations.node_type,
            negatives: self.negatives,
            left_out: self.left_out,
        }
    }

    /// The time of each of the edges at `places`, if they have any.
    pub(crate) fn times(&self, places: &[u32]) -> Option<Vec<i64>> {
        let times = self.sources.times.as_ref()?;
        Some(places.iter().map(|&place| times[place as usize]).collect())
    }

    /// The endpoints of the edges at `places`, and of their negatives.
    ///
    /// # Errors
    /// [`Kind::Limit`] if there would be more negatives than a batch can have; as [`Candidates::draw`].
    pub(crate) fn ends(&self, places: &[u32], drawn: &Drawn, key: Key) -> Result<Ends> {
        let pick = |seeds: &Seeds| -> Vec<u32> {
            places.iter().map(|&place| seeds.nodes[place as usize]).collect()
        };
        let mut ends = Ends {
            sources: pick(&self.sources),
            destinations: pick(&self.destinations),
            ..Default::default()
        };
        let count = match self.negatives {
            Negatives::None => return Ok(ends),
            Negatives::Pairs(share) => (share * places.len() as f64).ceil(),
            Negatives::Destinations(each) => each as f64 * places.len() as f64,
        };
        if count > MOST {
            let message = format!("a batch would have {count:.3e} negatives");
            return Err(Error::new(Kind::Limit, message)
                .hint("take fewer for each edge, or smaller batches"));
        }
        let key = key.with(NEGATIVES);
        let times = self.times(places);
        // Those of an edge depend on the edge alone, not on its place in a batch.
        for negative in 0..count as usize {
            let (place, round) = self.negatives.example(negative, places.len());
            let key = key.with(places[place].into()).with(round as u64);
            let time = times.as_ref().map(|times| times[place]);
            if let Some(sources) = &drawn.sources {
                ends.negative_sources.push(sources.draw(key.with(0), time)?);
            }
            if let Some(destinations) = &drawn.destinations {
                ends.negative_destinations.push(destinations.draw(key.with(1), time)?);
            }
        }
        Ok(ends)
    }
}

impl Examples {
    /// Number of examples.
    pub fn count(&self) -> usize {
        match self {
            Self::Nodes(seeds) => seeds.nodes.len(),
            Self::Edges(edges, _) => edges.sources.nodes.len(),
        }
    }
}

impl From<Seeds> for Examples {
    fn from(seeds: Seeds) -> Self {
        Self::Nodes(seeds)
    }
}

#[cfg(test)]
mod tests {
    use gnarl_graph::generate::{Attributes, CommunityOptions, community};

    use super::*;

    fn graph() -> (tempfile::TempDir, LoaderGraph) {
        let dir = tempfile::tempdir().unwrap();
        let attributes = Attributes { features: 2, classes: 2, ..Default::default() };
        let options = CommunityOptions {
            nodes: 100,
            communities: 2,
            average_degree: 4.0,
            attributes,
            ..Default::default()
        };
        let dataset = community(&options, &dir.path().join("graph")).unwrap().dataset;
        let graph = LoaderGraph::open(&dataset).unwrap();
        (dir, graph)
    }

    fn seeds(nodes: &[u32]) -> Seeds {
        Seeds::new(0, nodes.to_vec())
    }

    #[test]
    fn negatives_of_an_edge_depend_on_the_edge_alone() {
        let edges = |negatives| {
            SeedEdges::new(seeds(&[1, 2, 3, 4]), seeds(&[5, 6, 7, 8]), negatives).unwrap()
        };
        let key = Key::new(3);
        let (_dir, graph) = graph();
        let triples = edges(Negatives::Destinations(3));
        let all = triples.ends(&[0, 1, 2, 3], &triples.drawn(&graph).unwrap(), key).unwrap();
        let some = triples.ends(&[2, 0], &triples.drawn(&graph).unwrap(), key).unwrap();
        assert_eq!(some.negative_destinations[..3], all.negative_destinations[6..9]);
        assert_eq!(some.negative_destinations[3..], all.negative_destinations[..3]);
        assert!(some.negative_sources.is_empty());
        let pairs = edges(Negatives::Pairs(1.5));
        let pairs = pairs.ends(&[0, 1, 2], &pairs.drawn(&graph).unwrap(), key).unwrap();
        assert_eq!((pairs.negative_sources.len(), pairs.negative_destinations.len()), (5, 5));
        assert!(pairs.negative_destinations.iter().all(|&node| node < 100));
    }

    #[test]
    fn more_negatives_than_a_batch_can_have_are_refused() {
        let (_dir, graph) = graph();
        for negatives in [Negatives::Pairs(1e30), Negatives::Destinations(usize::MAX)] {
            let edges = SeedEdges::new(seeds(&[1]), seeds(&[2]), negatives).unwrap();
            let error = edges.ends(&[0], &edges.drawn(&graph).unwrap(), Key::new(0)).unwrap_err();
            assert!(error.to_string().contains("negatives"), "{error}");
        }
    }

    #[test]
    fn negatives_are_drawn_by_weight() {
        let (_dir, graph) = graph();
        let mut weights = vec![0.0; 100];
        weights[7] = 1.0;
        weights[99] = 3.0;
        let all: Vec<u32> = (0..100).collect();
        let edges = SeedEdges::new(seeds(&all), seeds(&all), Negatives::Pairs(20.0)).unwrap();
        let edges = edges.weighted(None, Some(&weights)).unwrap();
        let ends = edges.ends(&all, &edges.drawn(&graph).unwrap(), Key::new(5)).unwrap();
        let last = ends.negative_destinations.iter().filter(|&&node| node == 99).count();
        assert!(ends.negative_destinations.iter().all(|&node| node == 7 || node == 99));
        // 2,000 draws: three quarters, by four deviations.
        assert!((1420..=1580).contains(&last), "{last}");
        assert!(ends.negative_sources.iter().collect::<std::collections::BTreeSet<_>>().len() > 90);
        for (wrong, message) in [
            (vec![0.0; 100], "the sum 0"),
            (vec![-1.0; 100], "invalid weight -1 of node 0"),
            (vec![f64::NAN; 100], "invalid weight NaN"),
            (vec![1.0; 7], "7 weights of negatives for 100 nodes"),
        ] {
            let edges = SeedEdges::new(seeds(&all), seeds(&all), Negatives::Pairs(1.0)).unwrap();
            let edges = edges.weighted(Some(&wrong), None).unwrap();
            let error = edges.drawn(&graph).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        for negatives in [Negatives::None, Negatives::Destinations(2)] {
            let edges = SeedEdges::new(seeds(&all), seeds(&all), negatives).unwrap();
            assert!(edges.weighted(Some(&weights), None).is_err());
        }
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
