//! The loss of labels of nodes.

use gnarl_graph::Labels;
use gnarl_nn::{Tape, Var};

/// Labels of some nodes as losses take them.
pub(crate) enum Targets {
    /// One class a node.
    Classes(Vec<u32>),
    /// A row of 0 and 1 a node.
    Multi(Vec<f32>),
}

/// The labels of `nodes`.
pub(crate) fn targets_of(labels: &Labels, nodes: &[u32]) -> Targets {
    match labels {
        Labels::Single { classes, .. } => {
            Targets::Classes(nodes.iter().map(|&v| classes[v as usize].max(0) as u32).collect())
        }
        Labels::Multi { values, tasks } => {
            let row = |&v: &u32| &values[v as usize * tasks..(v as usize + 1) * tasks];
            Targets::Multi(nodes.iter().flat_map(row).map(|&b| f32::from(b)).collect())
        }
    }
}

/// The summed loss of rows `rows` of `logits`: cross-entropy of classes, or mean binary
/// cross-entropy of several labels.
pub(crate) fn add_loss(
    tape: &mut Tape<'_>,
    logits: Var,
    rows: &[u32],
    targets: &Targets,
    weights: Option<&[f32]>,
) -> Var {
    match targets {
        Targets::Classes(classes) => tape.cross_entropy(logits, rows, classes, weights, 1.0),
        Targets::Multi(values) => tape.bce_with_logits(logits, rows, values, weights, 1.0),
    }
}
