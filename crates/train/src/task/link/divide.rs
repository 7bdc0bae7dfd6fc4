//! Parts for link prediction.

use std::path::Path;

use gnarl_common::{Error, Result};
use gnarl_config::{Leakage, RunConfig, SplitBy};
use gnarl_graph::Dataset;
use gnarl_graph::triples::Triples;
use gnarl_partition::{
    PartitionConfig, PartitionReport, PartitionedDataset, TakeTarget, TargetEdge,
};

use super::endpoints::Endpoints;
use super::leakage::{reject, seen_in};
use super::reader::EdgeReader;
use crate::data::asked::ways_of_type;
use crate::data::edge_set::{EdgeSet, LeakageCount, Ways, both_ways};
use crate::data::target_edges::TakeEdge;
use crate::encoder::build::RELATIONAL;
use crate::encoder::homogeneous::Homogeneous;
use crate::encoder::message_graph::MessageForm;
use crate::registry::Registry;
use crate::task::divide::{Division, Splits, TaskSettings};

/// Edges looked up together.
const EDGES: usize = 1 << 16;

/// The message graph of a model, over a dataset of one node type and one edge type or another one.
pub(crate) fn message_form(
    (config, registry): (&RunConfig, &Registry),
    plain: bool,
) -> MessageForm {
    let name = config.model.name.as_str();
    match plain {
        false => MessageForm::Types,
        true if name == "none" => MessageForm::None,
        true if RELATIONAL.contains(&name) || registry.has_hetero_model(name) => {
            MessageForm::Relations
        }
        true => MessageForm::Edges,
    }
}

/// Partitions `dataset` for link prediction by `config`.
///
/// # Errors
/// Those of [`EdgeReader`] and of partitioning, and if held-out edges pass messages against the run file.
pub(crate) fn divide(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    parts: &PartitionConfig,
    out: &Path,
) -> Result<(PartitionedDataset, PartitionReport)> {
    let reader = EdgeReader::open(dataset, config)?;
    let endpoints = reader.endpoints()?;
    let form = message_form((config, registry), dataset.plain().is_ok());
    let timed = config.samples_by_time();
    let (relations, relation_names) = reader.relations()?;
    let mut held_out = [Triples::default(), Triples::default()];
    let mut training = 0u64;
    reader.each(&mut |edge| {
        match edge.split {
            Some(split @ 1..) => held_out[split - 1].push(edge.head, edge.relation, edge.tail),
            _ => training += 1,
        }
        Ok(())
    })?;
    if training == 0 {
        return Err(Error::invalid(format!("{}: no training edges", dataset.dir().display())));
    }
    let ways = ways(dataset, &reader, form, relations);
    let mut leaking = 0;
    if form != MessageForm::None && !timed {
        let found = leaking_edges(&reader, &endpoints, &held_out, &ways)?;
        leaking = found.iter().map(|of_split| of_split.seen).sum();
        if config.task.leakage != Leakage::Keep {
            reject(&found)?;
        }
    }
    let held = match form {
        MessageForm::Types if !timed => {
            let [valid, test] = &held_out;
            let mut held = both_ways(valid, &ways);
            held.extend(both_ways(test, &ways));
            held
        }
        _ => EdgeSet::new(),
    };
    let splits = match reader.is_split() {
        true => Splits::Stored,
        false => match config.split_by() {
            SplitBy::Time => Splits::Latest(config.task.valid, config.task.test),
            SplitBy::Endpoints => {
                Splits::Drawn(config.task.valid, config.task.test, config.task.split_seed)
            }
        },
    };
    let features = dataset.features(&reader.triple().src)?.is_some();
    let division = Division {
        dataset,
        settings: TaskSettings {
            timed,
            kind: config.task.kind,
            edge_type: reader.triple().clone(),
            messages: form,
            features,
            splits,
            leaking,
        },
        relations,
        relation_names,
        held: &held,
        labels: None,
        with_features: false,
        with_times: timed,
    };
    let mut passing = |take: &mut TakeEdge<'_>| {
        // Times tell which edges pass messages.
        reader.each(&mut |edge| if timed || edge.split == Some(0) { take(edge) } else { Ok(()) })
    };
    let mut targets = |take: &mut TakeTarget<'_>| {
        reader.each(&mut |edge| {
            let split = edge.split.unwrap_or(0);
            let (head, relation, tail, row) = (edge.head, edge.relation, edge.tail, edge.row);
            take(TargetEdge { split, head, relation, tail, row, time: edge.time })
        })
    };
    division.write((&mut passing, &mut targets), parts, out)
}

/// Edge types of message passing.
fn ways(
    dataset: &Dataset,
    reader: &EdgeReader<'_>,
    form: MessageForm,
    relations: usize,
) -> Box<dyn Fn(u32) -> Ways> {
    match form {
        MessageForm::Types => {
            let types = dataset.manifest().edge_types.iter().map(|t| t.triple.clone());
            let ways = ways_of_type(&types.collect::<Vec<_>>(), reader.triple());
            Box::new(move |_| ways)
        }
        MessageForm::Relations => Box::new(move |relation| Ways::of_relation(relation, relations)),
        MessageForm::Edges | MessageForm::None => Box::new(|_| Homogeneous::WAYS),
    }
}

/// Counts held-out edges that are training edges, or reverses of some.
fn leaking_edges(
    reader: &EdgeReader<'_>,
    endpoints: &Endpoints,
    held_out: &[Triples; 2],
    ways: &dyn Fn(u32) -> Ways,
) -> Result<[LeakageCount; 2]> {
    let first_tail = endpoints.first_tail();
    let numbered = held_out.clone().map(|mut edges| {
        edges.tails.iter_mut().for_each(|tail| *tail += first_tail);
        edges
    });
    seen_in([&numbered[0], &numbered[1]], &ways, &mut |each| {
        let mut some = Triples::default();
        reader.each(&mut |edge| {
            if edge.split == Some(0) {
                some.push(edge.head, edge.relation, edge.tail + first_tail);
            }
            if some.len() >= EDGES {
                each(&some)?;
                some = Triples::default();
            }
            Ok(())
        })?;
        each(&some)
    })
}
