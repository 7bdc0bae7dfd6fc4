//! Parts that are in the memory of batch workers.

use std::sync::Arc;

use gnarl_common::{Error, Result};

use super::era::schedule;
use super::{BatchGraphs, NotHere};
use crate::data::batch::BatchSpec;
use crate::data::packed::Pending;
use crate::data::resident::EraCourse;
use crate::encoder::Encoder;
use crate::feed::Feed;
use crate::task::{Sharing, Task};

/// The schedule of batches that batch workers prepare, with the model of `model`.
pub(crate) struct Elsewhere<'a, E> {
    pub feed: &'a Arc<Feed>,
    pub course: &'a EraCourse,
    pub model: &'a E,
}

impl<E: Encoder> BatchGraphs<E> for Elsewhere<'_, E> {
    type Held = NotHere;

    fn ask(&self, spec: &BatchSpec) -> Result<Option<Pending>> {
        self.feed.ask(spec).map(Some)
    }

    fn ahead(&self) -> usize {
        self.feed.ahead()
    }

    fn batch_workers(&self) -> usize {
        self.feed.living()
    }

    fn reach(&self, era: usize) {
        self.feed.reach(era);
    }

    fn hold(&self, spec: &BatchSpec) -> Result<NotHere> {
        Err(Error::invalid(format!("the parts of era {} are not in this process", spec.graph)))
    }

    fn encoder<'s>(&'s self, held: &'s NotHere) -> (&'s E, &'s E::Sampler) {
        match *held {}
    }

    fn model(&self, _: usize) -> &E {
        self.model
    }

    fn schedule<T: Task>(
        &self,
        task: &T,
        _: usize,
        epoch: usize,
        sharing: Sharing,
    ) -> Vec<BatchSpec> {
        schedule(self.course, task, epoch, sharing, &|_, _| {})
    }
}
