//! The pipeline stages before compute, with their times.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use gnarl_common::{Result, profile};
use gnarl_sample::Scratch;

use super::delivery::Delivery;
use crate::data::batch::BatchSpec;
use crate::faults;
use crate::step::{AnyBatch, AnySampled, AnyStep};
use crate::telemetry::Stages;

/// The batch schedules of all epochs, one after the other.
pub(super) type Specs<'a> = Box<dyn Iterator<Item = BatchSpec> + Send + 'a>;

/// The stage that schedules batches.
pub(super) struct Schedule<'a> {
    specs: Specs<'a>,
}

/// A scheduled batch.
pub(super) struct Scheduled {
    pub spec: BatchSpec,
    stages: Stages,
}

/// A scheduled and sampled batch.
pub(super) struct Sampled<'a> {
    spec: BatchSpec,
    batch: Option<Box<dyn AnySampled<'a> + 'a>>,
    stages: Stages,
}

impl<'a> Schedule<'a> {
    pub fn new(specs: Specs<'a>) -> Self {
        Self { specs }
    }

    pub fn next(&mut self) -> Option<Scheduled> {
        let _span = profile::stage("schedule");
        let start = Instant::now();
        faults::reached("schedule");
        let spec = self.specs.next()?;
        let schedule = start.elapsed().as_secs_f64();
        Some(Scheduled { spec, stages: Stages { schedule, ..Stages::default() } })
    }
}

/// The stage that samples batches.
pub(super) struct Sample<'a> {
    step: &'a dyn AnyStep,
    scratch: Scratch,
    /// Graphs whose only batch has been sampled.
    made: HashSet<usize>,
}

impl<'a> Sample<'a> {
    pub fn new(step: &'a dyn AnyStep) -> Self {
        Self { step, scratch: Scratch::new(), made: HashSet::new() }
    }

    pub fn make(&mut self, Scheduled { spec, mut stages }: Scheduled) -> Result<Sampled<'a>> {
        let _span = profile::stage("sample");
        let start = Instant::now();
        faults::reached("sample");
        let again = spec.fixed && !self.made.insert(spec.graph);
        let batch = if spec.share.is_empty() || again {
            None
        } else {
            Some(self.step.sample(&spec, &mut self.scratch)?)
        };
        stages.load = batch.as_ref().map_or(0.0, |batch| batch.loading());
        stages.sample = start.elapsed().as_secs_f64() - stages.load;
        Ok(Sampled { spec, batch, stages })
    }
}

/// The stage that gathers features, local and remote.
#[derive(Default)]
pub(super) struct Fetch<'a> {
    fixed: HashMap<usize, Arc<dyn AnyBatch + 'a>>,
}

impl<'a> Fetch<'a> {
    pub fn make(&mut self, sampled: Sampled<'a>) -> Result<Delivery<'a>> {
        let Sampled { spec, batch, mut stages } = sampled;
        let _span = profile::stage("fetch");
        let start = Instant::now();
        faults::reached("fetch");
        let is_received = batch.as_ref().is_some_and(|batch| batch.is_received());
        let prepared = match batch {
            Some(batch) => Some(batch.fetch(&spec)?),
            None if spec.fixed => self.fixed.get(&spec.graph).cloned(),
            None => None,
        };
        if let (true, Some(prepared)) = (spec.fixed, &prepared) {
            self.fixed.insert(spec.graph, prepared.clone());
        }
        let spent = if is_received { &mut stages.receive } else { &mut stages.fetch };
        *spent = start.elapsed().as_secs_f64();
        Ok(Delivery { spec, prepared, stages })
    }
}

/// Prepares batches for the backward pass.
pub(super) fn prepare(mut delivery: Delivery<'_>) -> Delivery<'_> {
    let _span = profile::stage("prepare");
    let start = Instant::now();
    faults::reached("compact");
    if let Some(prepared) = &delivery.prepared {
        prepared.prepare();
    }
    delivery.stages.compact = start.elapsed().as_secs_f64();
    delivery
}
