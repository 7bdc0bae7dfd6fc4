//! Features of a local dataset or part, mapped from its files.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Buf, DType, Error, Result, Stored, read_ahead};
use gnarl_graph::{Column, Features};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cache::CacheStats;
use crate::file_rows::FileRows;
use crate::widen::Values;
use crate::{FeatureStore, Rows};

/// The normalization of gathered rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Rows as stored.
    #[default]
    None,
    /// Each row divided by the sum of its absolute values, as is usual for bags of words.
    Row,
}

impl Normalize {
    /// Normalizes a row.
    pub fn apply(self, row: &mut [f32]) {
        if self == Self::None {
            return;
        }
        let sum: f32 = row.iter().map(|v| v.abs()).sum();
        if sum > 0.0 {
            row.iter_mut().for_each(|v| *v /= sum);
        }
    }
}

/// Prefetch distance in rows.
const AHEAD: usize = 8;

/// The features of a mapped column.
#[derive(Debug, Clone)]
pub struct MappedFeatures {
    source: Source,
    rows: usize,
    width: usize,
    normalize: Normalize,
}

#[derive(Debug, Clone)]
enum Source {
    Dense {
        values: Values,
        column: Column,
        /// Set where the file exceeds memory: then nothing is read through the mapping.
        apart: Arc<OnceLock<FileRows>>,
    },
    Csr {
        indptr: Buf<u64>,
        indices: Buf<u32>,
        values: Buf<f32>,
    },
}

impl MappedFeatures {
    /// A store of `features`.
    ///
    /// # Errors
    /// If the stored type cannot be widened to f32.
    pub fn new(features: Features, normalize: Normalize) -> Result<Self> {
        let (rows, width) = (features.rows(), features.width());
        let source = match features {
            Features::Dense(column) => {
                let values = Values::open(&column)?;
                Source::Dense { values, column, apart: Arc::default() }
            }
            Features::Csr { indptr, indices, values, .. } => {
                Source::Csr { indptr, indices, values }
            }
        };
        Ok(Self { source, rows, width, normalize })
    }

    /// Bytes of the values, and of the columns of sparse ones.
    pub fn num_bytes(&self) -> u64 {
        match &self.source {
            Source::Dense { values, .. } => values.bytes(),
            Source::Csr { indices, values, .. } => {
                (size_of_val(&indices[..]) + size_of_val(&values[..])) as u64
            }
        }
    }

    /// Copies the dense features of `id` into `out`, of the row's width.
    ///
    /// # Errors
    /// If the id has no row, or the rows are sparse.
    pub fn row_into(&self, id: u32, out: &mut [f32]) -> Result<()> {
        self.check(&[id])?;
        self.dense()?.copy_row(id as usize, out);
        self.normalize.apply(out);
        Ok(())
    }

    /// Copies a dense row of features, as they are stored, into `out`, of the row's width: those of edges, of which there
    /// may be more than 2³².
    ///
    /// # Errors
    /// As [`MappedFeatures::row_into`].
    pub fn copy_row(&self, row: u64, out: &mut [f32]) -> Result<()> {
        if row >= self.rows as u64 {
            let message = format!("row {row} has no features: there are {} rows", self.rows);
            return Err(Error::invalid(message));
        }
        self.dense()?.copy_row(row as usize, out);
        Ok(())
    }

    /// Prefetches a dense row that is read soon.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        if let Source::Dense { values, .. } = &self.source
            && (id as usize) < self.rows
        {
            values.prefetch_row(id as usize, self.width);
        }
    }

    /// The rows of a file that exceeds memory.
    fn apart(&self) -> Option<&FileRows> {
        match &self.source {
            Source::Dense { apart, .. } => apart.get(),
            Source::Csr { .. } => None,
        }
    }

    fn dense(&self) -> Result<&Values> {
        match &self.source {
            Source::Dense { values, .. } => Ok(values),
            Source::Csr { .. } => {
                Err(Error::invalid("sparse features cannot be gathered as dense rows"))
            }
        }
    }

    fn check(&self, ids: &[u32]) -> Result<()> {
        match ids.iter().find(|&&id| id as usize >= self.rows) {
            None => Ok(()),
            Some(id) => Err(Error::invalid(format!(
                "node {id} has no features: there are {} rows",
                self.rows
            ))),
        }
    }

    /// Appends the sparse features of `id`: the columns of its values, and the values.
    ///
    /// # Errors
    /// If the id has no row, or the rows are dense.
    pub(crate) fn append_sparse(
        &self,
        id: u32,
        columns: &mut Vec<u32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        self.check(&[id])?;
        let Source::Csr { indptr, indices, values } = &self.source else {
            return Err(Error::invalid("the features are not sparse"));
        };
        let range = indptr[id as usize] as usize..indptr[id as usize + 1] as usize;
        let start = out.len();
        columns.extend_from_slice(&indices[range.clone()]);
        out.extend_from_slice(&values[range]);
        self.normalize.apply(&mut out[start..]);
        Ok(())
    }

    fn gather_sparse(&self, ids: &[u32]) -> Result<Rows> {
        let Source::Csr { indptr, .. } = &self.source else {
            return Err(Error::invalid("the features are not sparse"));
        };
        let range = |id: u32| indptr[id as usize] as usize..indptr[id as usize + 1] as usize;
        let total = ids.iter().map(|&id| range(id).len()).sum();
        let mut out = (
            Vec::with_capacity(ids.len() + 1),
            Vec::with_capacity(total),
            Vec::with_capacity(total),
        );
        out.0.push(0);
        for &id in ids {
            self.append_sparse(id, &mut out.1, &mut out.2)?;
            out.0.push(out.2.len() as u64);
        }
        Ok(Rows::Sparse { indptr: out.0, indices: out.1, values: out.2 })
    }
}

impl FeatureStore for MappedFeatures {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_sparse(&self) -> bool {
        matches!(self.source, Source::Csr { .. })
    }

    fn gather(&self, ids: &[u32]) -> Result<Rows> {
        if self.is_sparse() {
            self.check(ids)?;
            return self.gather_sparse(ids);
        }
        let mut out = vec![0.0; ids.len() * self.width];
        self.gather_into(ids, &mut out)?;
        Ok(Rows::Dense(out))
    }

    fn stored(&self) -> Option<Stored<'_>> {
        if self.apart().is_some() {
            return None;
        }
        match (&self.source, self.normalize) {
            (Source::Dense { values: Values::F32(values), .. }, Normalize::None) => {
                Some(Stored::F32(values))
            }
            (Source::Dense { values: Values::F16(values), .. }, Normalize::None) => {
                Some(Stored::F16(values))
            }
            (Source::Dense { values: Values::Bf16(values), .. }, Normalize::None) => {
                Some(Stored::Bf16(values))
            }
            _ => None,
        }
    }

    fn exact_type(&self) -> DType {
        match (&self.source, self.normalize) {
            (Source::Dense { values: Values::F16(_), .. }, Normalize::None) => DType::F16,
            (Source::Dense { values: Values::Bf16(_), .. }, Normalize::None) => DType::BF16,
            (Source::Dense { values: Values::U8(_), .. }, Normalize::None) => DType::U8,
            _ => DType::F32,
        }
    }

    fn file_bytes(&self) -> u64 {
        match &self.source {
            Source::Dense { values, .. } => values.bytes(),
            Source::Csr { .. } => 0,
        }
    }

    fn begin_random_reads(&self, memory: u64) -> Result<()> {
        match &self.source {
            Source::Dense { values, column, apart } => {
                if apart.get().is_none() {
                    let opened = column.row_file().inspect_err(|_| values.expect_random_reads())?;
                    if let Some(file) = opened {
                        _ = apart.set(FileRows::new(file, memory));
                    }
                }
            }
            Source::Csr { indices, values, .. } => {
                indices.expect_random_reads();
                values.expect_random_reads();
            }
        }
        Ok(())
    }

    fn cache_stats(&self) -> Option<CacheStats> {
        self.apart().map(FileRows::stats)
    }

    fn gather_ahead(&self, ids: &[u32]) -> Result<Rows> {
        self.check(ids)?;
        if let Source::Csr { indptr, indices, values } = &self.source {
            let range = |i: usize| {
                let row = ids[i] as usize;
                indptr[row] as usize..indptr[row + 1] as usize
            };
            read_ahead::bring(indices, ids.len(), &range);
            read_ahead::bring(values, ids.len(), &range);
            return self.gather_sparse(ids);
        }
        let mut out = vec![0.0; ids.len() * self.width];
        self.gather_ahead_into(ids, &mut out)?;
        Ok(Rows::Dense(out))
    }

    fn gather_ahead_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        self.check(ids)?;
        self.dense()?;
        if self.apart().is_some() {
            return self.gather_into(ids, out);
        }
        let rows = read_ahead::GRAIN;
        read_ahead::install(|| {
            let tasks = out.par_chunks_mut((rows * self.width).max(1)).zip(ids.par_chunks(rows));
            tasks.try_for_each(|(out, ids)| self.gather_into(ids, out))
        })
    }

    fn expect_reads(&self, ids: Range<usize>) {
        if let Source::Dense { values, .. } = &self.source
            && self.apart().is_none()
        {
            let ids = ids.start.min(self.rows)..ids.end.min(self.rows);
            values.expect_reads(ids.start * self.width..ids.end * self.width);
        }
    }

    fn forget(&self, ids: Range<usize>) {
        let ids = ids.start.min(self.rows)..ids.end.min(self.rows);
        match &self.source {
            Source::Dense { .. } if self.apart().is_some() => {}
            Source::Dense { values, .. } => {
                values.forget(ids.start * self.width..ids.end * self.width)
            }
            Source::Csr { indptr, indices, values } => {
                let range = indptr[ids.start] as usize..indptr[ids.end] as usize;
                indices.forget(range.clone());
                values.forget(range);
            }
        }
    }

    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        let values = self.dense()?;
        if self.width == 0 {
            return Ok(());
        }
        self.check(ids)?;
        if let Some(rows) = self.apart() {
            return rows.visit(ids, &mut |i, bytes| {
                let row = &mut out[i * self.width..(i + 1) * self.width];
                values.widen(bytes, row);
                self.normalize.apply(row);
            });
        }
        for (i, row) in out.chunks_exact_mut(self.width).take(ids.len()).enumerate() {
            if let Some(&later) = ids.get(i + AHEAD) {
                values.prefetch_row(later as usize, self.width);
            }
            values.copy_row(ids[i] as usize, row);
            self.normalize.apply(row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr(normalize: Normalize) -> MappedFeatures {
        let features = Features::Csr {
            indptr: vec![0u64, 2, 2, 3].into(),
            indices: vec![0u32, 4, 2].into(),
            values: vec![1.0f32, 3.0, 5.0].into(),
            width: 5,
        };
        MappedFeatures::new(features, normalize).unwrap()
    }

    #[test]
    fn sparse_rows_come_in_the_order_asked() {
        let rows = csr(Normalize::None).gather(&[2, 1, 0, 2]).unwrap();
        let expected = Rows::Sparse {
            indptr: vec![0, 1, 1, 3, 4],
            indices: vec![2, 0, 4, 2],
            values: vec![5.0, 1.0, 3.0, 5.0],
        };
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_read_ahead_are_the_same() {
        let store = csr(Normalize::Row);
        let ids: Vec<u32> = (0..100).map(|i| i * 7 % 3).collect();
        assert_eq!(store.gather_ahead(&ids).unwrap(), store.gather(&ids).unwrap());
        assert!(store.gather_ahead(&[1, 7]).unwrap_err().to_string().contains("node 7"));
        assert!(store.gather_ahead_into(&[], &mut []).is_err(), "sparse");
    }

    #[test]
    fn rows_are_normalised_to_sum_one() {
        let Rows::Sparse { values, .. } = csr(Normalize::Row).gather(&[0]).unwrap() else {
            panic!("stored sparse")
        };
        assert_eq!(values, [0.25, 0.75]);
    }

    #[test]
    fn unknown_nodes_are_named() {
        let message = csr(Normalize::None).gather(&[7]).unwrap_err().to_string();
        assert!(message.contains("node 7 has no features"), "{message}");
    }
}
