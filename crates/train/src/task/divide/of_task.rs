//! Parts of the message graph of a task of edges, for runs on the whole dataset.

use gnarl_common::Result;
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::PartitionedDataset;

use super::settings::TaskSettings;
use crate::registry::Registry;
use crate::task::{edge, link};

/// Rejects parts of another graph than the one that messages pass over in the batches of `config`, for tasks of edges.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] with the command that makes parts for the task; those of the dataset.
pub(crate) fn check_of_task(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    cut: &PartitionedDataset,
) -> Result<()> {
    let settings = TaskSettings::of(cut)?;
    let form = match config.task.kind {
        TaskKind::LinkPrediction => link::message_form((config, registry), dataset.plain().is_ok()),
        _ => edge::message_form((config, registry), dataset, &settings.edge_type.src)?,
    };
    settings.check(config, form)
}
