//! Parts of the message graph of a task of edges, for runs on the whole dataset.

use gnarl_common::Result;
use gnarl_config::{RunConfig, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::PartitionedDataset;

use super::settings::TaskSettings;
use crate::data::asked::asked;
use crate::encoder::message_graph::MessageForm;
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
    let form = message_form((config, registry), dataset)?;
    settings.check(config, form.unwrap_or(settings.messages))
}

/// The form of the message graph of a run; none for tasks of nodes, whose graph is the dataset.
///
/// # Errors
/// Those of the dataset; if the type of the target edges is not told.
pub(crate) fn message_form(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
) -> Result<Option<MessageForm>> {
    Ok(match config.task.kind {
        kind if kind.is_of_nodes() => None,
        TaskKind::LinkPrediction => {
            Some(link::message_form((config, registry), dataset.plain().is_ok()))
        }
        _ => {
            let triple = &asked(dataset, config)?.triple;
            Some(edge::message_form((config, registry), dataset, &triple.src)?)
        }
    })
}
