//! The mini-batch pipeline: schedule → sample → fetch → prepare → compute (DistDGLv2 §5.5).
//!
//! The first four run on threads of their own, ahead of the compute stage by a bounded number of
//! batches, and continue from one epoch into the next without draining. Batches arrive in the order
//! of the specs, whatever the timing.

mod delivery;
mod stages;

use std::cell::RefCell;

use crossbeam_channel::{Receiver, Sender, bounded};
use gnarl_common::{Error, Kind, Result};
use gnarl_config::{Pipeline, TrainSection};

use crate::step::AnyStep;
pub use delivery::Delivery;
use stages::{Fetch, Sample, Schedule, Specs, prepare};

/// Returns the next batch, if there is one.
type Next<'a> = Box<dyn FnMut() -> Option<Result<Delivery<'a>>> + 'a>;

/// The receiving side of the pipeline.
pub struct Deliveries<'a> {
    next: RefCell<Next<'a>>,
}

impl<'a> Deliveries<'a> {
    fn new(next: impl FnMut() -> Option<Result<Delivery<'a>>> + 'a) -> Self {
        Self { next: RefCell::new(Box::new(next)) }
    }

    /// The next batch, in spec order.
    ///
    /// # Errors
    /// Errors of the earlier stages, or that the schedule is exhausted.
    pub fn next(&self) -> Result<Delivery<'a>> {
        (self.next.borrow_mut())().unwrap_or_else(|| {
            Err(Error::new(Kind::Rank, "the sampling pipeline ended before the training did"))
        })
    }
}

/// Runs `compute` over the batches that `step` makes of `specs`, with at most `train.prefetch` of
/// them buffered at each stage.
///
/// # Errors
/// Those of `compute`, which sees the errors of the stages before it.
pub fn run<T>(
    config: &TrainSection,
    step: &dyn AnyStep,
    specs: Specs<'_>,
    compute: impl FnOnce(&Deliveries<'_>) -> Result<T>,
) -> Result<T> {
    let mut sample = Sample::new(step);
    let mut fetch = Fetch::default();
    let drains = config.pipeline == Pipeline::Epoch;
    if config.pipeline != Pipeline::Off {
        let depths = (config.prefetch, config.prefetch + step.ahead());
        return on_threads(Schedule::new(specs), sample, fetch, drains, depths, compute);
    }
    let mut schedule = Schedule::new(specs);
    compute(&Deliveries::new(|| {
        let spec = schedule.next()?;
        let fetched = sample.make(spec).and_then(|sampled| fetch.make(sampled));
        Some(fetched.map(prepare))
    }))
}

/// Runs each stage before `compute` on a thread, with so many batches buffered at each, and after `sample`. If the pipeline
/// `drains`, no spec of an epoch is begun before the last one of the previous epoch is computed.
fn on_threads<'a, T>(
    mut schedule: Schedule<'a>,
    mut sample: Sample<'a>,
    mut fetch: Fetch<'a>,
    drains: bool,
    (depth, after_sample): (usize, usize),
    compute: impl FnOnce(&Deliveries<'_>) -> Result<T>,
) -> Result<T> {
    let (to_sample, scheduled) = bounded(depth);
    let (to_fetch, sampled) = bounded(after_sample);
    let (to_prepare, fetched) = bounded(depth);
    let (to_compute, prepareed) = bounded(depth);
    let (drained, is_drained) = bounded(1);
    std::thread::scope(|scope| {
        let spawn = |name: &str| std::thread::Builder::new().name(name.into());
        let started = [
            spawn("schedule").spawn_scoped(scope, move || {
                while let Some(spec) = schedule.next() {
                    let wait = drains && spec.spec.last_of_epoch;
                    if to_sample.send(Ok(spec)).is_err() || (wait && is_drained.recv().is_err()) {
                        return;
                    }
                }
            }),
            spawn("sample").spawn_scoped(scope, move || {
                stage(&scheduled, &to_fetch, |spec| sample.make(spec));
            }),
            spawn("fetch").spawn_scoped(scope, move || {
                stage(&sampled, &to_prepare, |sampled| fetch.make(sampled));
            }),
            spawn("prepare").spawn_scoped(scope, move || {
                stage(&fetched, &to_compute, |delivery| Ok(prepare(delivery)));
            }),
        ];
        if started.iter().any(std::io::Result::is_err) {
            return Err(Error::new(Kind::Limit, "cannot start the pipeline's threads"));
        }
        let mut ended = false;
        // Dropping the channels lets all stages finish.
        compute(&Deliveries::new(move || {
            if std::mem::take(&mut ended) && drains {
                // The schedule may have ended already.
                _ = drained.send(());
            }
            let delivery = prepareed.recv().ok();
            ended = matches!(&delivery, Some(Ok(delivery)) if delivery.spec.last_of_epoch);
            delivery
        }))
    })
}

/// Processes items until the input closes, an item fails, or the receiver is dropped.
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
