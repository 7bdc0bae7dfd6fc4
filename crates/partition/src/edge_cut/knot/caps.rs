//! The balanced quantities, and their bounds.

use gnarl_common::error::{Error, Result};

use super::level::{Level, Load};
use crate::balance::constraint::Constraint;
use crate::edge_cut::partitioner::PartitionOptions;

/// The balanced quantities, checked before the edges are read.
pub(super) fn chosen(options: &PartitionOptions) -> Result<&[Constraint]> {
    const ALL: [Constraint; 3] = [Constraint::Nodes, Constraint::Edges, Constraint::Train];
    let chosen = options.constraints.as_deref().unwrap_or(&ALL);
    match chosen.iter().find(|c| !ALL.contains(c)) {
        None => Ok(chosen),
        Some(other) => {
            Err(Error::usage(format!("knot does not support the constraint '{}'", other.name()))
                .hint(
                    "it supports nodes, edges and train; grem, spring and metis support the others",
                ))
        }
    }
}

/// Upper bounds of the parts.
pub(super) struct Caps {
    /// β times the share, and at least the largest node; no limit on quantities that are not to be
    /// balanced.
    pub most: Load,
    /// A single node has more edges than β times the share.
    pub outweighed: bool,
}

impl Caps {
    /// The bounds of the `chosen` quantities.
    pub fn new(graph: &Level, options: &PartitionOptions, chosen: &[Constraint]) -> Self {
        let mut edges = 0;
        let mut largest = 1;
        for v in 0..graph.len() as u32 {
            edges += graph.loads.of(v)[1];
            largest = largest.max(graph.loads.of(v)[1]);
        }
        let cap = |constraint: Constraint, total: u64| {
            let share = total as f64 / options.parts as f64;
            if chosen.contains(&constraint) {
                ((options.balance * share) as u64).max(share.ceil() as u64)
            } else {
                u64::MAX
            }
        };
        let edges = cap(Constraint::Edges, edges);
        let most = [
            cap(Constraint::Nodes, graph.len() as u64).max(1),
            edges.max(largest),
            cap(Constraint::Train, options.train.len() as u64).max(1),
        ];
        Self { most, outweighed: largest > edges }
    }
}
