//! What is balanced between parts.

use std::fmt;
use std::str::FromStr;

use gnarl_graph::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::partitioner::PartitionOptions;

/// A quantity of which every part is to hold its share (DistDGLv2 §5.3.2).
///
/// ```
/// use gnarl_partition::Constraint;
///
/// assert_eq!("train".parse::<Constraint>()?, Constraint::Train);
/// # Ok::<(), gnarl_graph::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constraint {
    /// Nodes.
    Nodes,
    /// Edges, counted as the degrees of a part's nodes.
    Edges,
    /// Training nodes.
    Train,
    /// Validation nodes.
    Valid,
    /// Test nodes.
    Test,
    /// The nodes of each type, one constraint a type.
    Types,
}

impl Constraint {
    const ALL: [Self; 6] =
        [Self::Nodes, Self::Edges, Self::Train, Self::Valid, Self::Test, Self::Types];

    /// The name it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Edges => "edges",
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
            Self::Types => "types",
        }
    }

    /// Adds the weights of the nodes under this constraint to `weights`: one list of weights for
    /// each node type under [`Constraint::Types`], otherwise one. `degree` gives a node's degree.
    pub(crate) fn weigh(
        self,
        options: &PartitionOptions,
        nodes: usize,
        degree: &dyn Fn(usize) -> i32,
        weights: &mut Vec<Vec<i32>>,
    ) {
        let marked = |ids: &mut dyn Iterator<Item = u64>| {
            let mut weight = vec![0; nodes];
            ids.for_each(|v| weight[v as usize] = 1);
            weight
        };
        match self {
            Self::Nodes => weights.push(vec![1; nodes]),
            Self::Edges => weights.push((0..nodes).map(degree).collect()),
            Self::Train => weights.push(marked(&mut options.train.iter().copied())),
            Self::Valid => weights.push(marked(&mut options.valid.iter().copied())),
            Self::Test => weights.push(marked(&mut options.test.iter().copied())),
            Self::Types => {
                weights.extend(options.types.iter().map(|range| marked(&mut range.clone())));
            }
        }
    }
}

impl FromStr for Constraint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|c| c.name() == text).ok_or_else(|| {
            Error::usage(format!("unknown constraint '{text}'"))
                .hint(format!("there are: {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_constraints_belong_together() {
        for constraint in Constraint::ALL {
            assert_eq!(constraint.to_string().parse::<Constraint>().unwrap(), constraint);
        }
        let error = "trian".parse::<Constraint>().unwrap_err();
        assert!(error.to_string().contains("nodes, edges, train"), "{error}");
    }

    #[test]
    fn each_type_is_a_constraint_of_its_own() {
        let options = PartitionOptions { types: vec![0..2, 2..3], ..Default::default() };
        let mut weights = Vec::new();
        Constraint::Types.weigh(&options, 3, &|_| 0, &mut weights);
        Constraint::Edges.weigh(&options, 3, &|v| v as i32, &mut weights);
        assert_eq!(weights, [[1, 1, 0], [0, 0, 1], [0, 1, 2]]);
    }
}
