//! Parts of the message graph of a task of edges, for runs on the whole dataset.

use gnarl_common::Result;
use gnarl_config::RunConfig;
use gnarl_partition::PartitionedDataset;

use super::settings::TaskSettings;
use crate::encoder::message_graph::MessageForm;

/// Rejects parts of another graph than the one that messages pass over in the batches of `config`, for tasks of edges on
/// graphs without types.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the command that makes parts for the task.
pub(crate) fn check_of_task(config: &RunConfig, cut: &PartitionedDataset) -> Result<()> {
    TaskSettings::of(cut)?.check(config, MessageForm::Edges)
}
