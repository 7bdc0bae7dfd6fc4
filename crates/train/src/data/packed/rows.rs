//! Features as columns: `features`, in the type they are stored in, and `features.width`; of sparse ones `features.indptr`,
//! `features.indices` and `features.values`. Those of edges are named `edge_features`.

use std::sync::Arc;

use arrow_buffer::{Buffer, ScalarBuffer};
use bytemuck::Zeroable;
use bytes::Bytes;
use gnarl_common::{DType, Error, Result};
use gnarl_nn::{SparseRows, Tensor};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::columns::{Array, Columns};
use crate::data::batch::Input;

/// Values that one thread converts at a time.
const STRETCH: usize = 1 << 16;

/// The name of the features of input nodes.
pub(crate) const OF_NODES: &str = "features";
/// The name of the features of edges that are predicted.
pub(crate) const OF_EDGES: &str = "edge_features";

/// Adds features to `out` by the name `name`; those of `stored` type are given as such.
pub(crate) fn pack((input, name): (Input, &str), stored: DType, out: &mut Columns) {
    match input {
        Input::Dense(rows) => {
            out.add(format!("{name}.width"), vec![rows.cols() as u64]);
            out.add_array(name, narrow(rows, stored));
        }
        Input::Sparse(rows) => {
            out.add(format!("{name}.width"), vec![rows.cols() as u64]);
            out.add(format!("{name}.indptr"), rows.indptr().to_vec());
            out.add(format!("{name}.indices"), rows.indices().to_vec());
            out.add(format!("{name}.values"), rows.values().to_vec());
        }
    }
}

/// Rows whose bytes are sent where they are.
struct Sent(Tensor);

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(self.0.data())
    }
}

/// The values of rows, which were widened from the `stored` type, in that type again: no value changes.
fn narrow(rows: Tensor, stored: DType) -> Array {
    let values = rows.data();
    match stored {
        DType::F16 => {
            let convert = |from: &[f32], to: &mut [f16]| to.convert_from_f32_slice(from);
            Array::F16(converted(values, convert).into())
        }
        DType::BF16 => {
            let bits = |from: &[f32], to: &mut [u16]| {
                to.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(from);
            };
            Array::Bf16(converted(values, bits).into())
        }
        DType::U8 => {
            let convert = |from: &[f32], to: &mut [u8]| {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as u8);
            };
            Array::U8(converted(values, convert).into())
        }
        _ => {
            let count = values.len();
            let buffer = Buffer::from(Bytes::from_owner(Sent(rows)));
            Array::F32(ScalarBuffer::new(buffer, 0, count))
        }
    }
}

fn converted<T: Zeroable + Clone + Send>(
    values: &[f32],
    convert: impl Fn(&[f32], &mut [T]) + Sync,
) -> Vec<T> {
    let mut out = vec![T::zeroed(); values.len()];
    let stretches = out.par_chunks_mut(STRETCH).zip(values.par_chunks(STRETCH));
    stretches.for_each(|(to, from)| convert(from, to));
    out
}

/// Takes `rows` rows of the features `name` from `columns`.
///
/// # Errors
/// If a column is missing, or there are more or fewer rows.
pub(crate) fn unpack(columns: &mut Columns, (name, rows): (&str, usize)) -> Result<Input> {
    let width = columns.take_one(&format!("{name}.width"))? as usize;
    let wrong = || Error::invalid(format!("{name} of the batch: their columns disagree"));
    let Some(dense) = columns.take_array(name) else {
        let indptr: Vec<u64> = columns.take(&format!("{name}.indptr"))?;
        let indices: Vec<u32> = columns.take(&format!("{name}.indices"))?;
        let values: Vec<f32> = columns.take(&format!("{name}.values"))?;
        let fits = indptr.len() == rows + 1
            && indptr[0] == 0
            && indptr[rows] as usize == values.len()
            && indptr.windows(2).all(|pair| pair[0] <= pair[1])
            && indices.len() == values.len()
            && indices.iter().all(|&column| (column as usize) < width);
        let found = fits.then(|| SparseRows::new(width, indptr, indices, values));
        return found.map(|found| Input::Sparse(Arc::new(found))).ok_or_else(wrong);
    };
    let count = rows.checked_mul(width).ok_or_else(wrong)?;
    let widened = match dense {
        Array::F32(values) if values.len() == count => {
            widen(&values, (rows, width), |from, to| to.copy_from_slice(from))
        }
        Array::F16(values) if values.len() == count => {
            widen(&values, (rows, width), |from, to| from.convert_to_f32_slice(to))
        }
        Array::Bf16(bits) if bits.len() == count => widen(&bits, (rows, width), |from, to| {
            from.reinterpret_cast::<bf16>().convert_to_f32_slice(to);
        }),
        Array::U8(values) if values.len() == count => widen(&values, (rows, width), |from, to| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = f32::from(*from));
        }),
        _ => return Err(wrong()),
    };
    Ok(Input::Dense(widened))
}

fn widen<T: Sync>(
    values: &[T],
    (rows, width): (usize, usize),
    convert: impl Fn(&[T], &mut [f32]) + Sync,
) -> Tensor {
    let mut out = Tensor::scratch(rows, width);
    let stretches = out.data_mut().par_chunks_mut(STRETCH).zip(values.par_chunks(STRETCH));
    stretches.for_each(|(to, from)| convert(from, to));
    out
}

/// Numbers of a batch's features that were in the process already, and that others were asked for.
const CACHED: &str = "features.cached";

/// Adds how many features of a batch were here, and how many were asked for.
#[cfg(feature = "serve")]
pub(crate) fn add_cached(cached: [u64; 2], columns: &mut Columns) {
    columns.add(CACHED, cached.to_vec());
}

/// Takes how many features of a batch were here, and how many were asked for; none of batches that bring their own.
///
/// # Errors
/// If there are other than two numbers.
pub(crate) fn take_cached(columns: &mut Columns) -> Result<[u64; 2]> {
    let wrong = || Error::invalid(format!("column '{CACHED}' of the batch: expected two values"));
    match columns.take_some::<u64>(CACHED)? {
        Some(cached) => cached.try_into().map_err(|_| wrong()),
        None => Ok([0; 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_come_back_as_they_were_in_the_type_they_are_stored_in() {
        let values = vec![1.0, 2.0, 0.0, 255.0, 3.0, 17.0];
        let input = Input::Dense(Tensor::from_vec(3, 2, values.clone()));
        for stored in [DType::F32, DType::F16, DType::BF16, DType::U8] {
            let mut columns = Columns::default();
            pack((input.clone(), OF_NODES), stored, &mut columns);
            let Input::Dense(found) = unpack(&mut columns, (OF_NODES, 3)).unwrap() else {
                panic!("dense")
            };
            assert_eq!((found.data(), found.shape()), (&values[..], (3, 2)), "{stored:?}");
            pack((input.clone(), OF_NODES), stored, &mut columns);
            assert!(
                unpack(&mut columns, (OF_NODES, 4)).unwrap_err().to_string().contains("disagree")
            );
        }
    }

    #[test]
    fn sparse_features_stay_sparse() {
        let rows = SparseRows::new(5, vec![0, 2, 2, 3], vec![0, 4, 1], vec![1.0, 2.0, 3.0]);
        let mut columns = Columns::default();
        pack((Input::Sparse(Arc::new(rows)), OF_EDGES), DType::F32, &mut columns);
        let Input::Sparse(found) = unpack(&mut columns.clone(), (OF_EDGES, 3)).unwrap() else {
            panic!("sparse")
        };
        assert_eq!((found.indptr(), found.indices()), (&[0, 2, 2, 3][..], &[0, 4, 1][..]));
        columns.take_array("edge_features.indices").unwrap();
        columns.add("edge_features.indices", vec![0_u32, 5, 1]);
        assert!(unpack(&mut columns, (OF_EDGES, 3)).is_err());
    }
}
