//! Columns of a batch's nodes and edges.

use gnarl_common::memory::Table;

/// Features of nodes or edges, in memory that later batches use again.
#[derive(Debug)]
pub struct FeatureRows {
    /// A row for each, one after the other.
    pub values: Table<f32>,
    /// Values of a row.
    pub width: usize,
}

impl PartialEq for FeatureRows {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width && self.values[..] == other.values[..]
    }
}

/// The labels of the nodes of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelRows {
    /// A class for each node; -1 where there is none.
    Classes(Vec<i64>),
    /// 0 or 1 for each node and task, `nodes × tasks`.
    Tasks(Vec<f32>, usize),
    /// A number for each node; NaN where there is none.
    Values(Vec<f32>),
}
