//! The layout of parts on disk.

use std::fmt;
use std::str::FromStr;

use gnarl_common::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The contents of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartLayout {
    /// Its own nodes with their full neighbor lists, and HALO copies of other parts' nodes.
    #[default]
    EdgeCut,
    /// The edges that an edge partitioner assigned to it, each edge of the graph in one part, and
    /// the rows of its own nodes, see [`VertexCutPart`](crate::VertexCutPart).
    VertexCut,
    /// Its own nodes once, without lists: edges are in buckets by the parts of their endpoints, see
    /// [`EdgeBuckets`](crate::EdgeBuckets). A worker that holds some parts makes their lists.
    Storage,
}

impl PartLayout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::EdgeCut, Self::VertexCut, Self::Storage];

    /// The name on the command line and in `partition.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::EdgeCut => "edge-cut",
            Self::VertexCut => "vertex-cut",
            Self::Storage => "storage",
        }
    }
}

impl fmt::Display for PartLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PartLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|l| l.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::usage(format!("unknown layout '{text}'")).hint(format!("there are: {known}"))
        })
    }
}
