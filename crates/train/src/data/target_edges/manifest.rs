//! Target edges beside parts.

use gnarl_common::{Error, Result};
use gnarl_partition::{PartitionedDataset, TargetsManifest};

/// The target edges of a partition.
///
/// # Errors
/// If it has none.
pub(crate) fn of_partition(cut: &PartitionedDataset) -> Result<&TargetsManifest> {
    cut.manifest().targets.as_ref().ok_or_else(|| {
        Error::usage(format!("{}: the parts have no target edges", cut.dir().display()))
            .hint("make parts for this run: gnarl partition DATASET --task RUN.toml")
    })
}
