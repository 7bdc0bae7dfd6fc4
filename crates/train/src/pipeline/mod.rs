//! The mini-batch pipeline: schedule → sample → fetch → compact → compute (DistDGLv2 §5.5).
//!
//! The first four run on threads of their own, ahead of the compute stage by a bounded number of
//! batches, and go on from one epoch into the next without draining. Batches arrive in the order of
//! the jobs, whatever the timing.

mod stages;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Kind, Result};
use gnarl_nn::{SparseRows, Tensor};
use gnarl_store::{FeatureStore, Rows};

use crate::config::{Pipeline, TrainSection};
use crate::history::Stages;
use crate::learner::Learner;
use stages::{Fetch, Sample, Schedule, compact};

/// A batch to be made.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which of the worker's graphs.
    pub graph: usize,
    /// Seeds of the batch on all ranks together, or the unit of a subgraph sampler.
    pub batch: Arc<[u32]>,
    /// Which of them are this rank's; an empty range makes no batch.
    pub share: Range<usize>,
    /// Stands for the run's seed and the epoch.
    pub key: Key,
    /// Whether every epoch has this very batch, so that it is made once.
    pub fixed: bool,
    /// Whether the optimizer steps after this job.
    pub last_of_step: bool,
    /// Whether the epoch (over this graph) ends with this job.
    pub last_of_epoch: bool,
}

impl Job {
    /// The one job of an epoch over the whole graph; also of a rank without seeds.
    pub fn whole(epoch: usize) -> Self {
        Self {
            graph: 0,
            batch: [0].into(),
            share: 0..1,
            key: Key::new(epoch as u64),
            fixed: true,
            last_of_step: true,
            last_of_epoch: true,
        }
    }

    /// The seeds that are this rank's.
    pub fn seeds(&self) -> &[u32] {
        &self.batch[self.share.clone()]
    }
}

/// The rows of a batch's input nodes.
#[derive(Debug, Clone)]
pub enum Input {
    /// One row of values for each node.
    Dense(Tensor),
    /// Bags of words.
    Sparse(Arc<SparseRows>),
}

/// What comes out of the pipeline.
#[derive(Debug)]
pub struct Delivery<B> {
    /// The job it answers.
    pub job: Job,
    /// The batch, unless the job had no seeds.
    pub prepared: Option<Arc<B>>,
    /// Seconds that the stages before compute worked on it.
    pub stages: Stages,
}

/// Gives the next batch, or nothing if there is none.
type Next<'a, B> = Box<dyn FnMut() -> Option<Result<Delivery<B>>> + 'a>;

/// The compute stage's end of the pipeline.
pub struct Deliveries<'a, B> {
    next: RefCell<Next<'a, B>>,
}

impl<'a, B> Deliveries<'a, B> {
    fn new(next: impl FnMut() -> Option<Result<Delivery<B>>> + 'a) -> Self {
        Self { next: RefCell::new(Box::new(next)) }
    }

    /// The next batch, in job order.
    ///
    /// # Errors
    /// What the earlier stages met, or that the jobs are used up.
    pub fn next(&self) -> Result<Delivery<B>> {
        (self.next.borrow_mut())().unwrap_or_else(|| {
            Err(Error::new(Kind::Rank, "the sampling pipeline ended before the training did"))
        })
    }
}

/// Runs `compute` over the batches that `learner` makes of `jobs`, with at most `train.prefetch` of
/// them ahead at each stage.
///
/// # Errors
/// Those of `compute`, which sees the errors of the stages before it.
pub fn run<L: Learner, T>(
    config: &TrainSection,
    learner: &L,
    jobs: impl Iterator<Item = Job> + Send,
    compute: impl FnOnce(&Deliveries<'_, L::Batch>) -> Result<T>,
) -> Result<T> {
    let (sample, fetch) = (Sample::new(learner), Fetch::new(learner));
    let drains = config.pipeline == Pipeline::Epoch;
    if config.pipeline != Pipeline::Off {
        let depth = config.prefetch;
        return on_threads(Schedule::new(jobs), sample, fetch, drains, depth, compute);
    }
    let (mut schedule, mut sample, mut fetch) = (Schedule::new(jobs), sample, fetch);
    compute(&Deliveries::new(|| {
        let job = schedule.next()?;
        let fetched = sample.make(job).and_then(|sampled| fetch.make(sampled));
        Some(fetched.map(|delivery| compact(learner, delivery)))
    }))
}

/// Runs each stage before `compute` on a thread. If the pipeline `drains`, no job of an epoch is
/// begun before the last one of the epoch before is computed.
fn on_threads<L: Learner, T>(
    mut schedule: Schedule<impl Iterator<Item = Job> + Send>,
    mut sample: Sample<'_, L>,
    mut fetch: Fetch<'_, L>,
    drains: bool,
    depth: usize,
    compute: impl FnOnce(&Deliveries<'_, L::Batch>) -> Result<T>,
) -> Result<T> {
    let learner = sample.learner;
    let (to_sample, scheduled) = bounded(depth);
    let (to_fetch, sampled) = bounded(depth);
    let (to_compact, fetched) = bounded(depth);
    let (to_compute, compacted) = bounded(depth);
    let (drained, is_drained) = bounded(1);
    std::thread::scope(|scope| {
        let spawn = |name: &str| std::thread::Builder::new().name(name.into());
        let started = [
            spawn("schedule").spawn_scoped(scope, move || {
                while let Some(job) = schedule.next() {
                    let wait = drains && job.job.last_of_epoch;
                    if to_sample.send(Ok(job)).is_err() || (wait && is_drained.recv().is_err()) {
                        return;
                    }
                }
            }),
            spawn("sample").spawn_scoped(scope, move || {
                stage(&scheduled, &to_fetch, |job| sample.make(job));
            }),
            spawn("fetch").spawn_scoped(scope, move || {
                stage(&sampled, &to_compact, |sampled| fetch.make(sampled));
            }),
            spawn("compact").spawn_scoped(scope, move || {
                stage(&fetched, &to_compute, |delivery| Ok(compact(learner, delivery)));
            }),
        ];
        if started.iter().any(std::io::Result::is_err) {
            return Err(Error::new(Kind::Limit, "cannot start the pipeline's threads"));
        }
        let mut ended = false;
        // Dropping both ends lets all stages finish.
        compute(&Deliveries::new(move || {
            if std::mem::take(&mut ended) && drains {
                // The schedule may have come to its end.
                _ = drained.send(());
            }
            let delivery = compacted.recv().ok();
            ended = matches!(&delivery, Some(Ok(delivery)) if delivery.job.last_of_epoch);
            delivery
        }))
    })
}

/// Works on what comes until it ends, fails, or nobody wants more.
fn stage<I, O>(
    input: &Receiver<Result<I>>,
    out: &Sender<Result<O>>,
    mut work: impl FnMut(I) -> Result<O>,
) {
    for item in input {
        let made = item.and_then(&mut work);
        let failed = made.is_err();
        if out.send(made).is_err() || failed {
            return;
        }
    }
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
