//! The description of a part that a server gives.

use serde::{Deserialize, Serialize};

/// What a server says of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Which part.
    pub part: usize,
    /// The type of the nodes that this is about.
    #[serde(default)]
    pub ntype: String,
    /// Nodes it owns.
    pub nodes: u64,
    /// Columns they have.
    pub columns: Vec<String>,
    /// Width of a feature row; 0 without features.
    pub feature_width: usize,
    /// Whether feature rows are sparse.
    pub sparse: bool,
    /// Number of classes, or of labels that may hold for a node; 0 without labels.
    pub outputs: usize,
}
