//! Features of held-out edges in memory.

use gnarl_common::{Error, Result};
use gnarl_store::{FeatureStore, Rows};

/// Dense features, row after row.
pub(crate) struct FeaturesInMemory {
    width: usize,
    values: Vec<f32>,
}

impl FeaturesInMemory {
    /// No features, of so many values each.
    pub fn new(width: usize) -> Self {
        Self { width, values: Vec::new() }
    }

    /// Appends rows.
    pub fn append(&mut self, values: &[f32]) {
        self.values.extend_from_slice(values);
    }
}

impl FeatureStore for FeaturesInMemory {
    fn rows(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn gather(&self, ids: &[u32]) -> Result<Rows> {
        let mut out = vec![0.0; ids.len() * self.width];
        self.gather_into(ids, &mut out)?;
        Ok(Rows::Dense(out))
    }

    fn gather_into(&self, ids: &[u32], out: &mut [f32]) -> Result<()> {
        let rows = out.chunks_exact_mut(self.width.max(1));
        for (&id, out) in ids.iter().zip(rows) {
            let start = id as usize * self.width;
            let row = self.values.get(start..start + self.width).ok_or_else(|| {
                Error::invalid(format!("edge {id} has no features: there are {}", self.rows()))
            })?;
            out.copy_from_slice(row);
        }
        Ok(())
    }
}
