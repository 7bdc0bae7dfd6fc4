//! Writing of parts for a task.

use std::path::Path;

use gnarl_common::staging::Staging;
use gnarl_common::{Context, Result};
use gnarl_graph::Dataset;
use gnarl_partition::{
    LabelOf, PartitionConfig, PartitionReport, PartitionedDataset, TakeTarget, TargetLabels,
    Targets, partition_with_targets,
};

use super::settings::TaskSettings;
use crate::data::edge_set::EdgeSet;
use crate::encoder::message_graph::{MessageForm, OnDisk, Passing};

/// The parts of a task to be written.
pub(crate) struct Division<'a> {
    pub dataset: &'a Dataset,
    pub settings: TaskSettings,
    pub relations: usize,
    pub relation_names: Vec<String>,
    /// Edges of the message graph that pass no messages, for the form by types.
    pub held: &'a EdgeSet,
    pub labels: Option<(TargetLabels, LabelOf<'a>)>,
    /// True if the features of target edges are written, too.
    pub with_features: bool,
    /// True if the times of target edges are written, too.
    pub with_times: bool,
}

/// Hands the target edges of a task to its argument, the same ones in every pass.
pub(crate) type EachTarget<'a> = dyn FnMut(&mut TakeTarget<'_>) -> Result<()> + 'a;

impl Division<'_> {
    /// Partitions the message graph, whose edges `passing` hands over, by `parts`, and writes the edges of `targets` beside
    /// its parts, to `out`. Without messages the dataset itself is partitioned. The message graph is on disk meanwhile.
    ///
    /// # Errors
    /// As [`partition_with_targets`], and if the message graph cannot be written.
    pub fn write(
        self,
        (passing, targets): (&mut Passing<'_>, &mut EachTarget<'_>),
        parts: &PartitionConfig,
        out: &Path,
    ) -> Result<(PartitionedDataset, PartitionReport)> {
        let Self { dataset, settings, relations, relation_names, held, labels, .. } = self;
        let (with_features, timed) = (self.with_features, self.with_times);
        let triple = settings.edge_type.clone();
        let staging = match settings.messages {
            MessageForm::None => None,
            _ => Some(Staging::create(&beside(out), "dataset.json")?),
        };
        let messages = match &staging {
            None => None,
            Some(staging) => {
                let memory = parts.memory;
                let form = settings.messages;
                let messages = OnDisk {
                    source: dataset,
                    form,
                    triple: &triple,
                    relations,
                    held,
                    timed,
                    memory,
                };
                Some(messages.write(passing, &staging.path().join("messages"))?)
            }
        };
        let targets = Targets {
            source: dataset,
            triple,
            settings: serde_json::to_value(&settings).unwrap_or_default(),
            relations: relations as u64,
            relation_names,
            labels,
            with_features,
            with_times: timed,
            each: targets,
        };
        partition_with_targets(messages.as_ref().unwrap_or(dataset), targets, parts, out)
            .while_doing(|| "making parts for the task")
    }
}

/// The place of the message graph while parts are made of it.
fn beside(out: &Path) -> std::path::PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    out.with_file_name(format!("{name}.messages"))
}
