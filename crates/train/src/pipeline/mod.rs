//! The mini-batch pipeline: schedule → sample → fetch → prepare → compute (DistDGLv2 §5.5).
//!
//! The first four run on threads of their own, ahead of the compute stage by a bounded number of
//! batches, and continue from one epoch into the next without draining. Sampling, fetching and
//! preparing have as many threads each as there are lanes. Batches arrive in the order of the
//! specs, whatever the timing.

mod delivery;
mod lanes;
mod stages;

use std::cell::RefCell;

use crossbeam_channel::bounded;
use gnarl_common::{Error, Kind, Result};
use gnarl_config::{Pipeline, TrainSection};

use crate::step::AnyStep;
pub use delivery::Delivery;
use lanes::{Depths, Lanes};
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
/// them buffered at each stage, and `lanes` that each stage works on at once.
///
/// # Errors
/// Those of `compute`, which sees the errors of the stages before it.
pub fn run<T>(
    (config, lanes): (&TrainSection, usize),
    step: &dyn AnyStep,
    specs: Specs<'_>,
    compute: impl FnOnce(&Deliveries<'_>) -> Result<T>,
) -> Result<T> {
    let drains = config.pipeline == Pipeline::Epoch;
    let mut schedule = Schedule::new(specs);
    if config.pipeline != Pipeline::Off {
        let depths = Depths {
            lanes: lanes.max(1),
            buffered: config.prefetch,
            after_sample: config.prefetch + step.ahead(),
        };
        return on_threads((schedule, step), depths, drains, compute);
    }
    let mut sample = Sample::new(step);
    let mut fetch = Fetch::default();
    compute(&Deliveries::new(|| {
        let spec = schedule.next()?;
        let fetched = sample.make(spec).and_then(|sampled| fetch.make(sampled));
        Some(fetched.map(prepare))
    }))
}

/// Runs the stages before `compute` on threads of their own. If the pipeline `drains`, no spec of an epoch is begun before the
/// last one of the previous epoch is computed.
fn on_threads<'a, T>(
    made_of: (Schedule<'a>, &'a dyn AnyStep),
    depths: Depths,
    drains: bool,
    compute: impl FnOnce(&Deliveries<'_>) -> Result<T>,
) -> Result<T> {
    let (drained, is_drained) = bounded(1);
    std::thread::scope(|scope| {
        let lanes = Lanes::start(scope, made_of, depths, drains.then_some(is_drained))?;
        let mut ended = false;
        // Dropping the channels lets all stages finish.
        compute(&Deliveries::new(move || {
            if std::mem::take(&mut ended) && drains {
                // The schedule may have ended already.
                _ = drained.send(());
            }
            let delivery = lanes.next();
            ended = matches!(&delivery, Some(Ok(delivery)) if delivery.spec.last_of_epoch);
            delivery
        }))
    })
}
