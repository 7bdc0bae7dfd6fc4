//! Features of parts in memory, each in a place.

use std::sync::Arc;

use gnarl_common::{DType, Divisor, Error, Result};

use crate::{FeatureStore, MappedFeatures, Rows};

/// Features of parts, of which each is in a place: the row of id `i` is row `i % stride` of the part in place `i / stride`.
#[derive(Debug, Clone)]
pub struct PlacedFeatures {
    places: Vec<Option<Arc<MappedFeatures>>>,
    stride: Divisor,
    width: usize,
    sparse: bool,
}

impl PlacedFeatures {
    /// Those of `places`, of up to `stride` rows each.
    ///
    /// # Errors
    /// If no place has a part, or parts differ in width or kind.
    pub fn new(places: Vec<Option<Arc<MappedFeatures>>>, stride: u32) -> Result<Self> {
        let first = places.iter().flatten().next();
        let first = first.ok_or_else(|| Error::invalid("features of no parts"))?;
        let (width, sparse) = (first.width(), first.is_sparse());
        if places.iter().flatten().any(|part| (part.width(), part.is_sparse()) != (width, sparse)) {
            return Err(Error::invalid("features of parts differ in width or kind"));
        }
        Ok(Self { places, stride: Divisor::new(stride.max(1)), width, sparse })
    }

    /// The part of an id, and the row there.
    fn place(&self, id: u32) -> Result<(&MappedFeatures, u32)> {
        let (place, row) = self.stride.divide(id);
        let part = self.places.get(place as usize).and_then(Option::as_ref);
        let part =
            part.ok_or_else(|| Error::invalid(format!("node {id} is in no part in memory")))?;
        Ok((part, row))
    }
}

/// Prefetch distance in rows.
const AHEAD: usize = 8;

impl FeatureStore for PlacedFeatures {
    fn rows(&self) -> usize {
        self.places.len() * self.stride.get() as usize
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_sparse(&self) -> bool {
        self.sparse
    }

    fn exact_type(&self) -> DType {
        let first = self.places.iter().flatten().next();
        first.map_or(DType::F32, |part| part.exact_type())
    }

    fn gather(&self, ids: &[u32]) -> Result<Rows> {
        if !self.sparse {
            let mut out = vec![0.0; ids.len() * self.width];
            self.gather_into(ids, &mut out)?;
            return Ok(Rows::Dense(out));
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &id in ids {
            let (part, row) = self.place(id)?;
            part.append_sparse(row, &mut indices, &mut values)?;
            indptr.push(values.len() as u64);
        }
        Ok(Rows::Sparse { indptr, indices, values })
    }

    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        if self.sparse {
            return Err(Error::invalid("sparse features cannot be gathered as dense rows"));
        }
        if self.width == 0 {
            return Ok(());
        }
        for (i, out) in out.chunks_exact_mut(self.width).take(ids.len()).enumerate() {
            if let Some(&later) = ids.get(i + AHEAD)
                && let Ok((part, row)) = self.place(later)
            {
                part.prefetch(row);
            }
            let (part, row) = self.place(ids[i])?;
            part.row_into(row, out)?;
        }
        Ok(())
    }
}
