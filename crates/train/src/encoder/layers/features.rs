//! Features of a range, gathered on all threads.

use gnarl_common::Result;
use gnarl_nn::Tensor;
use gnarl_store::{FeatureStore, Rows};
use rayon::prelude::*;

use crate::data::batch::{Input, gather as gather_on_one};

/// Fewest rows gathered per task.
const TASK_ROWS: usize = 256;

/// The features of `ids`, in that order.
///
/// # Errors
/// If an id has no features.
pub(super) fn gather(features: &dyn FeatureStore, ids: &[u32]) -> Result<Input> {
    match features.is_sparse() {
        true => gather_on_one(features, ids),
        false => dense(features, ids).map(Input::Dense),
    }
}

/// The features of `ids` as dense rows.
///
/// # Errors
/// If an id has no features.
pub(super) fn dense(features: &dyn FeatureStore, ids: &[u32]) -> Result<Tensor> {
    let width = features.width();
    if features.is_sparse() {
        let mut out = Tensor::zeros(ids.len(), width);
        if let Rows::Sparse { indptr, indices, values } = features.gather(ids)? {
            for (row, ends) in indptr.windows(2).enumerate() {
                for entry in ends[0] as usize..ends[1] as usize {
                    out.data_mut()[row * width + indices[entry] as usize] += values[entry];
                }
            }
        }
        return Ok(out);
    }
    let mut out = Tensor::scratch(ids.len(), width);
    copy(features, ids, out.data_mut())?;
    Ok(out)
}

/// Copies the dense features of `ids`.
///
/// # Errors
/// If an id has no features.
pub(super) fn copy(features: &dyn FeatureStore, ids: &[u32], out: &mut [f32]) -> Result<()> {
    // Few tasks: a store of remote rows asks once for each.
    let rows = ids.len().div_ceil(4 * rayon::current_num_threads()).max(TASK_ROWS);
    let tasks = out.par_chunks_mut((rows * features.width()).max(1)).zip(ids.par_chunks(rows));
    tasks.try_for_each(|(out, ids)| features.gather_into(ids, out))
}
