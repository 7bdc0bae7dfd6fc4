//! Target edges: the edges that a task predicts, beside the parts of its message graph. A part has those whose heads
//! it owns, so that workers read and evaluate their share of a task without the dataset.

mod files;
mod labels;
mod pass;
mod reader;
mod search;
mod write;

use gnarl_common::error::Result;
use gnarl_graph::{ColumnSpec, Dataset, Triple};
use serde::{Deserialize, Serialize};

pub use labels::{LabelOf, TargetLabels};
pub use reader::{PartTargets, SplitTargets};
pub(crate) use write::write;

/// Directory of the target edges, within a part's.
pub(crate) const TARGETS: &str = "targets";
/// The splits, in the order of their numbers.
const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// The target edges of a task, in `partition.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetsManifest {
    /// Type of the edges in the dataset, `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// The settings that the edges and the message graph follow from, as the caller gave them.
    pub settings: serde_json::Value,
    /// Number of relations.
    pub relations: u64,
    /// Names of relations; empty if they are numbers.
    pub relation_names: Vec<String>,
    /// Number of edges by split (`train`, `valid`, `test`) and part.
    pub counts: [Vec<u64>; 3],
    /// Kind of the labels, if edges have any.
    pub labels: Option<TargetLabels>,
    /// Width of the features of edges; 0 without features.
    pub feature_width: u64,
    /// True if edges have times.
    #[serde(default)]
    pub times: bool,
    /// Columns by part and split, in files of `part-<i>/targets`: `place` (u32, ascending: the number of the edge in
    /// its split), `head`, `relation` and `tail` (u32, dataset ids within their node types), `label` (i32, f32, or
    /// rows of u8), `features` and `time` (i64).
    pub parts: Vec<[Vec<ColumnSpec>; 3]>,
}

impl TargetsManifest {
    /// Number of edges of a split in all parts.
    pub fn split_len(&self, split: usize) -> u64 {
        self.counts[split].iter().fold(0, |sum, &count| sum.saturating_add(count))
    }
}

/// A target edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetEdge {
    /// 0 to 2: `train`, `valid`, `test`.
    pub split: usize,
    /// Source, by its dataset id within its node type.
    pub head: u32,
    /// Number of the relation; 0 where there are none.
    pub relation: u32,
    /// Destination, by its dataset id within its node type.
    pub tail: u32,
    /// Row of the edge in the dataset.
    pub row: u64,
    /// Time; not written unless times are.
    pub time: i64,
}

/// Receives the target edges of a task in the order of the dataset.
pub type TakeTarget<'a> = dyn FnMut(TargetEdge) -> Result<()> + 'a;

/// The target edges of a task, to be written.
pub struct Targets<'a> {
    /// The dataset of the edges, whose column `features` has their features.
    pub source: &'a Dataset,
    /// Type of the edges in `source`.
    pub triple: Triple,
    /// See [`TargetsManifest::settings`].
    pub settings: serde_json::Value,
    /// Number of relations; 0 or 1 where there are none.
    pub relations: u64,
    /// Names of relations; empty if they are numbers.
    pub relation_names: Vec<String>,
    /// Kind of the labels and the label of each edge, if edges have any.
    pub labels: Option<(TargetLabels, LabelOf<'a>)>,
    /// Also writes the features of edges.
    pub with_features: bool,
    /// Also writes the times of edges.
    pub with_times: bool,
    /// Streams every target edge, in dataset order, into its argument. Called once per group of parts whose files
    /// can be open together, and streams the same edges every time.
    pub each: &'a mut dyn FnMut(&mut TakeTarget<'_>) -> Result<()>,
}
