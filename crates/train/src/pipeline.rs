//! The mini-batch pipeline: schedule → sample → fetch → compute (DistDGLv2 §5.5).
//!
//! Sampling and fetching run on threads of their own, ahead of the compute stage by a bounded
//! number of batches, and go on from one epoch into the next without draining. Batches arrive in
//! the order of the jobs, whatever the timing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::{SparseRows, Tensor};
use gnarl_sample::{MiniBatch, Sampler, Scratch};
use gnarl_store::{FeatureStore, Rows};

use crate::task::TaskGraph;

/// A batch to be made.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which of the worker's graphs.
    pub graph: usize,
    /// Seeds, or the unit of a subgraph sampler; empty makes no batch.
    pub seeds: Vec<u32>,
    /// Stands for the run's seed and the epoch.
    pub key: Key,
    /// Whether every epoch has this very batch, so that it is made once.
    pub fixed: bool,
    /// Whether the optimizer steps after this job.
    pub last_of_step: bool,
    /// Whether the epoch (over this graph) ends with this job.
    pub last_of_epoch: bool,
}

/// The rows of a batch's input nodes.
#[derive(Debug, Clone)]
pub enum Input {
    /// One row of values for each node.
    Dense(Tensor),
    /// Bags of words.
    Sparse(Arc<SparseRows>),
}

/// A batch ready for the compute stage.
#[derive(Debug)]
pub struct Prepared {
    /// Blocks and targets.
    pub batch: MiniBatch,
    /// Feature rows of the input nodes.
    pub input: Input,
    /// Local ids of the target nodes.
    pub targets: Vec<u32>,
}

/// What comes out of the pipeline.
#[derive(Debug)]
pub struct Delivery {
    /// The job it answers.
    pub job: Job,
    /// The batch, unless the job had no seeds.
    pub prepared: Option<Arc<Prepared>>,
    /// Seconds the sampling stage worked on it.
    pub sample_seconds: f64,
    /// Seconds the fetch stage worked on it.
    pub fetch_seconds: f64,
}

/// The compute stage's end of the pipeline.
pub struct Deliveries {
    receiver: Receiver<Result<Delivery>>,
}

impl Deliveries {
    /// The next batch, in job order.
    ///
    /// # Errors
    /// What the earlier stages met, or that the jobs are used up.
    pub fn next(&self) -> Result<Delivery> {
        self.receiver.recv().unwrap_or_else(|_| {
            Err(Error::new(Kind::Rank, "the sampling pipeline ended before the training did"))
        })
    }
}

/// A sampler for each of a worker's graphs; none for graphs it makes no batches of.
pub type Samplers = Vec<Option<Box<dyn Sampler>>>;

/// Runs `compute` over the batches of `jobs`, with at most `depth` of them ahead at each stage.
///
/// # Errors
/// Those of `compute`, which sees the errors of the stages before it.
pub fn run<T>(
    graphs: &[Arc<TaskGraph>],
    samplers: &Samplers,
    jobs: impl Iterator<Item = Job> + Send,
    depth: usize,
    compute: impl FnOnce(&Deliveries) -> Result<T>,
) -> Result<T> {
    let (to_fetch, from_sample) = bounded(depth);
    let (to_compute, receiver) = bounded(depth);
    std::thread::scope(|scope| {
        let spawn = |name: &str| std::thread::Builder::new().name(name.into());
        let sample =
            spawn("sample").spawn_scoped(scope, move || sample_stage(samplers, jobs, &to_fetch));
        let fetch = spawn("fetch")
            .spawn_scoped(scope, move || fetch_stage(graphs, &from_sample, &to_compute));
        if sample.is_err() || fetch.is_err() {
            return Err(Error::new(Kind::Limit, "cannot start the pipeline's threads"));
        }
        // Dropping the receiver at the end lets both stages finish.
        compute(&Deliveries { receiver })
    })
}

struct Sampled {
    job: Job,
    batch: Option<MiniBatch>,
    seconds: f64,
}

fn sample_stage(
    samplers: &Samplers,
    jobs: impl Iterator<Item = Job>,
    out: &Sender<Result<Sampled>>,
) {
    let mut scratch = Scratch::new();
    let mut made = vec![false; samplers.len()];
    for job in jobs {
        let start = Instant::now();
        let again = job.fixed && std::mem::replace(&mut made[job.graph], true);
        let batch = match &samplers[job.graph] {
            Some(sampler) if !job.seeds.is_empty() && !again => {
                sample(sampler.as_ref(), &job, &mut scratch).map(Some)
            }
            _ => Ok(None),
        };
        let seconds = start.elapsed().as_secs_f64();
        let failed = batch.is_err();
        let sampled = batch.map(|batch| Sampled { job, batch, seconds });
        if out.send(sampled).is_err() || failed {
            return;
        }
    }
}

fn sample(sampler: &dyn Sampler, job: &Job, scratch: &mut Scratch) -> Result<MiniBatch> {
    let batch = sampler.sample(&job.seeds, job.key, scratch)?;
    // The input layer's transpose is needed by few models; they make it when they do.
    batch.blocks.iter().skip(1).for_each(|block| {
        block.transpose();
    });
    Ok(batch)
}

fn fetch_stage(
    graphs: &[Arc<TaskGraph>],
    input: &Receiver<Result<Sampled>>,
    out: &Sender<Result<Delivery>>,
) {
    let mut fixed: HashMap<usize, Arc<Prepared>> = HashMap::new();
    for sampled in input {
        let start = Instant::now();
        let delivery = sampled.and_then(|Sampled { job, batch, seconds }| {
            let prepared = match batch {
                Some(batch) => Some(Arc::new(fetch(&graphs[job.graph], batch)?)),
                None if job.fixed => fixed.get(&job.graph).cloned(),
                None => None,
            };
            if let (true, Some(prepared)) = (job.fixed, &prepared) {
                fixed.insert(job.graph, prepared.clone());
            }
            let fetch_seconds = start.elapsed().as_secs_f64();
            Ok(Delivery { job, prepared, sample_seconds: seconds, fetch_seconds })
        });
        let failed = delivery.is_err();
        if out.send(delivery).is_err() || failed {
            return;
        }
    }
}

fn fetch(graph: &TaskGraph, batch: MiniBatch) -> Result<Prepared> {
    let input = rows(graph.features.as_ref(), &batch.input_nodes)?;
    let targets = batch.targets.iter().map(|&row| batch.input_nodes[row as usize]).collect();
    Ok(Prepared { batch, input, targets })
}

/// The feature rows of `ids` as a model's input.
///
/// # Errors
/// If an id has no features.
pub fn rows(features: &dyn FeatureStore, ids: &[u32]) -> Result<Input> {
    if features.is_sparse() {
        let Rows::Sparse { indptr, indices, values } = features.gather(ids)? else {
            return Err(Error::invalid("sparse features were gathered as dense rows"));
        };
        let rows = SparseRows::new(features.width(), indptr, indices, values);
        return Ok(Input::Sparse(Arc::new(rows)));
    }
    let mut out = Tensor::scratch(ids.len(), features.width());
    features.gather_into(ids, out.data_mut())?;
    Ok(Input::Dense(out))
}
