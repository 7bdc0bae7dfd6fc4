//! Evaluation by even shares of all ranks.

use std::ops::Range;

use gnarl_common::threads::even_share;
use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;

/// Rows of so many examples, of which `compute` makes those in a range: all of them or, with `comm`, an even share on each
/// rank. All ranks return the same.
///
/// # Errors
/// Those of `compute`, or if a rank fails.
pub(crate) fn by_shares(
    comm: Option<&dyn Communicator>,
    count: usize,
    compute: impl FnOnce(Range<usize>) -> Result<Tensor>,
) -> Result<Tensor> {
    let Some(comm) = comm.filter(|comm| comm.size() > 1 && count > 0) else {
        return compute(0..count);
    };
    let own = even_share(count, comm.rank(), comm.size());
    let own = if own.is_empty() { Vec::new() } else { compute(own)?.data().to_vec() };
    let all = comm.all_gather("evaluation: shares", bytemuck::cast_slice(&own))?.concat();
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&all);
    match values.len() % count {
        0 => Ok(Tensor::from_vec(count, values.len() / count, values)),
        _ => {
            let found = values.len();
            let text = format!("evaluation: unexpected {found} values for {count} examples");
            Err(Error::new(Kind::Rank, text))
        }
    }
}
