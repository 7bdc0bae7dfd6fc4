//! Parts for tasks of nodes.

use gnarl_common::{Error, Result};
use gnarl_partition::PartitionedDataset;

/// Rejects parts of the message graph of a task of edges, for tasks of nodes.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the command that makes parts of the dataset.
pub(crate) fn check_of_dataset(cut: &PartitionedDataset) -> Result<()> {
    match &cut.manifest().targets {
        None => Ok(()),
        Some(targets) => Err(Error::usage(format!(
            "{}: the parts are those of a message graph, made to predict edges of type {}",
            cut.dir().display(),
            targets.triple
        ))
        .hint("partition the dataset without --task")),
    }
}
