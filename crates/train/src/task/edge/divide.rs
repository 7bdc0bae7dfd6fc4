//! Parts for edge prediction.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::{MessagesOver, RunConfig};
use gnarl_graph::Dataset;
use gnarl_graph::triples::Triples;
use gnarl_partition::{
    LabelOf, PartitionConfig, PartitionReport, PartitionedDataset, TakeTarget, TargetEdge,
    TargetLabels,
};

use super::reader::EdgeReader;
use super::splits::{is_relational, ways};
use super::targets::LabelColumn;
use crate::data::edge_set::{EdgeSet, both_ways};
use crate::data::target_edges::TakeEdge;
use crate::encoder::message_graph::MessageForm;
use crate::registry::Registry;
use crate::task::divide::{Division, Splits, TaskSettings};

/// The message graph of a model, over a dataset of one node type and one edge type or another one.
///
/// # Errors
/// If columns are damaged.
pub(crate) fn message_form(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    node_type: &str,
) -> Result<MessageForm> {
    Ok(match dataset.plain().is_ok() {
        false => MessageForm::Types,
        true if is_relational((config, registry), dataset, node_type)? => MessageForm::Relations,
        true => MessageForm::Edges,
    })
}

/// Partitions `dataset` for edge prediction by `config`.
///
/// # Errors
/// Those of [`EdgeReader`] and of partitioning.
pub(crate) fn divide(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    parts: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let reader = EdgeReader::open(dataset, config)?;
    let timed = config.samples_by_time();
    let triple = reader.triple().clone();
    let form = message_form((config, registry), dataset, &triple.src)?;
    let ways = ways(dataset, (config, registry), &triple, reader.relations)?;
    let mut held_out = Triples::default();
    let kept = reader.each(&mut |edge| {
        if edge.split.is_some_and(|split| split > 0) {
            held_out.push(edge.head, edge.relation, edge.tail);
        }
        Ok(())
    })?;
    reader.report(&kept);
    if kept.labeled[0] == 0 {
        return Err(Error::invalid(format!("{}: no training edges", reader.place()))
            .hint("import with --edge-split train=…, or set dataset.split in the run file"));
    }
    let held = match config.task.messages {
        MessagesOver::All => EdgeSet::new(),
        // Times tell which edges pass messages.
        MessagesOver::Known if timed => EdgeSet::new(),
        MessagesOver::Known => both_ways(&held_out, &ways),
    };
    let settings = TaskSettings {
        timed,
        kind: config.task.kind,
        edge_type: triple.clone(),
        messages: form,
        features: dataset.features(&triple.src)?.is_some(),
        splits: Splits::Labeled {
            label: config.task.label.clone(),
            over: config.task.messages,
            split: config.dataset.split.clone(),
            features: config.task.edge_features,
        },
        leaking: 0,
    };
    let class = |row: u64| reader.labels.class(row);
    let marks = |row: u64, out: &mut Vec<u8>| reader.labels.marks(row, out);
    let value = |row: u64| reader.labels.value(row);
    let labels = match &reader.labels {
        LabelColumn::Classes(_, count) => {
            (TargetLabels::Classes(*count as u64), LabelOf::Class(&class))
        }
        LabelColumn::Marks(_, tasks) => {
            (TargetLabels::Multi(*tasks as u64), LabelOf::Marks(&marks))
        }
        LabelColumn::Values(_) => (TargetLabels::Values, LabelOf::Value(&value)),
    };
    let mut passing = |take: &mut TakeEdge<'_>| {
        let each = reader.each(&mut |edge| {
            let there = (ways(edge.relation).forth, edge.head.into(), edge.tail.into());
            if held.contains(&there) { Ok(()) } else { take(edge) }
        });
        each.map(drop)
    };
    let mut targets = |take: &mut TakeTarget<'_>| {
        let each = reader.each(&mut |edge| match edge.split {
            None => Ok(()),
            Some(split) => {
                let (head, relation, tail, row) = (edge.head, edge.relation, edge.tail, edge.row);
                take(TargetEdge { split, head, relation, tail, row, time: edge.time })
            }
        });
        each.map(drop)
    };
    let division = Division {
        dataset,
        settings,
        relations: reader.relations,
        relation_names: Vec::new(),
        held: &held,
        labels: Some(labels),
        with_features: config.task.edge_features,
        with_times: timed,
    };
    division.write((&mut passing, &mut targets), parts, out)
}
