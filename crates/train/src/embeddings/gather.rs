//! Gathering of the embeddings of all ranks.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use bytemuck::Pod;
use gnarl_common::{Buf, BufMut, Error, Kind, Result, Spool};
use gnarl_engine::Communicator;
use gnarl_nn::Tensor;
use gnarl_store::RowSource;
use gnarl_store::embedding::Nodes;

use super::Table;

/// Bytes of embeddings per round of gathering, which the first rank has three times.
const ROUND_BYTES: usize = 16 << 20;

/// Bytes of gathered embeddings that are kept in memory.
const IN_MEMORY: usize = 64 << 20;

/// All embeddings of a table, by id.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// Embedding width.
    pub width: usize,
    /// `rows × width`.
    pub values: Values<'a>,
}

/// Values of embeddings, or of the state of their optimizer.
#[derive(Debug, Clone)]
pub enum Values<'a, T: Pod = f32> {
    /// Those of a table in memory.
    Borrowed(&'a [T]),
    /// Of their own, or those of a mapped file, which is read by as much as is used.
    Shared(Buf<T>),
}

impl<T: Pod> Deref for Values<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(values) => values,
            Self::Shared(values) => values,
        }
    }
}

impl<T: Pod> From<Vec<T>> for Values<'_, T> {
    fn from(values: Vec<T>) -> Self {
        Self::Shared(values.into())
    }
}

impl Rows<'_> {
    /// The embeddings of `ids`, in that order.
    ///
    /// # Errors
    /// If an id has none.
    pub fn gather(&self, ids: &[u64]) -> Result<Tensor> {
        let mut out = Tensor::scratch(ids.len(), self.width);
        for (&id, out) in ids.iter().zip(out.data_mut().chunks_exact_mut(self.width)) {
            let from = id as usize * self.width;
            let row = self.values.get(from..from + self.width);
            out.copy_from_slice(row.ok_or_else(|| Error::invalid(format!("no embedding {id}")))?);
        }
        Ok(out)
    }

    /// All embeddings as a tensor.
    pub fn into_tensor(self) -> Tensor {
        Tensor::from_vec(self.values.len() / self.width, self.width, self.values.to_vec())
    }
}

/// The complete state of a table, by id.
#[derive(Debug)]
pub struct Whole<'a> {
    /// Name of the table.
    pub name: &'a str,
    /// Embeddings.
    pub rows: Values<'a>,
    /// Embeddings of the best evaluation so far.
    pub best: Values<'a>,
    /// Optimizer state of each row.
    pub state: Values<'a>,
    /// Number of updates of each row.
    pub steps: Values<'a, u32>,
}

impl Table {
    /// Gathers all embeddings on the first rank; none on the others. A collective of all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn gather_to_root(&self, comm: &dyn Communicator) -> Result<Rows<'_>> {
        let values = self.array_on_first(comm, self.rows.values(), self.rows.width())?;
        Ok(Rows { width: self.rows.width(), values })
    }

    /// Gathers the embeddings of the best evaluation on the first rank; none on the others.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn best_on_first(&self, comm: &dyn Communicator) -> Result<Rows<'_>> {
        let values = self.array_on_first(comm, self.best(), self.rows.width())?;
        Ok(Rows { width: self.rows.width(), values })
    }

    /// Gathers the embeddings of the best evaluation on the first rank, and drops the table; none on the others.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn into_best_on_first(self, comm: &dyn Communicator) -> Result<Rows<'static>> {
        let width = self.rows.width();
        if comm.size() == 1 && self.rows.ids().ascend() {
            return Ok(Rows { width, values: Values::Shared(self.into_best().freeze()?) });
        }
        let values = match self.array_on_first(comm, self.best(), width)? {
            Values::Shared(values) => values,
            Values::Borrowed(values) => values.to_vec().into(),
        };
        Ok(Rows { width, values: Values::Shared(values) })
    }

    /// Gathers the complete state of the table on the first rank; none on the others. A collective
    /// of all ranks.
    ///
    /// # Errors
    /// If a rank fails.
    pub fn whole(&self, comm: &dyn Communicator) -> Result<Whole<'_>> {
        let (state, steps) = self.rows.state();
        let (width, kept) = (self.rows.width(), self.rows.state_width());
        Ok(Whole {
            name: &self.name,
            rows: self.array_on_first(comm, self.rows.values(), width)?,
            best: self.array_on_first(comm, self.best(), width)?,
            state: self.array_on_first(comm, state, kept)?,
            steps: self.array_on_first(comm, steps, 1)?,
        })
    }

    /// Gathers all ranks' values on the first, by id, of which `own` has `each` per own row: in a mapped file if they are
    /// many.
    fn array_on_first<'a, T: Pod>(
        &self,
        comm: &dyn Communicator,
        own: &'a BufMut<T>,
        each: usize,
    ) -> Result<Values<'a, T>> {
        if comm.size() == 1 && self.rows.ids().ascend() {
            return Ok(Values::Borrowed(own));
        }
        let own = own.scan();
        let mut all = match self.home.folder() {
            Some(folder) => Spool::in_folder(0, folder),
            None => Spool::new(IN_MEMORY),
        };
        let mut round = Vec::new();
        for ids in self.rounds(each) {
            let mut outgoing = vec![Vec::new(); comm.size()];
            let share = self.share(&ids, &own, each);
            if comm.size() == 1 {
                all.append(&share)?;
                continue;
            }
            outgoing[0] = bytemuck::cast_slice(&share).to_vec();
            let came = comm.all_to_all("embeddings to the first", outgoing)?;
            if comm.rank() == 0 {
                round.clear();
                self.merge(&came, ids, each, &mut round)?;
                all.append(&round)?;
            }
        }
        Ok(Values::Shared(all.finish()?))
    }

    /// Id ranges gathered together, equal on all ranks.
    fn rounds(&self, each: usize) -> impl Iterator<Item = Range<u64>> + use<> {
        let (rows, row) = (self.owners.rows(), each.max(1) * size_of::<f32>());
        let step = (ROUND_BYTES / row).max(1);
        (0..rows).step_by(step).map(move |first| first..rows.min(first + step as u64))
    }

    /// The values of own rows with these ids, ascending.
    fn share<'a, T: Pod>(&self, ids: &Range<u64>, values: &'a [T], each: usize) -> Cow<'a, [T]> {
        let own = self.rows.ids();
        if own.ascend() {
            let rows = own.rows_of(&Nodes::Ids(ids.clone()));
            return Cow::Borrowed(&values[rows.start * each..rows.end * each]);
        }
        // In each part they are consecutive: rows are read in as many sequences as there are parts.
        let mut found = Vec::with_capacity((ids.end - ids.start) as usize * each);
        for row in ids.clone().filter_map(|id| own.row(id)) {
            found.extend_from_slice(&values[row * each..(row + 1) * each]);
        }
        Cow::Owned(found)
    }

    /// Merges the values of all ranks, each by ascending id, and appends them.
    fn merge<T: Pod>(
        &self,
        came: &[Vec<u8>],
        ids: Range<u64>,
        each: usize,
        all: &mut Vec<T>,
    ) -> Result<()> {
        let mut left: Vec<&[u8]> = came.iter().map(Vec::as_slice).collect();
        for id in ids {
            let from = self.owners.of(id);
            let (row, rest) =
                left[from].split_at_checked(each * size_of::<T>()).ok_or_else(|| {
                    Error::new(Kind::Rank, format!("rank {from} sent no row {id} of {}", self.name))
                })?;
            all.extend(row.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
            left[from] = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use gnarl_common::Home;
    use gnarl_common::IdMap;
    use gnarl_engine::local;
    use gnarl_store::placement::{ByRange, Placement};

    use super::super::TableSpec;
    use super::*;

    fn spec() -> TableSpec {
        TableSpec::of_entities(6, 3)
    }

    #[test]
    fn rows_of_all_ranks_are_those_of_one() {
        let mut alone = spec().share(None, (0, 1), &Home::Memory).unwrap();
        alone.rows.update(&[4, 1], &[1.0; 6], 0.1).unwrap();
        let parts = ByRange::new(IdMap::new(4, &[3, 0, 3, 1, 2, 1]).unwrap().into());
        let parts: Arc<dyn Placement> = Arc::new(parts);
        for (ranks, placement) in [(1, None), (3, None), (3, Some(&parts)), (4, Some(&parts))] {
            local::run(ranks, Duration::from_secs(60), |comm| {
                let mut table = spec().share(placement, (comm.rank(), ranks), &Home::Memory)?;
                let own: Vec<u64> =
                    [4, 1].into_iter().filter(|&id| table.rows.ids().row(id).is_some()).collect();
                table.rows.update(&own, &vec![1.0; 3 * own.len()], 0.1)?;
                let (whole, kept) = (table.whole(comm)?, alone.rows.state());
                let first = table.gather_to_root(comm)?.values;
                if comm.rank() > 0 {
                    assert!(first.is_empty() && whole.state.is_empty(), "the first rank alone");
                    return Ok(());
                }
                assert_eq!(*first, **alone.rows.values());
                assert_eq!((&*whole.state, &*whole.steps), (&**kept.0, &**kept.1));
                assert_eq!(*whole.best, **alone.best());
                let rows = Rows { width: 3, values: first };
                assert_eq!(rows.gather(&[5, 0])?.row(1), &alone.rows.values()[..3]);
                assert!(rows.gather(&[6]).is_err());
                Ok(())
            })
            .unwrap();
        }
    }
}
