//! Balance constraints.

use std::fmt;
use std::str::FromStr;

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A quantity of which every part is to have its share (DistDGLv2 §5.3.2).
///
/// ```
/// use gnarl_partition::Constraint;
///
/// assert_eq!("train".parse::<Constraint>()?, Constraint::Train);
/// # Ok::<(), gnarl_common::Error>(())
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

    /// The name in configurations.
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
}
