//! Bodies of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An id as the client writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "an id is an integer or a text")]
pub(super) enum Id {
    Integer(i64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(id) => id.fmt(f),
            Self::Text(id) => write!(f, "'{id}'"),
        }
    }
}

/// The body of `POST /nodes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodesBody {
    pub ids: Vec<Id>,
    #[serde(default)]
    pub what: Vec<String>,
    #[serde(default)]
    pub node_type: Option<String>,
}

/// An edge as the client writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "an edge is [head, tail] or [head, relation, tail]")]
pub(super) enum Edge {
    Pair(Id, Id),
    Triple(Id, Id, Id),
}

impl Edge {
    pub fn head(&self) -> &Id {
        match self {
            Self::Pair(head, _) | Self::Triple(head, ..) => head,
        }
    }

    pub fn relation(&self) -> Option<&Id> {
        match self {
            Self::Pair(..) => None,
            Self::Triple(_, relation, _) => Some(relation),
        }
    }

    pub fn tail(&self) -> &Id {
        match self {
            Self::Pair(_, tail) | Self::Triple(.., tail) => tail,
        }
    }
}

/// The body of `POST /edges`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgesBody {
    pub edges: Vec<Edge>,
    #[serde(default)]
    pub what: Vec<String>,
}
