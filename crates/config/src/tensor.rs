//! How full-graph steps are cut.

use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize, Serializer};

/// `[tensor]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TensorSection {
    /// Memory of each machine, such as `"8GiB"`, which its workers share. Not limited if absent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exactly")]
    pub memory: Option<ByteSize>,
    /// Chunks of nodes, at least; 0 leaves it to `memory`.
    pub chunks: usize,
    /// Whether chunks are exchanged while others are computed.
    pub overlap: bool,
    /// Folder for what does not fit into `memory`; the run's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<PathBuf>,
}

impl TensorSection {
    /// Whether steps are to be cut into chunks.
    pub fn is_chunked(&self) -> bool {
        self.memory.is_some() || self.chunks > 0
    }
}

/// Writes all bytes: what a run is cut into follows from them, when it goes on and when it is judged too.
fn exactly<S: Serializer>(memory: &Option<ByteSize>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{} B", memory.map_or(0, |memory| memory.as_u64())))
}

impl Default for TensorSection {
    fn default() -> Self {
        Self { memory: None, chunks: 0, overlap: true, spill: None }
    }
}
