//! Target edges: one row per edge.
//!
//! | column | type |
//! |---|---|
//! | `position` (of requested edges) or `place` (of a whole split) | u32, ascending |
//! | `head`, `relation`, `tail` | u32 |
//! | `label`, if edges have labels | i32 (the field's metadata has the number of `classes`), f32, or fixed-size lists of u8 |
//! | `features`, if edges have features | fixed-size lists of f32 |
//! | `time`, if edges have times | i64 |
//!
//! Known edges have the columns `head`, `relation` and `tail`. Requests have the column `node` (u64: places, or given
//! endpoints), those for known edges also `relation` (u32).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use gnarl_common::{Error, Result};
use gnarl_graph::Labels;
use gnarl_graph::triples::Triples;

use super::rows::{dense, fixed, label_column, labels_of};
use super::{arrow, batch, column, nodes_batch, nodes_of, time_column, times_of, wrong};
use crate::targets::FoundTargets;

/// Key of the number of classes in the metadata of the field `label`.
const CLASSES: &str = "classes";

/// Encodes places in a split as a batch.
pub(crate) fn places_batch(places: &[u32]) -> Result<RecordBatch> {
    nodes_batch(&places.iter().map(|&place| place.into()).collect::<Vec<u64>>())
}

/// Narrows the column `node` of a request.
pub(crate) fn narrow(nodes: &[u64]) -> Result<Vec<u32>> {
    let narrow = |&node: &u64| {
        u32::try_from(node).map_err(|_| {
            Error::invalid(format!("invalid node '{node}': expected a number below 2^32"))
        })
    };
    nodes.iter().map(narrow).collect()
}

/// Encodes given endpoints and relations as a batch.
pub(crate) fn keys_batch(keys: &[[u32; 2]]) -> Result<RecordBatch> {
    let nodes: ArrayRef = Arc::new(UInt64Array::from_iter_values(keys.iter().map(|k| k[0].into())));
    let relations: ArrayRef = Arc::new(UInt32Array::from_iter_values(keys.iter().map(|k| k[1])));
    batch([("node", nodes), ("relation", relations)])
}

/// Decodes given endpoints and relations from successive batches.
pub(crate) fn keys_of(batches: &[RecordBatch]) -> Result<Vec<[u32; 2]>> {
    let nodes = narrow(&nodes_of(batches)?)?;
    let relations = numbers(batches, "relation")?;
    Ok(nodes.into_iter().zip(relations).map(|(node, relation)| [node, relation]).collect())
}

/// Encodes edges as a batch.
pub(crate) fn triples_batch(edges: Triples) -> Result<RecordBatch> {
    batch(edge_columns(edges))
}

/// Decodes edges from successive batches.
pub(crate) fn triples_of(batches: &[RecordBatch]) -> Result<Triples> {
    Ok(Triples {
        heads: numbers(batches, "head")?,
        relations: numbers(batches, "relation")?,
        tails: numbers(batches, "tail")?,
    })
}

fn edge_columns(edges: Triples) -> [(&'static str, ArrayRef); 3] {
    let column = |values: Vec<u32>| -> ArrayRef { Arc::new(UInt32Array::from(values)) };
    let Triples { heads, relations, tails } = edges;
    [("head", column(heads)), ("relation", column(relations)), ("tail", column(tails))]
}

/// Encodes target edges with features of `width` values as a batch; `first` is the name of the column of positions.
pub(crate) fn found_batch(found: FoundTargets, first: &str, width: usize) -> Result<RecordBatch> {
    let rows: Vec<u32> = (0..found.edges.len() as u32).collect();
    let positions: ArrayRef = Arc::new(UInt32Array::from(found.positions));
    let columns = std::iter::once((first, positions)).chain(edge_columns(found.edges));
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    let mut add = |name: &str, array: ArrayRef, metadata| {
        let field = Field::new(name, array.data_type().clone(), false);
        fields.push(field.with_metadata(metadata));
        arrays.push(array);
    };
    columns.for_each(|(name, array)| add(name, array, HashMap::new()));
    if let Some(labels) = found.labels {
        let classes = match &labels {
            Labels::Single { count, .. } => Some((CLASSES.to_string(), count.to_string())),
            _ => None,
        };
        add("label", label_column(&labels, &rows)?, HashMap::from_iter(classes));
    }
    if let Some(features) = found.features {
        let features = fixed(Arc::new(Float32Array::from(features)), width)?;
        add("features", features, HashMap::new());
    }
    if let Some(times) = found.times {
        add("time", time_column(times.into_iter()), HashMap::new());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(arrow)
}

/// Decodes target edges from successive batches, of which there is at least one; `first` is the name of the column of
/// positions.
///
/// # Errors
/// If columns are missing, of another type or of different lengths, or positions do not ascend.
pub(crate) fn found_of(batches: &[RecordBatch], first: &str) -> Result<FoundTargets> {
    let positions = numbers(batches, first)?;
    if !positions.is_sorted_by(|a, b| a < b) {
        return Err(wrong(first, "ascending numbers"));
    }
    let rows = positions.len();
    let has = |name: &str| batches.iter().any(|batch| batch.column_by_name(name).is_some());
    let labels = has("label").then(|| found_labels(batches, rows)).transpose()?;
    let features = has("features").then(|| found_features(batches, rows)).transpose()?;
    let times = has("time").then(|| times_of(batches)).transpose()?;
    if times.as_ref().is_some_and(|times| times.len() != rows) {
        return Err(wrong("time", "one time per edge"));
    }
    Ok(FoundTargets { positions, edges: triples_of(batches)?, labels, features, times })
}

fn found_labels(batches: &[RecordBatch], rows: usize) -> Result<Labels> {
    let first = batches.first().ok_or_else(|| Error::invalid("the message is empty"))?;
    let outputs = match column(first, "label")?.data_type() {
        DataType::FixedSizeList(_, width) => usize::try_from(*width).ok(),
        DataType::Int32 => {
            let schema = first.schema();
            let field = schema.field_with_name("label").map_err(arrow)?;
            field.metadata().get(CLASSES).and_then(|classes| classes.parse().ok())
        }
        _ => Some(1),
    };
    let outputs = outputs.ok_or_else(|| wrong("label", "metadata with the number of classes"))?;
    let labels = labels_of(batches, outputs)?;
    let agrees = match &labels {
        Labels::Single { classes, .. } => classes.len() == rows,
        Labels::Multi { values, tasks } => Some(values.len()) == rows.checked_mul(*tasks),
        Labels::Values { values } => values.len() == rows,
    };
    if agrees { Ok(labels) } else { Err(wrong("label", "one label per edge")) }
}

fn found_features(batches: &[RecordBatch], rows: usize) -> Result<Vec<f32>> {
    let features = dense(batches, "features")?;
    if features.len().checked_rem(rows).unwrap_or(features.len()) == 0 {
        return Ok(features);
    }
    Err(wrong("features", "as many values for each edge"))
}

/// All values of a column of u32.
fn numbers(batches: &[RecordBatch], name: &str) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for batch in batches {
        let values = column(batch, name)?.as_primitive_opt::<UInt32Type>();
        all.extend_from_slice(values.ok_or_else(|| wrong(name, "u32"))?.values());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(rows: u32) -> FoundTargets {
        let column: Vec<u32> = (0..rows).collect();
        let edges =
            Triples { heads: column.clone(), relations: column.clone(), tails: column.clone() };
        let classes: Vec<i32> = vec![-1; rows as usize];
        FoundTargets {
            positions: column,
            edges,
            labels: Some(Labels::Single { classes: classes.into(), count: 7 }),
            features: Some(vec![0.5; 2 * rows as usize]),
            times: Some((0..rows.into()).map(|row: i64| row - 1).collect()),
        }
    }

    #[test]
    fn edges_survive_the_way_in_pieces() {
        let batch = found_batch(edges(3), "place", 2).unwrap();
        let back = found_of(&[batch.slice(0, 1), batch.slice(1, 2)], "place").unwrap();
        assert_eq!(back.positions, [0, 1, 2]);
        assert_eq!((back.edges, back.features), (edges(3).edges, edges(3).features));
        assert_eq!(back.times, Some(vec![-1, 0, 1]));
        assert!(matches!(back.labels, Some(Labels::Single { count: 7, .. })));
    }

    #[test]
    fn other_messages_are_refused() {
        let batch = found_batch(edges(3), "position", 2).unwrap();
        let refused = |batches: &[RecordBatch]| {
            found_of(batches, "position").map(drop).unwrap_err().to_string()
        };
        let text = refused(&[batch.clone(), batch.clone()]);
        assert!(text.contains("'position'") && text.contains("ascending"), "{text}");
        let bare = batch.project(&[0, 1, 2, 3, 4]).unwrap();
        let text = refused(&[bare.slice(0, 1), batch.slice(1, 2)]);
        assert!(text.contains("lacks the column 'features'"), "{text}");
        let text = refused(&[batch.project(&[0, 1, 3]).unwrap()]);
        assert!(text.contains("lacks the column 'relation'"), "{text}");
        let text = refused(&[nodes_batch(&[1]).unwrap()]);
        assert!(text.contains("lacks the column 'position'"), "{text}");
    }
}
