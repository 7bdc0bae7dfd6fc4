//! How full-graph steps are cut.

use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// `[tensor]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TensorSection {
    /// Memory of each machine, such as `"8GiB"`, which its workers share. Not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// Chunks of nodes, at least; 0 leaves it to `memory`.
    pub chunks: usize,
    /// Whether chunks are exchanged while others are computed.
    pub overlap: bool,
    /// Folder for what does not fit into `memory`; the run's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<PathBuf>,
}

impl Default for TensorSection {
    fn default() -> Self {
        Self { memory: None, chunks: 0, overlap: true, spill: None }
    }
}
