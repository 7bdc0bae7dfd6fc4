//! The trait of vertex partitioners.

use std::ops::Range;

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::EdgeStream;

use crate::balance::constraint::Constraint;
use crate::read::chunk::Chunk;

/// Most parts of a graph.
pub const MAX_PARTS: usize = 1 << 16;

/// Assigns a part to each node.
///
/// Implementations are deterministic: the result is a function of the edges in their order, the
/// number of nodes and the options, never of the number of threads.
pub trait VertexPartitioner: Send + Sync {
    /// The name in the registry.
    fn name(&self) -> &'static str;

    /// Assigns every node of `edges` to one of `options.parts` parts.
    ///
    /// Edges may be directed, repeated or self loops; nodes may be isolated.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the number of parts is 0, above the number of nodes or above
    /// [`MAX_PARTS`]; [`Kind::InvalidInput`] if there are no nodes; [`Kind::Limit`] if the memory
    /// does not suffice.
    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment>;

    /// Upper bound of its memory in bytes for so many nodes and edges, its result included; `None`
    /// if unknown.
    fn memory(&self, _nodes: u64, _edges: u64, _parts: usize) -> Option<u64> {
        None
    }
}

/// Options of all vertex partitioners.
#[derive(Debug, Clone)]
pub struct PartitionOptions {
    /// Number of parts.
    pub parts: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// Maximum size of a part over the mean (β of CATGNN Equation 2).
    pub balance: f64,
    /// SPRING's τ_vol: clusters above this volume take and give no more nodes. `None`: the default
    /// of [`Spring`](crate::Spring).
    pub tau_vol: Option<u64>,
    /// GREM: edges per chunk.
    pub chunk: Chunk,
    /// GREM: passes over the edges at each level. 1 is the paper's algorithm; more start from a
    /// better seed and refine, see [`Grem`](crate::Grem).
    pub passes: u32,
    /// GREM: keeps nodes where they were first placed.
    pub freeze: bool,
    /// Balanced quantities, for partitioners that can choose. `None`: their own default.
    pub constraints: Option<Vec<Constraint>>,
    /// Training nodes, ascending graph-wide ids, for partitioners that balance them.
    pub train: Vec<u64>,
    /// Validation nodes, likewise.
    pub valid: Vec<u64>,
    /// Test nodes, likewise.
    pub test: Vec<u64>,
    /// Graph-wide ids of each node type.
    pub types: Vec<Range<u64>>,
    /// Memory limit in bytes.
    pub memory: u64,
}

impl Default for PartitionOptions {
    fn default() -> Self {
        Self {
            parts: 2,
            seed: 0,
            balance: 1.05,
            tau_vol: None,
            chunk: Chunk::default(),
            passes: 4,
            freeze: false,
            constraints: None,
            train: Vec::new(),
            valid: Vec::new(),
            test: Vec::new(),
            types: Vec::new(),
            memory: 4 << 30,
        }
    }
}

impl PartitionOptions {
    /// Rejects options that no partitioner can satisfy for a graph of `num_nodes`.
    pub fn check(&self, num_nodes: u64) -> Result<()> {
        if num_nodes == 0 {
            return Err(Error::invalid("the graph has no nodes to partition"));
        }
        if self.parts == 0 {
            return Err(Error::usage("invalid number of parts '0': expected at least 1"));
        }
        if self.parts as u64 > num_nodes {
            return Err(Error::usage(format!(
                "cannot partition {num_nodes} nodes into {} parts",
                self.parts
            ))
            .hint("ask for no more parts than there are nodes"));
        }
        if self.parts > MAX_PARTS {
            let asked = self.parts;
            return Err(Error::usage(format!(
                "invalid number of parts '{asked}': expected at most {MAX_PARTS}"
            )));
        }
        if self.balance.is_nan() || self.balance < 1.0 {
            return Err(Error::usage(format!(
                "invalid balance '{}': expected at least 1",
                self.balance
            ))
            .hint("1.05 allows parts 5 % larger than the mean"));
        }
        if self.passes == 0 {
            return Err(Error::usage("invalid number of passes '0': expected at least 1"));
        }
        self.chunk.check()
    }

    /// Most nodes a part may have: `balance` times the mean, but no less than the mean's ceiling.
    pub(crate) fn capacity(&self, num_nodes: u64) -> u64 {
        let mean = num_nodes as f64 / self.parts as f64;
        num_nodes.div_ceil(self.parts as u64).max((self.balance * mean).floor() as u64)
    }

    /// Adds the weights of the nodes under `constraint` to `weights`: one list of weights for
    /// each node type under [`Constraint::Types`], otherwise one. `degree` gives a node's degree.
    pub(crate) fn weigh(
        &self,
        constraint: Constraint,
        nodes: usize,
        degree: &dyn Fn(usize) -> i32,
        weights: &mut Vec<Vec<i32>>,
    ) {
        let marked = |ids: &mut dyn Iterator<Item = u64>| {
            let mut weight = vec![0; nodes];
            ids.for_each(|v| weight[v as usize] = 1);
            weight
        };
        match constraint {
            Constraint::Nodes => weights.push(vec![1; nodes]),
            Constraint::Edges => weights.push((0..nodes).map(degree).collect()),
            Constraint::Train => weights.push(marked(&mut self.train.iter().copied())),
            Constraint::Valid => weights.push(marked(&mut self.valid.iter().copied())),
            Constraint::Test => weights.push(marked(&mut self.test.iter().copied())),
            Constraint::Types => {
                weights.extend(self.types.iter().map(|range| marked(&mut range.clone())));
            }
        }
    }

    /// Returns an error if `needed` exceeds the memory limit.
    pub(crate) fn check_memory(&self, name: &str, needed: u64, hint: &str) -> Result<()> {
        if needed <= self.memory {
            return Ok(());
        }
        let (needed, allowed) = (needed >> 20, self.memory >> 20);
        Err(Error::new(
            Kind::Limit,
            format!("{name} requires {needed} MiB for this graph, but {allowed} MiB are allowed"),
        )
        .hint(hint))
    }
}

/// The part of every node. Two bytes a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Number of parts.
    pub parts: usize,
    /// Part of each node, by graph-wide id.
    pub of: Vec<u16>,
}

impl Assignment {
    /// Nodes in each part.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0; self.parts];
        self.of.iter().for_each(|&p| sizes[p as usize] += 1);
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_a_constraint_of_its_own() {
        let options = PartitionOptions { types: vec![0..2, 2..3], ..Default::default() };
        let mut weights = Vec::new();
        options.weigh(Constraint::Types, 3, &|_| 0, &mut weights);
        options.weigh(Constraint::Edges, 3, &|v| v as i32, &mut weights);
        assert_eq!(weights, [[1, 1, 0], [0, 0, 1], [0, 1, 2]]);
    }
}
