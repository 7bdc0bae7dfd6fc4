//! Requests and replies as Arrow record batches.

mod hop;
mod rows;
mod targets;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;
use gnarl_common::{Error, Result};

pub(crate) use hop::{hop_batch, hop_reply};
pub(crate) use rows::{
    embedding_batch, embedding_of, gradients_of, labels_batch, labels_of, push_batch, rows_batch,
    rows_of, splits_batch, splits_of, stored_batch,
};
pub(crate) use targets::{
    found_batch, found_of, keys_batch, keys_of, narrow, places_batch, triples_batch, triples_of,
};

/// Node ids as a batch of one column, `node`.
pub(crate) fn nodes_batch(nodes: &[u64]) -> Result<RecordBatch> {
    let ids: ArrayRef = Arc::new(UInt64Array::from(nodes.to_vec()));
    batch([("node", ids)])
}

/// The ids in the column `node` of all `batches`.
pub(crate) fn nodes_of(batches: &[RecordBatch]) -> Result<Vec<u64>> {
    let mut nodes = Vec::new();
    for batch in batches {
        let ids = column(batch, "node")?.as_primitive_opt::<UInt64Type>();
        let ids = ids.ok_or_else(|| wrong("node", "unsigned 64-bit integers"))?;
        nodes.extend_from_slice(ids.values());
    }
    Ok(nodes)
}

/// Node ids and times as a batch of the columns `node` and `time`.
pub(crate) fn timed_batch(nodes: &[u64], times: &[i64]) -> Result<RecordBatch> {
    let ids: ArrayRef = Arc::new(UInt64Array::from(nodes.to_vec()));
    batch([("node", ids), ("time", time_column(times.iter().copied()))])
}

/// Times as a batch of one column, `time`.
pub(crate) fn times_batch(times: impl Iterator<Item = i64>) -> Result<RecordBatch> {
    batch([("time", time_column(times))])
}

fn time_column(times: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(times))
}

/// The times in the column `time` of all `batches`.
pub(crate) fn times_of(batches: &[RecordBatch]) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for batch in batches {
        let times = column(batch, "time")?.as_primitive_opt::<Int64Type>();
        all.extend_from_slice(times.ok_or_else(|| wrong("time", "64-bit integers"))?.values());
    }
    Ok(all)
}

/// Bytes as a batch of one row, `bytes`.
pub(crate) fn bytes_batch(bytes: &[u8]) -> Result<RecordBatch> {
    batch([("bytes", Arc::new(BinaryArray::from_iter_values([bytes])))])
}

/// The bytes in the only row of the column `bytes`.
pub(crate) fn bytes_of(batches: &[RecordBatch]) -> Result<&[u8]> {
    let only = batches.first().map(|batch| column(batch, "bytes")).transpose()?;
    let only = only.and_then(|bytes| bytes.as_binary_opt::<i32>()).filter(|bytes| bytes.len() == 1);
    only.map(|bytes| bytes.value(0)).ok_or_else(|| wrong("bytes", "one row of them"))
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns).map_err(arrow)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let missing = || Error::invalid(format!("the message lacks the column '{name}'"));
    batch.column_by_name(name).ok_or_else(missing)
}

fn wrong(name: &str, expected: &str) -> Error {
    Error::invalid(format!("invalid column '{name}' of the message: expected {expected}"))
}

fn arrow(e: ArrowError) -> Error {
    Error::invalid(format!("the message is not valid Arrow data: {e}"))
}
