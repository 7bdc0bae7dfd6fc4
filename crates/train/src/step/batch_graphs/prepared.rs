//! Batches that were prepared before the run.

use std::sync::Arc;

use gnarl_common::{Error, Result};

use super::{BatchGraphs, NotHere};
use crate::data::batch::BatchSpec;
use crate::data::packed::Pending;
use crate::data::prepared::PreparedBatches;
use crate::encoder::Encoder;
use crate::task::{Sharing, Task};

/// The prepared batches of a rank, with the model of `model`.
pub(crate) struct Prepared<'a, E> {
    pub batches: Arc<PreparedBatches>,
    pub model: &'a E,
}

impl<E: Encoder> BatchGraphs<E> for Prepared<'_, E> {
    type Held = NotHere;

    fn ask(&self, spec: &BatchSpec) -> Result<Option<Pending>> {
        let batches = self.batches.clone();
        let number = spec.graph;
        Ok(Some(Box::new(move || batches.read(number))))
    }

    fn hold(&self, spec: &BatchSpec) -> Result<NotHere> {
        Err(Error::invalid(format!("batch {} is prepared: it has no graph", spec.graph)))
    }

    fn encoder<'s>(&'s self, held: &'s NotHere) -> (&'s E, &'s E::Sampler) {
        match *held {}
    }

    fn model(&self, _: usize) -> &E {
        self.model
    }

    fn schedule<T: Task>(&self, _: &T, _: usize, epoch: usize, _: Sharing) -> Vec<BatchSpec> {
        self.batches.schedule(epoch)
    }
}
