//! Negatives: nodes that are drawn beside the edges of a batch.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use crate::graph::LoaderGraph;

/// Pairs of nodes that are drawn beside the edges of a batch, uniformly or by weights, whether the graph has such an edge or
/// not.
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

impl Negatives {
    /// The edge that a negative belongs to among those of a batch, and its number among the negatives of that edge.
    pub(crate) fn example(self, negative: usize, edges: usize) -> (usize, usize) {
        match self {
            Self::Destinations(each) => (negative / each, negative % each),
            _ => (negative % edges, negative / edges),
        }
    }
}

/// The nodes of one type among which negatives are drawn: in time, those that are there.
#[derive(Debug)]
pub(crate) struct Candidates {
    node_type: String,
    count: usize,
    /// The nodes in the order of their times, and these, in time where nodes have some.
    in_time: Option<(Vec<u32>, Vec<i64>)>,
    /// Sums of the weights of the nodes up to each, in that order.
    sums: Option<Vec<f64>>,
}

impl Candidates {
    /// All nodes of a type, all alike or by their weights.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is no node, or there are weights of another number of nodes, a negative one, or
    /// none above zero.
    pub fn new(
        graph: &LoaderGraph,
        node_type: usize,
        weights: Option<&[f64]>,
        timed: bool,
    ) -> Result<Self> {
        let name = graph.schema().node_types()[node_type].clone();
        let count = graph.num_nodes(node_type);
        if count == 0 {
            let message =
                format!("negatives are drawn among nodes of type '{name}': there are none");
            return Err(Error::usage(message));
        }
        let nodes: Vec<u32> = (0..count as u32).collect();
        let times = if timed { graph.times_of(node_type, &nodes) } else { None };
        let in_time = times.map(|times| {
            let mut order = nodes;
            order.sort_by_key(|&node| (times[node as usize], node));
            let sorted = order.iter().map(|&node| times[node as usize]).collect();
            (order, sorted)
        });
        let order = in_time.as_ref().map(|(order, _)| &order[..]);
        let sums = weights.map(|weights| sums(weights, order, (&name, count))).transpose()?;
        Ok(Self { node_type: name, count, in_time, sums })
    }

    /// A node by a key, which is there at a time.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if none is there, or none that has a weight.
    pub fn draw(&self, key: Key, time: Option<i64>) -> Result<u32> {
        let there = match (&self.in_time, time) {
            (Some((_, times)), Some(time)) => times.partition_point(|&from| from <= time),
            _ => self.count,
        };
        let place = match &self.sums {
            None if there > 0 => key.below(0, there as u64) as usize,
            Some(sums) if there > 0 && sums[there - 1] > 0.0 => {
                let sums = &sums[..there];
                let target = key.unit(0) * sums[there - 1];
                // Rounding may reach the sum itself, whose node has a weight.
                let last = sums.partition_point(|&sum| sum < sums[there - 1]);
                sums.partition_point(|&sum| sum <= target).min(last)
            }
            _ => {
                let Self { node_type, .. } = self;
                let time = time.unwrap_or_default();
                let message = format!(
                    "no node of type '{node_type}' is there at time {time} to be a negative"
                );
                return Err(Error::usage(message)
                    .hint("leave out edges that are sooner than nodes, or negatives"));
            }
        };
        Ok(self.in_time.as_ref().map_or(place as u32, |(order, _)| order[place]))
    }
}

/// The sums of weights in an order of nodes.
fn sums(weights: &[f64], order: Option<&[u32]>, (name, count): (&str, usize)) -> Result<Vec<f64>> {
    if weights.len() != count {
        let given = weights.len();
        let message = format!("{given} weights of negatives for {count} nodes of type '{name}'");
        return Err(Error::usage(message).hint("give one for each"));
    }
    let wrong = |weight: &f64| !(weight.is_finite() && *weight >= 0.0);
    if let Some(node) = weights.iter().position(wrong) {
        let message = format!("invalid weight {} of node {node} as a negative", weights[node]);
        return Err(Error::usage(message).hint("expected numbers from 0"));
    }
    let mut sum = 0.0;
    let mut add = |weight: f64| {
        sum += weight;
        sum
    };
    let sums: Vec<f64> = match order {
        Some(order) => order.iter().map(|&node| add(weights[node as usize])).collect(),
        None => weights.iter().map(|&weight| add(weight)).collect(),
    };
    match sum > 0.0 && sum.is_finite() {
        true => Ok(sums),
        false => Err(Error::usage(format!("weights of negatives have the sum {sum}"))
            .hint("expected a positive number")),
    }
}
