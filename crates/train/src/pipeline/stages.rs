//! What each stage before compute does with a batch, and how long it takes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use gnarl_graph::Result;
use gnarl_sample::{MiniBatch, Scratch};

use super::{Delivery, Job, Prepared, Samplers, rows};
use crate::faults;
use crate::history::Stages;
use crate::task::TaskGraph;

/// Says which batch comes next.
pub(super) struct Schedule<J> {
    jobs: J,
}

/// A job on its way.
pub(super) struct Scheduled {
    pub job: Job,
    stages: Stages,
}

/// A job and its blocks.
pub(super) struct Sampled {
    job: Job,
    batch: Option<MiniBatch>,
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

/// Draws blocks.
pub(super) struct Sample<'a> {
    samplers: &'a Samplers,
    scratch: Scratch,
    /// Graphs whose one batch is made.
    made: Vec<bool>,
}

impl<'a> Sample<'a> {
    pub fn new(samplers: &'a Samplers) -> Self {
        Self { samplers, scratch: Scratch::new(), made: vec![false; samplers.len()] }
    }

    pub fn make(&mut self, Scheduled { job, mut stages }: Scheduled) -> Result<Sampled> {
        let start = Instant::now();
        faults::reached("sample");
        let again = job.fixed && std::mem::replace(&mut self.made[job.graph], true);
        let batch = match &self.samplers[job.graph] {
            Some(sampler) if !job.seeds.is_empty() && !again => {
                Some(sampler.sample(&job.seeds, job.key, &mut self.scratch)?)
            }
            _ => None,
        };
        stages.sample = start.elapsed().as_secs_f64();
        Ok(Sampled { job, batch, stages })
    }
}

/// Gathers the rows of batches, wherever they are.
pub(super) struct Fetch<'a> {
    graphs: &'a [Arc<TaskGraph>],
    fixed: HashMap<usize, Arc<Prepared>>,
}

impl<'a> Fetch<'a> {
    pub fn new(graphs: &'a [Arc<TaskGraph>]) -> Self {
        Self { graphs, fixed: HashMap::new() }
    }

    pub fn make(&mut self, Sampled { job, batch, mut stages }: Sampled) -> Result<Delivery> {
        let start = Instant::now();
        faults::reached("fetch");
        let prepared = match batch {
            Some(batch) => Some(Arc::new(fetch(&self.graphs[job.graph], batch)?)),
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

fn fetch(graph: &TaskGraph, batch: MiniBatch) -> Result<Prepared> {
    let input = rows(graph.features.as_ref(), &batch.input_nodes)?;
    let targets = batch.targets.iter().map(|&row| batch.input_nodes[row as usize]).collect();
    Ok(Prepared { batch, input, targets })
}

/// Turns blocks into the form that backward needs too.
pub(super) fn compact(mut delivery: Delivery) -> Delivery {
    let start = Instant::now();
    faults::reached("compact");
    if let Some(prepared) = &delivery.prepared {
        // The input layer's transpose is needed by few models; they make it when they do.
        prepared.batch.blocks.iter().skip(1).for_each(|block| {
            block.transpose();
        });
    }
    delivery.stages.compact = start.elapsed().as_secs_f64();
    delivery
}
