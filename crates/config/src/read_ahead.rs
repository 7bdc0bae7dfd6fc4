//! Reading ahead of batches, where files exceed memory.

use serde::{Deserialize, Serialize};

/// Reading of the pages of mapped files that batches need ahead of them, many at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAhead {
    /// Where files exceed the memory that is free.
    #[default]
    Auto,
    /// In every run.
    Always,
    /// In no run.
    Never,
}
