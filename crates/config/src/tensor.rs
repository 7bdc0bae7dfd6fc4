//! Chunking of full-graph steps.

use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize, Serializer};

/// `[tensor]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TensorSection {
    /// Memory limit of each machine, such as `"8GiB"`, which its workers share; none by default.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exactly")]
    pub memory: Option<ByteSize>,
    /// Least number of node chunks; 0 lets `memory` decide.
    pub chunks: usize,
    /// True if exchanges of chunks overlap with computation.
    pub overlap: bool,
    /// Folder for data that does not fit into `memory`; by default the run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<PathBuf>,
}

impl TensorSection {
    /// Returns whether steps are split into chunks.
    pub fn is_chunked(&self) -> bool {
        self.memory.is_some() || self.chunks > 0
    }
}

/// Writes the size in bytes, unrounded: the chunks of a resumed run or an evaluation follow from it.
fn exactly<S: Serializer>(memory: &Option<ByteSize>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{} B", memory.map_or(0, |memory| memory.as_u64())))
}

impl Default for TensorSection {
    fn default() -> Self {
        Self { memory: None, chunks: 0, overlap: true, spill: None }
    }
}
