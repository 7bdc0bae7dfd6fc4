//! The pipeline stages before compute, with their times.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use gnarl_common::Result;
use gnarl_sample::Scratch;

use super::delivery::Delivery;
use crate::data::batch::BatchSpec;
use crate::faults;
use crate::step::TrainStep;
use crate::telemetry::Stages;

/// The stage that schedules batches.
pub(super) struct Schedule<J> {
    specs: J,
}

/// A scheduled batch.
pub(super) struct Scheduled {
    pub spec: BatchSpec,
    stages: Stages,
}

/// A scheduled and sampled batch.
pub(super) struct Sampled<S> {
    spec: BatchSpec,
    batch: Option<S>,
    stages: Stages,
}

impl<J: Iterator<Item = BatchSpec>> Schedule<J> {
    pub fn new(specs: J) -> Self {
        Self { specs }
    }

    pub fn next(&mut self) -> Option<Scheduled> {
        let start = Instant::now();
        faults::reached("schedule");
        let spec = self.specs.next()?;
        let schedule = start.elapsed().as_secs_f64();
        Some(Scheduled { spec, stages: Stages { schedule, ..Stages::default() } })
    }
}

/// The stage that samples batches.
pub(super) struct Sample<'a, L> {
    pub step: &'a L,
    scratch: Scratch,
    /// Graphs whose only batch has been sampled.
    made: HashSet<usize>,
}

impl<'a, L: TrainStep> Sample<'a, L> {
    pub fn new(step: &'a L) -> Self {
        Self { step, scratch: Scratch::new(), made: HashSet::new() }
    }

    pub fn make(
        &mut self,
        Scheduled { spec, mut stages }: Scheduled,
    ) -> Result<Sampled<L::Sampled>> {
        let start = Instant::now();
        faults::reached("sample");
        let again = spec.fixed && !self.made.insert(spec.graph);
        let batch = if spec.share.is_empty() || again {
            None
        } else {
            Some(self.step.sample(&spec, &mut self.scratch)?)
        };
        stages.sample = start.elapsed().as_secs_f64();
        Ok(Sampled { spec, batch, stages })
    }
}

/// The stage that gathers features, local and remote.
pub(super) struct Fetch<'a, L: TrainStep> {
    step: &'a L,
    fixed: HashMap<usize, Arc<L::Batch>>,
}

impl<'a, L: TrainStep> Fetch<'a, L> {
    pub fn new(step: &'a L) -> Self {
        Self { step, fixed: HashMap::new() }
    }

    pub fn make(&mut self, sampled: Sampled<L::Sampled>) -> Result<Delivery<L::Batch>> {
        let Sampled { spec, batch, mut stages } = sampled;
        let start = Instant::now();
        faults::reached("fetch");
        let prepared = match batch {
            Some(batch) => Some(Arc::new(self.step.fetch(&spec, batch)?)),
            None if spec.fixed => self.fixed.get(&spec.graph).cloned(),
            None => None,
        };
        if let (true, Some(prepared)) = (spec.fixed, &prepared) {
            self.fixed.insert(spec.graph, prepared.clone());
        }
        stages.fetch = start.elapsed().as_secs_f64();
        Ok(Delivery { spec, prepared, stages })
    }
}

/// Prepares batches for the backward pass.
pub(super) fn prepare<L: TrainStep>(
    step: &L,
    mut delivery: Delivery<L::Batch>,
) -> Delivery<L::Batch> {
    let start = Instant::now();
    faults::reached("compact");
    if let Some(prepared) = &delivery.prepared {
        step.prepare(prepared);
    }
    delivery.stages.compact = start.elapsed().as_secs_f64();
    delivery
}
