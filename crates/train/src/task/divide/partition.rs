//! Parts for the task of a run file.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::support::Combination;
use gnarl_config::{RunConfig, Strategy, TaskKind};
use gnarl_graph::Dataset;
use gnarl_partition::{PartitionConfig, PartitionReport, PartitionedDataset};

use crate::registry::Registry;
use crate::task::{edge, link};

/// Partitions `dataset` by `parts` for the task of edges of `config`, to `out`, which must not exist: the message graph
/// of the task, and beside each part the target edges whose heads it owns. Memory: that of
/// [`gnarl_partition::partition_dataset`], and an entry for each held-out edge.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] for tasks of nodes, and for runs that do not train; those of the dataset and of
/// partitioning.
pub fn partition_for_task(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    parts: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let heterogeneous = dataset.plain().is_err();
    let mut on_parts = config.clone();
    if config.train.strategy == Strategy::Disaggregated {
        // It requires parts, which are these.
        on_parts.partition.path = Some(out.into());
    }
    Combination { run: &on_parts, heterogeneous }.check()?;
    match config.task.kind {
        TaskKind::LinkPrediction => link::divide((config, registry), dataset, parts, out),
        kind if kind.is_of_edges() => edge::divide((config, registry), dataset, parts, out),
        _ => Err(Error::usage("tasks of nodes train on the parts of their dataset")
            .hint("leave out --task")),
    }
}
