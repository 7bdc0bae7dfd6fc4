//! Training edges of runs on parts.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_config::{RunConfig, Strategy};
use gnarl_partition::PartitionedDataset;
use gnarl_serve::PartAccess;

use crate::data::target_edges::EdgesInParts;

/// The training edges beside the parts of `cut`, for parts that train together or alone; tails are numbered from the
/// second of `parts` on.
///
/// # Errors
/// If the partition has no target edges, or a part is damaged.
pub(crate) fn training_edges(
    config: &RunConfig,
    cut: &PartitionedDataset,
    (parts, first_tail): (Arc<[PartAccess]>, u32),
) -> Result<EdgesInParts> {
    let edges = EdgesInParts::new(cut, parts, first_tail)?;
    match config.train.strategy {
        Strategy::Average => edges.alone(),
        _ => Ok(edges),
    }
}
