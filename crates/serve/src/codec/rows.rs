//! Node columns: one row per requested node.
//!
//! Dense features are a column `features` of fixed-size lists of f32, or as they are stored of f16, or of u16 that are the
//! bits of bf16; sparse ones the columns `indices` (lists of u32) and `values` (lists of f32); labels a column `label` of
//! i32, or of fixed-size lists of u8; splits a column `split` of u8.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Int32Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Int32Array, ListArray,
    RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use gnarl_common::{DType, Error, Result};
use gnarl_graph::Labels;
use gnarl_store::Rows;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::vec::HalfFloatVecExt;
use half::{bf16, f16};

use super::{arrow, batch, column, wrong};

/// Encodes features of `width` values as a batch.
pub(crate) fn rows_batch(rows: Rows, width: usize) -> Result<RecordBatch> {
    match rows {
        Rows::Dense(values) => {
            let values = Arc::new(Float32Array::from(values));
            batch([("features", fixed(values, width)?)])
        }
        Rows::Sparse { indptr, indices, values } => {
            let ends = indptr.iter().map(|&end| i32::try_from(end)).collect::<Result<Vec<_>, _>>();
            let ends = ends.map_err(|_| Error::invalid("the features exceed 2^31 values"))?;
            let offsets = OffsetBuffer::new(ends.into());
            let indices: ArrayRef = Arc::new(UInt32Array::from(indices));
            let values: ArrayRef = Arc::new(Float32Array::from(values));
            batch([("indices", list(&offsets, indices)?), ("values", list(&offsets, values)?)])
        }
    }
}

/// Encodes features of `width` values as a batch; dense ones as `exact`, a type that all of them can be given in without a
/// change.
pub(crate) fn stored_batch(rows: Rows, width: usize, exact: DType) -> Result<RecordBatch> {
    let Rows::Dense(values) = &rows else { return rows_batch(rows, width) };
    let narrow: ArrayRef = match exact {
        DType::F16 => Arc::new(Float16Array::from(Vec::<f16>::from_f32_slice(values))),
        DType::BF16 => {
            let halves = Vec::<bf16>::from_f32_slice(values);
            Arc::new(UInt16Array::from(halves.reinterpret_into()))
        }
        _ => return rows_batch(rows, width),
    };
    batch([("features", fixed(narrow, width)?)])
}

/// Encodes embeddings of `width` values as a batch.
pub(crate) fn embedding_batch(rows: Vec<f32>, width: usize) -> Result<RecordBatch> {
    batch([("embedding", fixed(Arc::new(Float32Array::from(rows)), width)?)])
}

/// Decodes embeddings from successive batches.
pub(crate) fn embedding_of(batches: &[RecordBatch]) -> Result<Vec<f32>> {
    dense(batches, "embedding")
}

/// Encodes nodes and their gradients of `width` values as a batch.
pub(crate) fn push_batch(nodes: &[u64], grads: &[f32], width: usize) -> Result<RecordBatch> {
    let ids: ArrayRef = Arc::new(UInt64Array::from(nodes.to_vec()));
    let grads = fixed(Arc::new(Float32Array::from(grads.to_vec())), width)?;
    batch([("node", ids), ("gradient", grads)])
}

/// Decodes gradients from successive batches.
pub(crate) fn gradients_of(batches: &[RecordBatch]) -> Result<Vec<f32>> {
    dense(batches, "gradient")
}

/// All values of a column of fixed-size lists of f32.
pub(super) fn dense(batches: &[RecordBatch], name: &str) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for batch in batches {
        let lists = column(batch, name)?.as_fixed_size_list_opt();
        let lists = lists.ok_or_else(|| wrong(name, "fixed-size lists"))?;
        let values = lists.values().as_primitive_opt::<Float32Type>();
        all.extend_from_slice(values.ok_or_else(|| wrong(name, "lists of f32"))?.values());
    }
    Ok(all)
}

/// All values of dense features, in whatever type they were sent.
fn dense_features(batches: &[RecordBatch]) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for batch in batches {
        let lists = column(batch, "features")?.as_fixed_size_list_opt();
        let values = lists.ok_or_else(|| wrong("features", "fixed-size lists"))?.values();
        // The type comes first: lists of others have a length that no bytes stand for.
        if let Some(values) = values.as_primitive_opt::<Float32Type>() {
            all.extend_from_slice(values.values());
        } else if let Some(values) = values.as_primitive_opt::<Float16Type>() {
            all.extend(values.values().to_f32_vec());
        } else if let Some(values) = values.as_primitive_opt::<UInt16Type>() {
            all.extend(values.values().reinterpret_cast::<bf16>().to_f32_vec());
        } else {
            return Err(wrong("features", "lists of f32, f16 or u16"));
        }
    }
    Ok(all)
}

/// Decodes features from successive batches.
pub(crate) fn rows_of(batches: &[RecordBatch]) -> Result<Rows> {
    let sparse = batches.iter().any(|batch| batch.column_by_name("values").is_some());
    if !sparse {
        return dense_features(batches).map(Rows::Dense);
    }
    let mut rows = (vec![0u64], Vec::new(), Vec::new());
    for batch in batches {
        let lists =
            |name| column(batch, name)?.as_list_opt::<i32>().ok_or_else(|| wrong(name, "lists"));
        let (indices, values) = (lists("indices")?, lists("values")?);
        for row in 0..values.len() {
            let (indices, values) = (indices.value(row), values.value(row));
            let indices = indices.as_primitive_opt::<UInt32Type>();
            rows.1.extend_from_slice(indices.ok_or_else(|| wrong("indices", "u32"))?.values());
            let values = values.as_primitive_opt::<Float32Type>();
            rows.2.extend_from_slice(values.ok_or_else(|| wrong("values", "f32"))?.values());
            rows.0.push(rows.2.len() as u64);
        }
    }
    if rows.1.len() != rows.2.len() {
        return Err(Error::invalid("invalid sparse features: expected as many indices as values"));
    }
    Ok(Rows::Sparse { indptr: rows.0, indices: rows.1, values: rows.2 })
}

/// Encodes the labels of nodes, by their local ids, as a batch.
pub(crate) fn labels_batch(labels: &Labels, nodes: &[u32]) -> Result<RecordBatch> {
    batch([("label", label_column(labels, nodes)?)])
}

/// The column `label` of nodes or edges, by their local ids.
pub(super) fn label_column(labels: &Labels, nodes: &[u32]) -> Result<ArrayRef> {
    Ok(match labels {
        Labels::Single { classes, .. } => {
            Arc::new(Int32Array::from_iter_values(nodes.iter().map(|&v| classes[v as usize])))
        }
        Labels::Multi { values, tasks } => {
            let row = |&v: &u32| &values[v as usize * tasks..(v as usize + 1) * tasks];
            let values: Vec<u8> = nodes.iter().flat_map(row).copied().collect();
            fixed(Arc::new(UInt8Array::from(values)), *tasks)?
        }
        Labels::Values { values } => {
            Arc::new(Float32Array::from_iter_values(nodes.iter().map(|&v| values[v as usize])))
        }
    })
}

/// Decodes labels of `outputs` classes or labels from successive batches.
pub(crate) fn labels_of(batches: &[RecordBatch], outputs: usize) -> Result<Labels> {
    let (mut classes, mut values, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let (mut multi, mut regression) = (false, false);
    for batch in batches {
        let labels = column(batch, "label")?;
        if let Some(labels) = labels.as_primitive_opt::<Int32Type>() {
            classes.extend_from_slice(labels.values());
            continue;
        }
        if let Some(labels) = labels.as_primitive_opt::<Float32Type>() {
            numbers.extend_from_slice(labels.values());
            regression = true;
            continue;
        }
        let lists =
            labels.as_fixed_size_list_opt().ok_or_else(|| wrong("label", "i32, f32 or lists"))?;
        let labels = lists.values().as_primitive_opt::<UInt8Type>();
        values.extend_from_slice(labels.ok_or_else(|| wrong("label", "lists of u8"))?.values());
        multi = true;
    }
    Ok(match multi {
        true => Labels::Multi { values: values.into(), tasks: outputs },
        false if regression => Labels::Values { values: numbers.into() },
        false => Labels::Single { classes: classes.into(), count: outputs },
    })
}

/// Encodes the splits of nodes, by their local ids, as a batch.
pub(crate) fn splits_batch(splits: &[u8], nodes: &[u32]) -> Result<RecordBatch> {
    let splits = nodes.iter().map(|&v| splits[v as usize]);
    batch([("split", Arc::new(UInt8Array::from_iter_values(splits)) as ArrayRef)])
}

/// Decodes splits from successive batches.
pub(crate) fn splits_of(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for batch in batches {
        let splits = column(batch, "split")?.as_primitive_opt::<UInt8Type>();
        all.extend_from_slice(splits.ok_or_else(|| wrong("split", "u8"))?.values());
    }
    Ok(all)
}

pub(super) fn fixed(values: ArrayRef, width: usize) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    let width =
        i32::try_from(width).map_err(|_| Error::invalid("the features exceed a width of 2^31"))?;
    let lists = FixedSizeListArray::try_new(field, width, values, None).map_err(arrow)?;
    Ok(Arc::new(lists))
}

fn list(offsets: &OffsetBuffer<i32>, values: ArrayRef) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    let lists = ListArray::try_new(field, offsets.clone(), values, None).map_err(arrow)?;
    Ok(Arc::new(lists))
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    #[test]
    fn rows_survive_the_way_in_pieces() {
        let sparse = Rows::Sparse {
            indptr: vec![0, 2, 2, 3],
            indices: vec![0, 4, 2],
            values: vec![1.0, 3.0, 5.0],
        };
        for rows in [Rows::Dense(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), sparse] {
            let batch = rows_batch(rows.clone(), 2).unwrap();
            assert_eq!(rows_of(&[batch.slice(0, 1), batch.slice(1, 2)]).unwrap(), rows);
            for exact in [DType::F16, DType::BF16, DType::F32] {
                let batch = stored_batch(rows.clone(), 2, exact).unwrap();
                assert_eq!(rows_of(&[batch.slice(0, 1), batch.slice(1, 2)]).unwrap(), rows);
            }
        }
    }

    #[test]
    fn features_of_other_types_are_refused() {
        let field = Arc::new(Field::new_list_field(DataType::Null, true));
        let null = Arc::new(arrow_array::NullArray::new(4));
        let null = FixedSizeListArray::try_new(field, 2, null, None).unwrap();
        let wide = fixed(Arc::new(UInt32Array::from(vec![1, 2, 3, 4])), 2).unwrap();
        for lists in [Arc::new(null) as ArrayRef, wide] {
            let batch = batch([("features", lists)]).unwrap();
            let error = rows_of(&[batch]).unwrap_err().to_string();
            assert!(error.contains("lists of f32, f16 or u16"), "{error}");
        }
    }

    #[test]
    fn stored_rows_take_the_bytes_of_their_type() {
        let values: Vec<f32> = (0..4096).map(|i| (i % 500) as f32 * 0.25).collect();
        let bytes = |exact| {
            let batch = stored_batch(Rows::Dense(values.clone()), 64, exact).unwrap();
            batch.column(0).to_data().child_data()[0].buffers()[0].len()
        };
        assert_eq!(bytes(DType::F32), 4 * 4096);
        assert_eq!([bytes(DType::F16), bytes(DType::BF16)], [2 * 4096; 2]);
    }
}
