//! What each stage before compute does with a batch, and how long it takes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use gnarl_graph::Result;
use gnarl_sample::Scratch;

use super::{Delivery, Job};
use crate::faults;
use crate::history::Stages;
use crate::learner::Learner;

/// Says which batch comes next.
pub(super) struct Schedule<J> {
    jobs: J,
}

/// A job on its way.
pub(super) struct Scheduled {
    pub job: Job,
    stages: Stages,
}

/// A job and what was drawn for it.
pub(super) struct Sampled<S> {
    job: Job,
    batch: Option<S>,
    stages: Stages,
}

impl<J: Iterator<Item = Job>> Schedule<J> {
    pub fn new(jobs: J) -> Self {
        Self { jobs }
    }

    pub fn next(&mut self) -> Option<Scheduled> {
        let start = Instant::now();
        faults::reached("schedule");
        let job = self.jobs.next()?;
        let schedule = start.elapsed().as_secs_f64();
        Some(Scheduled { job, stages: Stages { schedule, ..Stages::default() } })
    }
}

/// Draws batches.
pub(super) struct Sample<'a, L> {
    pub learner: &'a L,
    scratch: Scratch,
    /// Graphs whose one batch is made.
    made: HashSet<usize>,
}

impl<'a, L: Learner> Sample<'a, L> {
    pub fn new(learner: &'a L) -> Self {
        Self { learner, scratch: Scratch::new(), made: HashSet::new() }
    }

    pub fn make(
        &mut self,
        Scheduled { job, mut stages }: Scheduled,
    ) -> Result<Sampled<L::Sampled>> {
        let start = Instant::now();
        faults::reached("sample");
        let again = job.fixed && !self.made.insert(job.graph);
        let batch = match job.share.is_empty() || again {
            true => None,
            false => Some(self.learner.sample(&job, &mut self.scratch)?),
        };
        stages.sample = start.elapsed().as_secs_f64();
        Ok(Sampled { job, batch, stages })
    }
}

/// Gathers the rows of batches, wherever they are.
pub(super) struct Fetch<'a, L: Learner> {
    learner: &'a L,
    fixed: HashMap<usize, Arc<L::Batch>>,
}

impl<'a, L: Learner> Fetch<'a, L> {
    pub fn new(learner: &'a L) -> Self {
        Self { learner, fixed: HashMap::new() }
    }

    pub fn make(&mut self, sampled: Sampled<L::Sampled>) -> Result<Delivery<L::Batch>> {
        let Sampled { job, batch, mut stages } = sampled;
        let start = Instant::now();
        faults::reached("fetch");
        let prepared = match batch {
            Some(batch) => Some(Arc::new(self.learner.fetch(&job, batch)?)),
            None if job.fixed => self.fixed.get(&job.graph).cloned(),
            None => None,
        };
        if let (true, Some(prepared)) = (job.fixed, &prepared) {
            self.fixed.insert(job.graph, prepared.clone());
        }
        stages.fetch = start.elapsed().as_secs_f64();
        Ok(Delivery { job, prepared, stages })
    }
}

/// Prepares batches for backward.
pub(super) fn compact<L: Learner>(
    learner: &L,
    mut delivery: Delivery<L::Batch>,
) -> Delivery<L::Batch> {
    let start = Instant::now();
    faults::reached("compact");
    if let Some(prepared) = &delivery.prepared {
        learner.compact(prepared);
    }
    delivery.stages.compact = start.elapsed().as_secs_f64();
    delivery
}
