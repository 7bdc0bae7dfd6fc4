//! Hop requests to a part, and the replies.

use std::ops::Range;
use std::str::FromStr;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use crate::temporal::TemporalRule;

/// The sampling rule of nodes with more neighbors than the fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// As [`UniformSampler`](crate::UniformSampler) from whole lists. From a share of a list, a share of the fan-out: as
    /// uniform, and the fan-out on average, but not the edges that the whole graph draws.
    Uniform,
    /// As [`LaborSampler`](crate::LaborSampler).
    Labor,
    /// As [`ExactSampler`](crate::ExactSampler).
    Exact,
    /// As [`WeightedSampler`](crate::WeightedSampler).
    Weighted,
}

const RULES: [(Rule, &str); 4] = [
    (Rule::Uniform, "uniform"),
    (Rule::Labor, "labor"),
    (Rule::Exact, "exact"),
    (Rule::Weighted, "weighted"),
];

impl Rule {
    /// The name used in configurations.
    pub fn name(self) -> &'static str {
        RULES.iter().find(|(rule, _)| *rule == self).map_or("", |(_, name)| name)
    }

    /// Returns whether parts that each hold a share of a list draw from it together what one part would from the whole.
    pub fn merges(self) -> bool {
        self != Self::Uniform
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = RULES.iter().find(|(_, name)| *name == text);
        found.map(|(rule, _)| *rule).ok_or_else(|| {
            let known: Vec<&str> = RULES.iter().map(|(_, name)| *name).collect();
            Error::usage(format!("unknown sampling rule '{text}'"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }
}

/// Times that nodes are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsOf {
    /// The time of each node: only edges no later than that are drawn from, and counted by degrees.
    pub times: Vec<i64>,
    /// Which edges are drawn. [`Rule::Exact`] in the request draws them by their random numbers, as the parts of a vertex
    /// cut must.
    pub rule: TemporalRule,
}

/// A request for one hop from some nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct HopRequest {
    /// Distinct dataset ids; with times, distinct pairs of id and time.
    pub nodes: Vec<u64>,
    /// Most neighbors of a node; `u32::MAX` for all.
    pub fanout: u32,
    /// Sampling rule.
    pub rule: Rule,
    /// Random key; equal keys give equal draws.
    pub key: Key,
    /// True if the features of edges are asked for.
    pub edge_features: bool,
    /// Times of the nodes, if they are asked about at some.
    pub as_of: Option<AsOf>,
}

impl HopRequest {
    /// A request without features of edges, at no time.
    pub fn new(nodes: Vec<u64>, fanout: u32, rule: Rule, key: Key) -> Self {
        Self { nodes, fanout, rule, key, edge_features: false, as_of: None }
    }

    /// The request about some of its nodes: of equal draws, since each node has its own.
    ///
    /// # Panics
    /// If there are fewer nodes, or times.
    pub fn of(&self, range: Range<usize>) -> Self {
        let as_of = self.as_of.as_ref();
        let as_of =
            as_of.map(|as_of| AsOf { times: as_of.times[range.clone()].to_vec(), ..*as_of });
        Self { nodes: self.nodes[range].to_vec(), as_of, ..*self }
    }
}

/// The sampled neighbors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HopReply {
    /// Whole-graph in-degree of each requested node, or the part's own as of its time if it has one; 0 for nodes outside
    /// the part.
    pub asked_degrees: Vec<u32>,
    /// Offsets of each node's neighbors in `indices`, one more than requested nodes.
    pub indptr: Vec<u32>,
    /// Neighbors, as positions in `nodes`; those of a node ascend by dataset id, or by time if it was asked about at one.
    pub indices: Vec<u32>,
    /// Dataset ids.
    pub nodes: Vec<u64>,
    /// Their in-degrees in the whole graph; none in a heterogeneous graph, nor as of times.
    pub degrees: Option<Vec<u32>>,
    /// Weight of each edge, if edges have weights.
    pub weights: Option<Vec<f32>>,
    /// The random number of each edge, from parts that may hold only a share of a list.
    pub numbers: Option<Vec<u32>>,
    /// The time of each edge, from such parts, of nodes asked about at times.
    pub times: Option<Vec<i64>>,
    /// Features of the edges, a row for each, if they were asked for.
    pub edge_features: Option<Vec<f32>>,
}

impl HopReply {
    /// Rejects a reply that does not match a request for `asked` nodes of a graph of `nodes` nodes.
    ///
    /// # Errors
    /// If a length, an offset or an id is wrong.
    pub fn check(&self, asked: usize, nodes: usize) -> Result<()> {
        let edges = self.indices.len();
        let wrong = |what: &str| Err(Error::invalid(format!("invalid reply: {what}")));
        if self.indptr.len() != asked + 1 || self.asked_degrees.len() != asked {
            return wrong("another number of lists than requested");
        }
        if self.indptr[0] != 0 || !self.indptr.is_sorted() || self.indptr[asked] as usize != edges {
            return wrong("lists that do not cover its edges");
        }
        if self.degrees.as_ref().is_some_and(|degrees| degrees.len() != self.nodes.len())
            || self.weights.as_ref().is_some_and(|w| w.len() != edges)
            || self.numbers.as_ref().is_some_and(|n| n.len() != edges)
            || self.times.as_ref().is_some_and(|t| t.len() != edges)
        {
            return wrong("columns of different lengths");
        }
        if self.indices.iter().any(|&at| at as usize >= self.nodes.len()) {
            return wrong("an edge from no node");
        }
        match self.nodes.iter().find(|&&id| id >= nodes as u64) {
            Some(id) => wrong(&format!("node {id} of a graph of {nodes}")),
            None => Ok(()),
        }
    }
}
