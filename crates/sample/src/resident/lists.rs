//! In-neighbor lists of an edge type among the parts in memory.

use std::sync::Arc;

use gnarl_common::memory::SparePages;
use gnarl_common::{Divisor, Error, Result};
use gnarl_graph::{Csc, Narrow};
use gnarl_partition::LoadedBucket;

use super::merge::{End, Lists, Merge, Run, Sources};
use super::parts::{Buckets, PartNodes};

/// The nodes in memory that edges of a type join.
pub(super) struct Endpoints<'a> {
    /// Node types of sources and of destinations.
    pub types: (usize, usize),
    /// Nodes of each that a place has room for.
    pub strides: (Divisor, Divisor),
    /// Dataset ids of sources, by local id.
    pub ids: &'a [u32],
    pub places: &'a [Option<Arc<PartNodes>>],
    /// True for places with the same part as before.
    pub kept: &'a [bool],
    /// Memory for lists.
    pub spare: &'a Arc<SparePages>,
    /// True if parts stay as they are once they have come, so that no other lists are made of these.
    pub fixed: bool,
}

impl Endpoints<'_> {
    /// The lists of an edge type by its buckets, and by its lists before.
    ///
    /// # Errors
    /// If a bucket cannot be read, or has rows that its parts have not; [`gnarl_common::Kind::Limit`] without memory.
    pub fn lists(&self, buckets: (usize, &dyn Buckets), old: &Lists) -> Result<Lists> {
        let into: Vec<usize> = (0..self.places.len()).map(|j| self.num_into(buckets, j)).collect();
        let total: usize = into.iter().sum();
        let mut indices = self.spare.table(total)?;
        let mut keys = self.spare.table(if self.fixed { 0 } else { total })?;
        let ends = self.places.len() * self.strides.1.get() as usize + 1;
        let lists = (buckets, old);
        let indptr = match u32::try_from(total) {
            Ok(_) => {
                let mut indptr = self.spare.table::<u32>(ends)?;
                self.write(lists, &into, &mut indptr, (&mut indices, &mut keys))?;
                Narrow::U32(indptr.into())
            }
            Err(_) => {
                let mut indptr = self.spare.table::<u64>(ends)?;
                self.write(lists, &into, &mut indptr, (&mut indices, &mut keys))?;
                Narrow::U64(indptr.into())
            }
        };
        let csc = Csc { indptr, indices: indices.into(), edge: None };
        Ok(Lists { csc, keys: keys.into() })
    }

    /// Number of edges into the part in place `j`.
    fn num_into(&self, (edge_type, buckets): (usize, &dyn Buckets), j: usize) -> usize {
        let part = |nodes: &Option<Arc<PartNodes>>| nodes.as_ref().map(|nodes| nodes.part);
        let Some(to) = part(&self.places[j]) else { return 0 };
        let from = self.places.iter().filter_map(part);
        from.map(|from| buckets.len(edge_type, (from, to))).sum()
    }

    /// Writes the lists, of which `into` end in each place.
    fn write<E: End>(
        &self,
        (buckets, old): ((usize, &dyn Buckets), &Lists),
        into: &[usize],
        indptr: &mut [E],
        (mut indices, mut keys): (&mut [u32], &mut [u32]),
    ) -> Result<()> {
        let Self { ids, places, kept, .. } = self;
        let stride = self.strides.1.get() as usize;
        let sources = Sources { stride: self.strides.0, kept, ids };
        indptr[0] = E::new(0);
        let mut first = 0u64;
        for (j, ends) in indptr[1..].chunks_exact_mut(stride).enumerate() {
            let rows = places[j].as_ref().map_or(0, |nodes| nodes.ids[self.types.1].len());
            let runs = self.runs(buckets, j)?;
            let old = kept[j].then_some(old);
            let merge = Merge { sources: &sources, old, first: (j * stride) as u32, runs: &runs };
            let (mine, others) = indices.split_at_mut(into[j]);
            indices = others;
            let (my_keys, other_keys) = keys.split_at_mut(into[j].min(keys.len()));
            keys = other_keys;
            merge.lists(rows, ends, first, (mine, my_keys))?;
            first += into[j] as u64;
        }
        Ok(())
    }

    /// The new edges into the part in place `j`.
    fn runs(&self, (edge_type, buckets): (usize, &dyn Buckets), j: usize) -> Result<Vec<Run>> {
        let Some(to) = self.places[j].as_deref() else { return Ok(Vec::new()) };
        let new = |i: usize| !(self.kept[i] && self.kept[j]);
        let from: Vec<(usize, &PartNodes)> = self
            .places
            .iter()
            .enumerate()
            .filter_map(|(i, from)| Some((i, from.as_deref()?)))
            .filter(|(i, from)| new(*i) && buckets.len(edge_type, (from.part, to.part)) > 0)
            .collect();
        if from.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<_> = from.iter().map(|(_, from)| (from.part, to.part)).collect();
        let mut runs = Vec::with_capacity(from.len());
        for ((i, from), bucket) in from.into_iter().zip(buckets.read(edge_type, &wanted)?) {
            self.check(&bucket, from, to)?;
            runs.push(Run { first: i as u32 * self.strides.0.get(), bucket });
        }
        Ok(runs)
    }

    /// Rejects the edges from part `from` to part `to` that have nodes which these have not.
    fn check(&self, bucket: &LoadedBucket, from: &PartNodes, to: &PartNodes) -> Result<()> {
        let within = |rows: &[u32], nodes: &PartNodes, node_type: usize| {
            rows.iter().all(|&row| (row as usize) < nodes.ids[node_type].len())
        };
        if within(&bucket.src, from, self.types.0) && within(&bucket.dst, to, self.types.1) {
            return Ok(());
        }
        let message =
            format!("bucket ({}, {}) has nodes that its parts have not", from.part, to.part);
        Err(Error::invalid(message).hint("partition the graph again"))
    }
}
