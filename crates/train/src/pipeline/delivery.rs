//! Batches as they come out of the pipeline.

use std::sync::Arc;

use crate::data::batch::BatchSpec;
use crate::telemetry::Stages;

/// What comes out of the pipeline.
#[derive(Debug)]
pub struct Delivery<B> {
    /// The spec it answers.
    pub spec: BatchSpec,
    /// The batch, unless the spec had no seeds.
    pub prepared: Option<Arc<B>>,
    /// Seconds that the stages before compute worked on it.
    pub stages: Stages,
}
