//! Notes of importers for their report.

use serde::Serialize;

/// Findings while columns were written, for the [`ImportReport`](super::ImportReport).
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub left_out: Vec<LeftOut>,
    pub renumbered_classes: Vec<String>,
}

/// Members of a split without a label, which are left out of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Node type, or edge type as `source:relation:destination`.
    #[serde(rename = "type")]
    pub of_type: String,
    /// Name of the split.
    pub split: String,
    /// Members left out.
    pub unlabeled: u64,
    /// Members that the input listed.
    pub of: u64,
}
