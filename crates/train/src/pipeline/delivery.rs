//! Batches at the end of the pipeline.

use std::sync::Arc;

use crate::data::batch::BatchSpec;
use crate::step::AnyBatch;
use crate::telemetry::Stages;

/// A batch at the end of the pipeline.
pub struct Delivery<'a> {
    /// The entry of the batch schedule.
    pub spec: BatchSpec,
    /// The batch, unless the spec had no seeds.
    pub prepared: Option<Arc<dyn AnyBatch + 'a>>,
    /// Seconds that the stages before compute spent on it, over the number of batches that they work on at once: the sum over
    /// an epoch is comparable to its wall time.
    pub stages: Stages,
}

impl Delivery<'_> {
    /// The batch of one of so many lanes.
    pub(super) fn of_lanes(mut self, lanes: usize) -> Self {
        if self.spec.fixed {
            // Those of a graph are all in one lane.
            return self;
        }
        let Stages { load, sample, fetch, receive, compact, .. } = &mut self.stages;
        for seconds in [load, sample, fetch, receive, compact] {
            *seconds /= lanes as f64;
        }
        self
    }
}
