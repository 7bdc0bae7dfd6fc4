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
    /// Seconds that the stages before compute spent on it.
    pub stages: Stages,
}
