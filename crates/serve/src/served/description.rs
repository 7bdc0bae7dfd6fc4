//! A server's description of its parts.

use serde::{Deserialize, Serialize};

/// The description of one node type of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Part number.
    pub part: usize,
    /// Node type.
    #[serde(default)]
    pub ntype: String,
    /// Number of own nodes.
    pub nodes: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Feature width; 0 without features.
    pub feature_width: usize,
    /// True if features are sparse.
    pub sparse: bool,
    /// Number of classes, or of labels in multi-label data; 0 without labels.
    pub outputs: usize,
}
