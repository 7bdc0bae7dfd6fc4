//! The examples that batches are made around: nodes, or edges with negatives.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};

use crate::graph::{LoaderGraph, Seeds};

/// The purpose of the random numbers that draw negatives, apart from those that draw neighbors.
const NEGATIVES: u64 = 0x6e65_6761;

/// Draws of a negative among nodes, some of which are not there at its time.
const ATTEMPTS: u64 = 32;

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
    source_weights: Option<Arc<Cumulative>>,
    /// Weights by which destinations of negatives are drawn.
    destination_weights: Option<Arc<Cumulative>>,
    /// The edges that neighborhoods leave out.
    pub(crate) left_out: Option<LeftOut>,
}

/// The edges of a batch as sampled edges, by which a model would see what it is to predict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeftOut {
    /// The edge type of the batch's edges.
    pub edge_type: usize,
    /// The edge type that has them the other way round, too.
    pub reversed: Option<usize>,
}

/// Sums of the weights of all nodes up to each.
#[derive(Debug)]
struct Cumulative(Vec<f64>);

impl Cumulative {
    fn new(weights: &[f64]) -> Result<Self> {
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(weights.len());
        for (node, &weight) in weights.iter().enumerate() {
            if !(weight.is_finite() && weight >= 0.0) {
                let message = format!("invalid weight {weight} of node {node} as a negative");
                return Err(Error::usage(message).hint("expected numbers from 0"));
            }
            sum += weight;
            sums.push(sum);
        }
        match sum > 0.0 && sum.is_finite() {
            true => Ok(Self(sums)),
            false => Err(Error::usage(format!("weights of negatives have the sum {sum}"))
                .hint("expected a positive number")),
        }
    }

    /// The node at a share of the sum, from 0 and below 1.
    fn at(&self, share: f64) -> u32 {
        let Self(sums) = self;
        let target = share * sums[sums.len() - 1];
        // Rounding may reach the sum itself, whose node has a weight.
        let last = sums.partition_point(|&sum| sum < sums[sums.len() - 1]);
        sums.partition_point(|&sum| sum <= target).min(last) as u32
    }
}

/// The nodes among which negatives are drawn, of one type.
struct Candidates<'a> {
    graph: &'a LoaderGraph,
    node_type: usize,
    weights: Option<&'a Cumulative>,
}

impl Candidates<'_> {
    /// A node by a key, which is there at a time.
    fn draw(&self, key: Key, time: Option<i64>) -> u32 {
        let count = self.graph.num_nodes(self.node_type).max(1) as u64;
        let attempt = |at: u64| match self.weights {
            Some(weights) => weights.at(key.unit(at)),
            None => key.below(at, count) as u32,
        };
        let Some(time) = time else { return attempt(0) };
        let is_there =
            |&node: &u32| self.graph.time_of(self.node_type, node).is_none_or(|from| from <= time);
        // Where next to none is there, the first that ever was.
        let earliest = || self.graph.earliest(self.node_type).unwrap_or_default();
        (0..ATTEMPTS).map(attempt).find(is_there).unwrap_or_else(earliest)
    }
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
    /// [`gnarl_common::Kind::Usage`] if a weight is negative, or all are zero.
    pub fn weighted(self, sources: Option<&[f64]>, destinations: Option<&[f64]>) -> Result<Self> {
        let sums = |weights: Option<&[f64]>| {
            weights.map(|weights| Cumulative::new(weights).map(Arc::new)).transpose()
        };
        Ok(Self {
            source_weights: sums(sources)?,
            destination_weights: sums(destinations)?,
            ..self
        })
    }

    /// Leaves the edges of a batch, which are of this type, out of its neighborhoods, and those between the same nodes the
    /// other way round of the type `reversed`.
    #[must_use]
    pub fn leaving_out(self, edge_type: usize, reversed: Option<usize>) -> Self {
        Self { left_out: Some(LeftOut { edge_type, reversed }), ..self }
    }

    /// The time of each of the edges at `places`, if they have any.
    pub(crate) fn times(&self, places: &[u32]) -> Option<Vec<i64>> {
        let times = self.sources.times.as_ref()?;
        Some(places.iter().map(|&place| times[place as usize]).collect())
    }

    /// The endpoints of the edges at `places`, and of their negatives.
    ///
    /// # Errors
    /// [`Kind::Limit`] if there would be more negatives than a batch can have.
    pub(crate) fn ends(&self, places: &[u32], graph: &LoaderGraph, key: Key) -> Result<Ends> {
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
        let sources = Candidates {
            graph,
            node_type: self.sources.node_type,
            weights: self.source_weights.as_deref(),
        };
        let destinations = Candidates {
            graph,
            node_type: self.destinations.node_type,
            weights: self.destination_weights.as_deref(),
        };
        let times = self.times(places);
        // Those of an edge depend on the edge alone, not on its place in a batch.
        for negative in 0..count {
            let (place, round) = self.negatives.example(negative, places.len());
            let key = key.with(places[place].into()).with(round as u64);
            let time = times.as_ref().map(|times| times[place]);
            if with_sources {
                ends.negative_sources.push(sources.draw(key.with(0), time));
            }
            ends.negative_destinations.push(destinations.draw(key.with(1), time));
        }
        Ok(ends)
    }

    /// Refuses weights of another number of nodes than there are.
    pub(crate) fn check(&self, graph: &LoaderGraph) -> Result<()> {
        let both = [
            (&self.sources, &self.source_weights),
            (&self.destinations, &self.destination_weights),
        ];
        for (seeds, weights) in both {
            let nodes = graph.num_nodes(seeds.node_type);
            let given = weights.as_ref().map_or(nodes, |weights| weights.0.len());
            if given != nodes {
                let name = &graph.schema().node_types()[seeds.node_type];
                let message =
                    format!("{given} weights of negatives for {nodes} nodes of type '{name}'");
                return Err(Error::usage(message).hint("give one for each"));
            }
        }
        Ok(())
    }
}

impl Negatives {
    /// The edge that a negative belongs to among those of a batch, and its number among the negatives of that edge.
    pub(crate) fn example(self, negative: usize, edges: usize) -> (usize, usize) {
        match self {
            Self::Destinations(each) => (negative / each, negative % each),
            _ => (negative % edges, negative / edges),
        }
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
        let all = triples.ends(&[0, 1, 2, 3], &graph, key).unwrap();
        let some = triples.ends(&[2, 0], &graph, key).unwrap();
        assert_eq!(some.negative_destinations[..3], all.negative_destinations[6..9]);
        assert_eq!(some.negative_destinations[3..], all.negative_destinations[..3]);
        assert!(some.negative_sources.is_empty());
        let pairs = edges(Negatives::Pairs(1.5)).ends(&[0, 1, 2], &graph, key).unwrap();
        assert_eq!((pairs.negative_sources.len(), pairs.negative_destinations.len()), (5, 5));
        assert!(pairs.negative_destinations.iter().all(|&node| node < 100));
    }

    #[test]
    fn more_negatives_than_a_batch_can_have_are_refused() {
        let (_dir, graph) = graph();
        for negatives in [Negatives::Pairs(1e30), Negatives::Destinations(usize::MAX)] {
            let edges = SeedEdges::new(seeds(&[1]), seeds(&[2]), negatives).unwrap();
            let error = edges.ends(&[0], &graph, Key::new(0)).unwrap_err();
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
        let ends = edges.ends(&all, &graph, Key::new(5)).unwrap();
        let last = ends.negative_destinations.iter().filter(|&&node| node == 99).count();
        assert!(ends.negative_destinations.iter().all(|&node| node == 7 || node == 99));
        // 2,000 draws: three quarters, by four deviations.
        assert!((1420..=1580).contains(&last), "{last}");
        assert!(ends.negative_sources.iter().collect::<std::collections::BTreeSet<_>>().len() > 90);
        for wrong in [vec![0.0; 100], vec![-1.0; 100], vec![f64::NAN; 100]] {
            let edges = SeedEdges::new(seeds(&all), seeds(&all), Negatives::Pairs(1.0)).unwrap();
            assert!(edges.weighted(Some(&wrong), None).is_err());
        }
        let edges = SeedEdges::new(seeds(&all), seeds(&all), Negatives::Pairs(1.0)).unwrap();
        let edges = edges.weighted(Some(&[1.0; 7]), None).unwrap();
        let error = edges.check(&graph).unwrap_err();
        assert!(error.to_string().contains("7 weights"), "{error}");
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
