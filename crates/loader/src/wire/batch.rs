//! Messages of batches: indices in 32 bits, as nodes of a type are counted.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use gnarl_common::memory::SparePages;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Schema;

use super::lists::{ListWriter, expected, list};
use crate::batch::{Batch, BatchEdges, BatchLinks, BatchNodes};
use crate::request::{Around, BatchRequest};
use crate::rows::{FeatureRows, LabelRows};

/// Most bytes of a batch, by far below what a message can have.
const LONGEST: usize = 2 << 30;

/// The message of a batch.
///
/// # Errors
/// If it makes no valid Arrow data.
pub(crate) fn batch_reply(batch: Batch) -> Result<RecordBatch> {
    let mut lists = ListWriter::default();
    for (node_type, nodes) in batch.nodes.into_iter().enumerate() {
        let name = |column: &str| format!("nodes.{node_type}.{column}");
        lists.push::<UInt32Type>(name("ids"), narrow(&nodes.ids));
        lists.push::<UInt32Type>(name("of_hop"), narrow(&nodes.of_hop));
        push_features(&mut lists, name("features"), nodes.features);
        match nodes.labels {
            None => {}
            Some(LabelRows::Classes(classes)) => {
                let classes = classes.into_iter().map(|class| class as i32).collect();
                lists.push::<Int32Type>(name("classes"), classes);
            }
            Some(LabelRows::Tasks(values, tasks)) => {
                let values = values.into_iter().map(|value| value as u8).collect();
                lists.push::<UInt8Type>(name("tasks"), values);
                lists.push::<UInt64Type>(name("tasks.width"), vec![tasks as u64]);
            }
            Some(LabelRows::Values(values)) => lists.push::<Float32Type>(name("values"), values),
        }
        if let Some(times) = nodes.times {
            lists.push::<Int64Type>(name("times"), times);
        }
        if let Some(trees) = nodes.trees {
            lists.push::<UInt32Type>(name("trees"), narrow(&trees));
        }
    }
    for (edge_type, edges) in batch.edges.into_iter().enumerate() {
        let name = |column: &str| format!("edges.{edge_type}.{column}");
        lists.push::<UInt32Type>(name("endpoints"), narrow(&edges.ends));
        lists.push::<UInt32Type>(name("of_hop"), narrow(&edges.of_hop));
        push_features(&mut lists, name("features"), edges.features);
        if let Some(ids) = edges.ids {
            lists.push::<Int64Type>(name("ids"), ids);
        }
        if let Some(weights) = edges.weights {
            lists.push::<Float32Type>(name("weights"), weights);
        }
        if let Some(times) = edges.times {
            lists.push::<Int64Type>(name("times"), times);
        }
    }
    if let Some(links) = batch.links {
        lists.push::<UInt32Type>("links.sources", narrow(&links.sources));
        lists.push::<UInt32Type>("links.destinations", narrow(&links.destinations));
        lists.push::<UInt32Type>("links.negative_sources", narrow(&links.negative_sources));
        lists.push::<UInt32Type>(
            "links.negative_destinations",
            narrow(&links.negative_destinations),
        );
    }
    lists.finish(LONGEST)
}

/// Reads the batch of a request over a graph of this schema, with features in memory of `rows`.
///
/// # Errors
/// If it has another form.
pub(crate) fn batch_of(
    reply: &RecordBatch,
    schema: &Arc<Schema>,
    request: &BatchRequest,
    rows: &Arc<SparePages>,
) -> Result<Batch> {
    let nodes = (0..schema.node_types().len()).map(|node_type| nodes_of(reply, node_type, rows));
    let edges = (0..schema.edge_types().len()).map(|edge_type| edges_of(reply, edge_type, rows));
    let (seed_type, links) = match &request.around {
        Around::Nodes { node_type, .. } => (*node_type, None),
        Around::Edges(of, _) => {
            let list = |name: &str| wide(reply, &format!("links.{name}"));
            let links = BatchLinks {
                sources: list("sources")?,
                destinations: list("destinations")?,
                negative_sources: list("negative_sources")?,
                negative_destinations: list("negative_destinations")?,
            };
            (of.source_type, Some(links))
        }
    };
    Ok(Batch {
        schema: schema.clone(),
        seed_type,
        input_ids: request.places.iter().map(|&place| place.into()).collect(),
        nodes: nodes.collect::<Result<_>>()?,
        edges: edges.collect::<Result<_>>()?,
        seed_times: request.times.clone(),
        links,
    })
}

fn nodes_of(reply: &RecordBatch, node_type: usize, rows: &Arc<SparePages>) -> Result<BatchNodes> {
    let name = |column: &str| format!("nodes.{node_type}.{column}");
    let ids = wide(reply, &name("ids"))?;
    let labels = if let Some(classes) = list::<Int32Type>(reply, &name("classes"))? {
        Some(LabelRows::Classes(classes.iter().map(|&class| class.into()).collect()))
    } else if let Some(tasks) = list::<UInt8Type>(reply, &name("tasks"))? {
        let values = tasks.iter().map(|&value| value.into()).collect();
        Some(LabelRows::Tasks(values, only(reply, &name("tasks.width"))?))
    } else {
        let values = list::<Float32Type>(reply, &name("values"))?;
        values.map(|values| LabelRows::Values(values.to_vec()))
    };
    let trees = reply.column_by_name(&name("trees")).is_some();
    let trees = trees.then(|| wide(reply, &name("trees"))).transpose()?;
    let times = list::<Int64Type>(reply, &name("times"))?.map(|times| times.to_vec());
    let labeled = labels.as_ref().map(|labels| match labels {
        LabelRows::Classes(classes) => classes.len(),
        LabelRows::Tasks(values, tasks) => values.len() / (*tasks).max(1),
        LabelRows::Values(values) => values.len(),
    });
    same_length(ids.len(), [labeled, times.as_ref().map(Vec::len), trees.as_ref().map(Vec::len)])?;
    Ok(BatchNodes {
        features: features_of(reply, &name("features"), ids.len(), rows)?,
        labels,
        times,
        trees,
        of_hop: wide(reply, &name("of_hop"))?,
        ids,
    })
}

fn edges_of(reply: &RecordBatch, edge_type: usize, rows: &Arc<SparePages>) -> Result<BatchEdges> {
    let name = |column: &str| format!("edges.{edge_type}.{column}");
    let ends = wide(reply, &name("endpoints"))?;
    if ends.len() % 2 == 1 {
        return Err(Error::invalid(format!("edges of a batch have {} endpoints", ends.len())));
    }
    let count = ends.len() / 2;
    let ids = list::<Int64Type>(reply, &name("ids"))?.map(|ids| ids.to_vec());
    let weights = list::<Float32Type>(reply, &name("weights"))?.map(|weights| weights.to_vec());
    let times = list::<Int64Type>(reply, &name("times"))?.map(|times| times.to_vec());
    let lengths = [ids.as_ref().map(Vec::len), weights.as_ref().map(Vec::len)];
    same_length(count, lengths.into_iter().chain([times.as_ref().map(Vec::len)]))?;
    Ok(BatchEdges {
        features: features_of(reply, &name("features"), count, rows)?,
        ids,
        weights,
        times,
        of_hop: wide(reply, &name("of_hop"))?,
        ends,
    })
}

/// Rejects columns of another length.
fn same_length(count: usize, lengths: impl IntoIterator<Item = Option<usize>>) -> Result<()> {
    match lengths.into_iter().flatten().find(|&length| length != count) {
        Some(other) => {
            let message = format!("a column of a batch has {other} values for {count} rows");
            Err(Error::invalid(message))
        }
        None => Ok(()),
    }
}

fn push_features(lists: &mut ListWriter, name: String, features: Option<FeatureRows>) {
    if let Some(FeatureRows { values, width }) = features {
        lists.push::<UInt64Type>(format!("{name}.width"), vec![width as u64]);
        lists.push::<Float32Type>(name, values.to_vec());
    }
}

fn features_of(
    reply: &RecordBatch,
    name: &str,
    count: usize,
    rows: &Arc<SparePages>,
) -> Result<Option<FeatureRows>> {
    let Some(found) = list::<Float32Type>(reply, name)? else { return Ok(None) };
    let width = only(reply, &format!("{name}.width"))?;
    if count.checked_mul(width) != Some(found.len()) {
        let found = found.len();
        return Err(Error::invalid(format!(
            "{name} of a batch: {found} values, {count} × {width}"
        )));
    }
    let mut values = rows.table(found.len())?;
    values.copy_from_slice(&found);
    Ok(Some(FeatureRows { values, width }))
}

/// The only value of a list.
fn only(reply: &RecordBatch, name: &str) -> Result<usize> {
    let values = expected::<UInt64Type>(reply, name)?;
    let missing = || Error::invalid(format!("the list '{name}' of a batch is empty"));
    values.first().map(|&value| value as usize).ok_or_else(missing)
}

/// Indices of nodes, positions or counts of a batch, which have 32 bits.
fn narrow(values: &[i64]) -> Vec<u32> {
    values.iter().map(|&value| value as u32).collect()
}

fn wide(reply: &RecordBatch, name: &str) -> Result<Vec<i64>> {
    Ok(expected::<UInt32Type>(reply, name)?.iter().map(|&value| value.into()).collect())
}
