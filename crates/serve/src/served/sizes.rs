//! Bytes of rows in replies, as far as they are known before the rows are read.

use gnarl_common::Result;
use gnarl_graph::{Labels, Triple};
use gnarl_store::{FeatureStore, RowSource};

use super::ServedPart;
use crate::command::Column;

/// Bytes of an edge with its source, the degree of it, weight, number and time.
const EDGE: u64 = 28;
/// Bytes of a target edge with its position, label and time.
const TARGET: u64 = 32;
/// Bytes of a value.
const VALUE: u64 = 4;

impl ServedPart {
    /// Bytes of a row of a column, on average.
    ///
    /// # Errors
    /// If there is no such type or column.
    pub(crate) fn row_bytes(&self, ntype: Option<&str>, column: Column) -> Result<u64> {
        let own = self.of(ntype)?;
        Ok(match column {
            // Stored values are widened on their way.
            Column::Features | Column::Stored => {
                let stored = own.stored()?;
                match stored.is_sparse() {
                    true => stored.num_bytes() / own.count().max(1) + VALUE,
                    false => stored.width() as u64 * VALUE,
                }
            }
            Column::Embedding => self.lock_table()?.table.width() as u64 * VALUE,
            Column::Label => own.labels.as_ref().map_or(VALUE, |labels| match labels {
                Labels::Multi { tasks, .. } => *tasks as u64,
                Labels::Single { .. } | Labels::Values { .. } => VALUE,
            }),
            Column::Split => 1,
            Column::Time => 2 * VALUE,
        })
    }

    /// Bytes of a sampled edge, with its features if they are asked for.
    ///
    /// # Errors
    /// If there is no such type.
    pub(crate) fn edge_bytes(&self, etype: Option<&Triple>, features: bool) -> Result<u64> {
        let width = if features { self.neighbors(etype)?.edge_feature_width() } else { 0 };
        Ok(EDGE + width as u64 * VALUE)
    }

    /// Bytes of a target edge.
    pub(crate) fn target_bytes(&self) -> u64 {
        let labels = self.targets.as_ref().map_or(0, |targets| targets.outputs());
        TARGET + labels as u64 + self.target_feature_width() as u64 * VALUE
    }
}
