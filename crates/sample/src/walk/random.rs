//! Walks in a homogeneous graph.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};

use super::bias::Bias;
use crate::SampleGraph;

/// Random walks along in-neighbors: uniform, with restarts, or biased as in node2vec.
///
/// A step is a pure function of the key, the walk's number, the step's number, and the lists in the
/// order of dataset ids. A walk ends early at a node without in-neighbors; with restarts it goes
/// back to its start from there, unless the start is such a node. In a part, walks that leave its
/// own nodes see the lists that its halo has.
///
/// ```
/// use gnarl_common::rng::Key;
/// use gnarl_graph::Csc;
/// use gnarl_sample::{RandomWalk, SampleGraph};
///
/// let path = SampleGraph::new(Csc::from_edges(4, &[(1, 0), (2, 1), (3, 2)]))?;
/// let mut nodes = Vec::new();
/// RandomWalk::new(&path, 2)?.walk(0, 0, Key::new(1), &mut nodes)?;
/// assert_eq!(nodes, [0, 1, 2]);
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RandomWalk {
    graph: SampleGraph,
    length: usize,
    restart: f64,
    bias: Option<Bias>,
}

impl RandomWalk {
    /// Walks of `length` steps in `graph`.
    ///
    /// # Errors
    /// If `length` is 0.
    pub fn new(graph: &SampleGraph, length: usize) -> Result<Self> {
        if length == 0 {
            return Err(Error::usage("a random walk requires at least one step"));
        }
        Ok(Self { graph: graph.clone(), length, restart: 0.0, bias: None })
    }

    /// Makes a step return to the start with probability `restart`, instead of going on.
    ///
    /// # Errors
    /// If it is not in `[0, 1)`.
    pub fn with_restart(mut self, restart: f64) -> Result<Self> {
        if !(0.0..1.0).contains(&restart) {
            return Err(Error::usage(format!(
                "invalid restart probability '{restart}': expected a number in [0, 1)"
            ))
            .hint("it must be at least 0 and below 1"));
        }
        self.restart = restart;
        Ok(self)
    }

    /// Biases each step by the node before the last (node2vec: Grover and Leskovec, KDD 2016,
    /// section 3.2.2): returning to it weighs `1 / p`, going to one of its in-neighbors 1, going
    /// elsewhere `1 / q`. A step then takes several tries, each of which searches a list.
    ///
    /// # Errors
    /// If `p` or `q` is not between 0.01 and 100.
    pub fn with_bias(mut self, p: f64, q: f64) -> Result<Self> {
        self.bias = Some(Bias::new(p, q)?);
        Ok(self)
    }

    /// The graph walked in.
    pub fn graph(&self) -> &SampleGraph {
        &self.graph
    }

    /// Appends walk number `number` from `start` to `out`: the start, then the node after each
    /// step. Walks of the same key and number make the same choices, from whatever start.
    ///
    /// # Errors
    /// If `start` is not a node, or a list is not inside the graph.
    pub fn walk(&self, start: u32, number: u64, key: Key, out: &mut Vec<u32>) -> Result<()> {
        let view = self.graph.view();
        if start as usize >= view.num_nodes() {
            let nodes = view.num_nodes();
            return Err(Error::invalid(format!("start {start} is not one of {nodes} nodes")));
        }
        out.push(start);
        let key = key.with(number);
        let mut before = None;
        let mut node = start;
        let mut list = view.list(start)?;
        for step in 0..self.length as u64 {
            let key = key.with(step);
            let back = self.restart > 0.0 && key.unit(0) < self.restart;
            let (from, degree) = list;
            let next = match (self.bias, before) {
                _ if back || degree == 0 => None,
                (Some(bias), Some(before)) => Some(bias.step(view, before, list, key.with(1))?),
                _ => Some(view.source(from + key.below(1, degree.into()) as usize)?),
            };
            let stuck = degree == 0 && (node == start || self.restart == 0.0);
            match next {
                None if stuck => break,
                None => (before, node) = (None, start),
                Some(next) => (before, node) = (Some(node), next),
            }
            out.push(node);
            list = view.list(node)?;
        }
        Ok(())
    }
}
