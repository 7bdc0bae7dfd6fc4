//! Features of a partitioned graph, as a store for training.

use std::sync::{Mutex, PoisonError};

use gnarl_common::{Error, Result};
use gnarl_sample::parts::Routes;
use gnarl_store::cache::{CacheStats, CachedRows};
use gnarl_store::{FeatureStore, Normalize, RowSource, Rows};

use crate::access::PartAccess;
use crate::rows::DividedRows;

/// Features of all nodes of a type: those of local parts from their files, the others from servers, dense
/// ones through a cache.
pub struct PartitionedFeatures {
    ntype: String,
    /// Number of the type in the partition.
    number: usize,
    routes: Routes,
    parts: Vec<PartAccess>,
    remote: CachedRows<DividedRows>,
    width: usize,
    sparse: bool,
    normalize: Normalize,
    /// Buffer of the last call's remote features, for reuse.
    spare: Mutex<Vec<f32>>,
}

/// Prefetch distance in rows.
const AHEAD: usize = 8;

/// Output rows, and the ids whose features go there.
type Asked = (Vec<usize>, Vec<u64>);

impl PartitionedFeatures {
    /// Features of the nodes of type `ntype` of `parts`, `width` values each. `cached` builds the cache of remote
    /// features.
    ///
    /// # Errors
    /// If a part is missing or has no such type, or those of `cached`.
    pub fn new(
        (ntype, routes): (&str, Routes),
        parts: Vec<PartAccess>,
        (width, sparse): (usize, bool),
        normalize: Normalize,
        cached: impl FnOnce(DividedRows) -> Result<CachedRows<DividedRows>>,
    ) -> Result<Self> {
        let remote = cached(DividedRows::new(ntype, routes.clone(), parts.clone(), width)?)?;
        let mut number = 0;
        for part in &parts {
            if let PartAccess::Local(part) = part {
                number = part.type_number(ntype)?;
            }
        }
        let (ntype, spare) = (ntype.to_string(), Mutex::default());
        Ok(Self { ntype, number, routes, parts, remote, width, sparse, normalize, spare })
    }

    /// Splits a request by part.
    fn asked(&self, ids: &[u32]) -> Result<Vec<Asked>> {
        let mut asked = vec![Asked::default(); self.parts.len()];
        for (place, &id) in ids.iter().enumerate() {
            if id as usize >= self.routes.num_nodes() {
                return Err(Error::invalid(format!("node {id} has no features")));
            }
            let of_part = &mut asked[self.routes.owner(id)];
            of_part.0.push(place);
            of_part.1.push(id.into());
        }
        Ok(asked)
    }

    /// Copies the features of local parts; returns the remote ones.
    fn copy_local(&self, ids: &[u32], out: &mut [f32]) -> Result<Asked> {
        let mut remote = Asked::default();
        let part = |id: u32| match (id as usize) < self.routes.num_nodes() {
            true => Ok(&self.parts[self.routes.owner(id)]),
            false => Err(Error::invalid(format!("node {id} has no features"))),
        };
        for (place, (&id, row)) in ids.iter().zip(out.chunks_mut(self.width.max(1))).enumerate() {
            // Two steps of prefetching: the location of a row, then the row itself.
            if let Some(&later) = ids.get(place + 3 * AHEAD) {
                self.routes.prefetch(later);
            }
            if let Some(&later) = ids.get(place + 2 * AHEAD)
                && let PartAccess::Local(part) = part(later)?
            {
                part.prefetch_place(self.number, later.into());
            }
            if let Some(&later) = ids.get(place + AHEAD)
                && let PartAccess::Local(part) = part(later)?
            {
                part.prefetch_row(self.number, later.into());
            }
            match part(id)? {
                PartAccess::Local(part) => part.feature_row(self.number, id.into(), row)?,
                PartAccess::Remote(_) => {
                    remote.0.push(place);
                    remote.1.push(id.into());
                    continue;
                }
            }
            self.normalize.apply(row);
        }
        Ok(remote)
    }

    fn gather_sparse(&self, ids: &[u32]) -> Result<Rows> {
        let asked = self.asked(ids)?;
        let parts = self.parts.iter().zip(&asked).filter(|(_, (_, ids))| !ids.is_empty());
        type Reply<'a> = Box<dyn FnOnce() -> Result<Rows> + 'a>;
        let begun: Vec<(Reply, &[usize])> = parts
            .map(|(part, (places, ids))| -> (Reply, &[usize]) {
                match part {
                    PartAccess::Remote(part) => {
                        (Box::new(part.begin_features(Some(&self.ntype), ids.clone())), places)
                    }
                    PartAccess::Local(part) => {
                        (Box::new(|| part.features(Some(&self.ntype), ids)), places)
                    }
                }
            })
            .collect();
        let mut from = vec![(0, 0); ids.len()];
        let mut replies = Vec::new();
        for (reply, places) in begun {
            let Rows::Sparse { indptr, indices, values } = reply()? else {
                return Err(Error::invalid("expected sparse features, found dense ones"));
            };
            if indptr.len() != places.len() + 1 {
                let (found, wanted) = (indptr.len() - 1, places.len());
                return Err(Error::invalid(format!(
                    "expected {wanted} rows, one per node; found {found}"
                )));
            }
            for (row, &place) in places.iter().enumerate() {
                from[place] = (replies.len(), row);
            }
            replies.push((indptr, indices, values));
        }
        let mut indptr = vec![0u64];
        let mut indices = Vec::new();
        let mut values = Vec::new();
        for (reply, row) in from {
            let (ends, columns, all) = &replies[reply];
            let span = ends[row] as usize..ends[row + 1] as usize;
            let start = values.len();
            indices.extend_from_slice(&columns[span.clone()]);
            values.extend_from_slice(&all[span]);
            self.normalize.apply(&mut values[start..]);
            indptr.push(values.len() as u64);
        }
        Ok(Rows::Sparse { indptr, indices, values })
    }
}

impl FeatureStore for PartitionedFeatures {
    fn rows(&self) -> usize {
        self.routes.num_nodes()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_sparse(&self) -> bool {
        self.sparse
    }

    fn gather(&self, ids: &[u32]) -> Result<Rows> {
        if self.sparse {
            return self.gather_sparse(ids);
        }
        let mut out = vec![0.0; ids.len() * self.width];
        self.gather_into(ids, &mut out)?;
        Ok(Rows::Dense(out))
    }

    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        if self.sparse {
            return Err(Error::invalid("sparse features cannot be gathered as dense rows"));
        }
        let (places, ids) = self.copy_local(ids, out)?;
        if ids.is_empty() {
            return Ok(());
        }
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = std::mem::take(&mut *spare());
        rows.resize(ids.len() * self.width, 0.0);
        self.remote.fetch(&ids, &mut rows)?;
        for (&place, row) in places.iter().zip(rows.chunks(self.width.max(1))) {
            let out = &mut out[place * self.width..(place + 1) * self.width];
            out.copy_from_slice(row);
            self.normalize.apply(out);
        }
        *spare() = rows;
        Ok(())
    }

    fn cache_stats(&self) -> Option<CacheStats> {
        let all_here = self.parts.iter().all(PartAccess::is_here);
        (!all_here).then(|| self.remote.stats())
    }
}
