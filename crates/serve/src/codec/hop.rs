//! Neighbors: one row per requested node.
//!
//! | column | type |
//! |---|---|
//! | `degree` | u32, in the whole graph |
//! | `neighbors` | list of u64, dataset ids |
//! | `neighbor_degrees`, of homogeneous graphs | list of u32 |
//! | `weights`, if edges have weights | list of f32 |
//! | `numbers`, from vertex cuts | list of u32 |
//! | `times`, from vertex cuts if nodes are asked about at times | list of i64 |
//! | `edge_features`, if asked for | list of f32, a row for each neighbor |

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use gnarl_common::{Error, Result};
use gnarl_sample::parts::HopReply;

use super::{arrow, column, wrong};

/// Encodes a reply as a batch.
pub(crate) fn hop_batch(reply: &HopReply) -> Result<RecordBatch> {
    let ends: Vec<i32> = (reply.indptr.iter())
        .map(|&end| i32::try_from(end))
        .collect::<Result<_, _>>()
        .map_err(|_| Error::invalid("the reply exceeds 2^31 edges").hint("ask for fewer nodes"))?;
    let offsets = OffsetBuffer::new(ends.into());
    let at = |i: &u32| *i as usize;
    let ids: Vec<u64> = reply.indices.iter().map(|i| reply.nodes[at(i)]).collect();
    let asked: ArrayRef = Arc::new(UInt32Array::from(reply.asked_degrees.clone()));
    let mut columns = vec![("degree", asked), ("neighbors", list::<UInt64Type>(&offsets, ids)?)];
    if let Some(degrees) = &reply.degrees {
        let degrees = reply.indices.iter().map(|i| degrees[at(i)]).collect();
        columns.push(("neighbor_degrees", list::<UInt32Type>(&offsets, degrees)?));
    }
    if let Some(weights) = &reply.weights {
        columns.push(("weights", list::<Float32Type>(&offsets, weights.clone())?));
    }
    if let Some(numbers) = &reply.numbers {
        columns.push(("numbers", list::<UInt32Type>(&offsets, numbers.clone())?));
    }
    if let Some(times) = &reply.times {
        columns.push(("times", list::<Int64Type>(&offsets, times.clone())?));
    }
    if let Some(rows) = &reply.edge_features {
        columns.push(("edge_features", edge_rows(&reply.indptr, rows)?));
    }
    RecordBatch::try_from_iter(columns).map_err(arrow)
}

/// The features of the edges of each node.
fn edge_rows(indptr: &[u32], rows: &[f32]) -> Result<ArrayRef> {
    let width = rows.len() / (indptr[indptr.len() - 1] as usize).max(1);
    let ends: Vec<i32> = (indptr.iter())
        .map(|&end| i32::try_from(end as usize * width))
        .collect::<Result<_, _>>()
        .map_err(|_| {
            Error::invalid("the features of edges in a reply exceed 2^31 values")
                .hint("ask for fewer nodes")
        })?;
    list::<Float32Type>(&OffsetBuffer::new(ends.into()), rows.to_vec())
}

/// Decodes a reply from successive batches.
pub(crate) fn hop_reply(batches: &[RecordBatch]) -> Result<HopReply> {
    let mut reply = HopReply { indptr: vec![0], ..HopReply::default() };
    for batch in batches {
        let degrees = column(batch, "degree")?.as_primitive_opt::<UInt32Type>();
        let degrees = degrees.ok_or_else(|| wrong("degree", "u32"))?;
        reply.asked_degrees.extend_from_slice(degrees.values());
        let before = reply.nodes.len() as u32;
        let lists = lists(batch, "neighbors")?;
        let first = lists.value_offsets()[0];
        let ends = lists.value_offsets()[1..].iter().map(|end| before + (end - first) as u32);
        reply.indptr.extend(ends);
        append::<UInt64Type>(batch, "neighbors", &mut reply.nodes)?;
        if batch.column_by_name("neighbor_degrees").is_some() {
            let degrees = reply.degrees.get_or_insert_default();
            append::<UInt32Type>(batch, "neighbor_degrees", degrees)?;
        }
        if batch.column_by_name("weights").is_some() {
            append::<Float32Type>(batch, "weights", reply.weights.get_or_insert_default())?;
        }
        if batch.column_by_name("numbers").is_some() {
            append::<UInt32Type>(batch, "numbers", reply.numbers.get_or_insert_default())?;
        }
        if batch.column_by_name("times").is_some() {
            append::<Int64Type>(batch, "times", reply.times.get_or_insert_default())?;
        }
        if batch.column_by_name("edge_features").is_some() {
            let rows = reply.edge_features.get_or_insert_default();
            append::<Float32Type>(batch, "edge_features", rows)?;
        }
    }
    reply.indices = (0..reply.nodes.len() as u32).collect();
    Ok(reply)
}

fn list<T: ArrowPrimitiveType>(
    offsets: &OffsetBuffer<i32>,
    values: Vec<T::Native>,
) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(T::DATA_TYPE, false));
    let values = Arc::new(PrimitiveArray::<T>::from_iter_values(values));
    let lists = ListArray::try_new(field, offsets.clone(), values, None).map_err(arrow)?;
    Ok(Arc::new(lists))
}

fn lists<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray> {
    column(batch, name)?.as_list_opt::<i32>().ok_or_else(|| wrong(name, "lists"))
}

/// Appends the values of all lists of a column.
fn append<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: &str,
    out: &mut Vec<T::Native>,
) -> Result<()> {
    let lists = lists(batch, name)?;
    let offsets = lists.value_offsets();
    let (from, to) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
    let values = lists.values().as_primitive_opt::<T>();
    let values = values.ok_or_else(|| wrong(name, &format!("lists of {}", T::DATA_TYPE)))?;
    out.extend_from_slice(&values.values()[from..to]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_survive_the_way_in_pieces() {
        let reply = HopReply {
            asked_degrees: vec![4, 0, 1],
            indptr: vec![0, 2, 2, 3],
            indices: vec![1, 0, 1],
            nodes: vec![7, 3],
            degrees: Some(vec![5, 6]),
            weights: Some(vec![0.5, 1.5, 2.5]),
            numbers: Some(vec![9, 8, 7]),
            times: Some(vec![-4, i64::MIN, i64::MAX]),
            edge_features: Some(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        };
        let batch = hop_batch(&reply).unwrap();
        let back = hop_reply(&[batch.slice(0, 1), batch.slice(1, 2)]).unwrap();
        back.check(3, 10).unwrap();
        assert_eq!(back.nodes, [3, 7, 3]);
        assert_eq!(back.degrees, Some(vec![6, 5, 6]));
        assert_eq!((back.indptr, back.asked_degrees), (reply.indptr, reply.asked_degrees));
        assert_eq!((back.weights, back.numbers), (reply.weights, reply.numbers));
        assert_eq!((back.times, back.edge_features), (reply.times, reply.edge_features));
    }

    #[test]
    fn other_columns_are_refused() {
        let batch = super::super::nodes_batch(&[1]).unwrap();
        let error = hop_reply(&[batch]).unwrap_err().to_string();
        assert!(error.contains("lacks the column 'degree'"), "{error}");
    }
}
