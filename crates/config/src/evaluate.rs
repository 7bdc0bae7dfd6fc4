//! Evaluation and inference.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// `[evaluate]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateSection {
    /// Memory of layer-wise inference, such as `"2GiB"`: rows beyond it go to files. By default a quarter of the memory
    /// that is free when the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
}
