//! The trait of communicators: collectives that every engine offers.

use gnarl_common::{Error, Result};

/// One rank's handle of a group: all ranks of the run, or some of them after
/// [`Communicator::split`]. All ranks of a group call the same collectives in the same order;
/// `stage` names the call in errors and must agree between ranks. Collectives of different groups
/// may be under way at the same time, on threads of their own. Errors name ranks by their numbers
/// in the run.
pub trait Communicator: Send + Sync {
    /// This rank in the group, below [`Communicator::size`].
    fn rank(&self) -> usize;

    /// Number of ranks in the group.
    fn size(&self) -> usize;

    /// Gathers the `bytes` of all ranks on every rank, in rank order.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Rank`] if a rank failed, is at another stage, or does not arrive before
    /// the deadline. All other collectives fail likewise.
    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Sends `outgoing[r]`, of any length, to each rank `r` and returns what each sent to this one,
    /// in rank order.
    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;

    /// Replaces `values` by their sum over all ranks, added in rank order: bitwise equal on every
    /// rank and in every run.
    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()>;

    /// Splits the group: ranks of equal `color` form a new group, in the order of their `key`, ties
    /// broken by their ranks in this group. A collective of all ranks; one process splits one group
    /// at a time.
    ///
    /// The deadline is the run's. A rank that fails ends the whole run, whatever groups it was in.
    ///
    /// # Errors
    /// As of all collectives, or [`gnarl_common::Kind::Limit`] if the engine has no room for more
    /// groups.
    fn split(&self, stage: &str, color: usize, key: usize) -> Result<Box<dyn Communicator + '_>>;

    /// Aborts the run: all ranks stop waiting for this one.
    fn abort(&self, reason: &str);

    /// Waits until all ranks have arrived.
    fn barrier(&self, stage: &str) -> Result<()> {
        self.all_gather(stage, &[]).map(drop)
    }

    /// Replaces `values` on every rank by those of rank `root`.
    fn broadcast(&self, stage: &str, root: usize, values: &mut [f32]) -> Result<()> {
        let mine: &[u8] = if self.rank() == root { bytemuck::cast_slice(values) } else { &[] };
        let all = self.all_gather(stage, mine)?;
        bytemuck::cast_slice_mut(values).copy_from_slice(&all[root]);
        Ok(())
    }

    /// The sums of a few numbers in double precision, added in rank order.
    fn all_reduce_f64(&self, stage: &str, values: &mut [f64]) -> Result<()> {
        let all = self.all_gather(stage, bytemuck::cast_slice(values))?;
        values.fill(0.0);
        for bytes in all {
            for (sum, term) in values.iter_mut().zip(bytes.chunks_exact(8)) {
                *sum += f64::from_le_bytes(term.try_into().expect("eight bytes"));
            }
        }
        Ok(())
    }
}

/// Rejects `outgoing` if its length is not the number of ranks.
pub(crate) fn check_outgoing(outgoing: &[Vec<u8>], size: usize, stage: &str) -> Result<()> {
    if outgoing.len() == size {
        return Ok(());
    }
    let found = outgoing.len();
    Err(Error::usage(format!("{stage}: expected messages for {size} ranks, found {found}")))
}

/// Adds the values in `bytes`, in order; `bytes` need no alignment.
pub(crate) fn add(values: &mut [f32], bytes: &[u8]) {
    for (sum, term) in values.iter_mut().zip(bytes.as_chunks().0) {
        *sum += f32::from_le_bytes(*term);
    }
}
