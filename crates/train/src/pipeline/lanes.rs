//! Lanes of the pipeline: each samples, fetches and prepares batches of its own, beside the others.
//!
//! A batch is a function of its spec alone, so that lanes need no order among them. Specs are dealt to lanes in turns, and
//! batches taken from them in the order of the deal: a slow batch holds up the ones after it, and never changes places.

use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use gnarl_common::{Error, Kind, Result, profile};

use super::delivery::Delivery;
use super::stages::{Fetch, Sample, Schedule, Scheduled, prepare};
use crate::data::batch::BatchSpec;
use crate::step::AnyStep;

/// Numbers of batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depths {
    /// Batches that each stage works on at once.
    pub lanes: usize,
    /// Batches buffered at each stage, over all lanes.
    pub buffered: usize,
    /// Those buffered after sampling.
    pub after_sample: usize,
}

/// The ends of all lanes.
pub(super) struct Lanes<'a> {
    /// The lane of each batch, in the order of specs.
    order: Receiver<usize>,
    ends: Vec<Receiver<Result<Delivery<'a>>>>,
}

impl<'a> Lanes<'a> {
    /// Starts the stages before compute. With `drained`, no spec of an epoch is begun before a message says that the last one of
    /// the epoch before is computed.
    ///
    /// # Errors
    /// [`Kind::Limit`] if the system starts no threads.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        (mut schedule, step): (Schedule<'a>, &'a dyn AnyStep),
        depths: Depths,
        drained: Option<Receiver<()>>,
    ) -> Result<Self>
    where
        'a: 'scope,
    {
        let spawn = |name: &str| Builder::new().name(name.into());
        let rank = profile::rank();
        let (to_order, order) = unbounded();
        let mut starts = Vec::new();
        let mut ends = Vec::new();
        let mut started = Vec::new();
        for lane in 0..depths.lanes {
            // A spec is light, and whoever deals must not wait for a lane while another one is idle.
            let (to_sample, scheduled) = bounded(share(depths.buffered, lane, depths).max(1));
            let (to_fetch, sampled) = bounded(share(depths.after_sample, lane, depths));
            let (to_prepare, fetched) = bounded(share(depths.buffered, lane, depths));
            let (to_compute, prepared) = bounded(share(depths.buffered, lane, depths));
            let mut sample = Sample::new(step);
            let mut fetch = Fetch::default();
            started.push(spawn("sample").spawn_scoped(scope, move || {
                profile::set_rank(rank);
                stage(&scheduled, &to_fetch, |spec| sample.make(spec));
            }));
            started.push(spawn("fetch").spawn_scoped(scope, move || {
                profile::set_rank(rank);
                stage(&sampled, &to_prepare, |sampled| fetch.make(sampled));
            }));
            started.push(spawn("prepare").spawn_scoped(scope, move || {
                profile::set_rank(rank);
                stage(&fetched, &to_compute, |delivery| Ok(prepare(delivery)));
            }));
            starts.push(to_sample);
            ends.push(prepared);
        }
        let deal = move || {
            profile::set_rank(rank);
            let mut number = 0;
            while let Some(spec) = schedule.next() {
                let wait = drained.as_ref().filter(|_| spec.spec.last_of_epoch);
                let lane = lane_of(&spec.spec, number, starts.len());
                number += 1;
                let is_taken = to_order.send(lane).is_ok() && send(&starts[lane], spec);
                if !is_taken || wait.is_some_and(|drained| drained.recv().is_err()) {
                    return;
                }
            }
        };
        started.push(spawn("schedule").spawn_scoped(scope, deal));
        if started.iter().any(std::io::Result::is_err) {
            return Err(Error::new(Kind::Limit, "cannot start the pipeline's threads"));
        }
        Ok(Self { order, ends })
    }

    /// The next batch in the order of specs, none after the last.
    pub fn next(&self) -> Option<Result<Delivery<'a>>> {
        let lane = self.order.recv().ok()?;
        let delivery = self.ends[lane].recv().ok()?;
        Some(delivery.map(|delivery| delivery.of_lanes(self.ends.len())))
    }
}

/// The lane of batch `number`. Batches that stay for the whole run stay in their lane.
fn lane_of(spec: &BatchSpec, number: usize, lanes: usize) -> usize {
    if spec.fixed { spec.graph % lanes } else { number % lanes }
}

/// The share of a lane in `all` buffered batches.
fn share(all: usize, lane: usize, Depths { lanes, .. }: Depths) -> usize {
    all / lanes + usize::from(lane < all % lanes)
}

fn send(to_sample: &Sender<Result<Scheduled>>, spec: Scheduled) -> bool {
    to_sample.send(Ok(spec)).is_ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_shared_out() {
        for (lanes, buffered) in [(1, 2), (2, 5), (4, 2), (3, 3)] {
            let depths = Depths { lanes, buffered, after_sample: buffered };
            let all: Vec<usize> = (0..lanes).map(|lane| share(buffered, lane, depths)).collect();
            assert_eq!(all.iter().sum::<usize>(), buffered);
            assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1, "{all:?}");
        }
    }

    #[test]
    fn fixed_batches_stay_in_their_lane() {
        let spec = |graph, fixed| BatchSpec { graph, fixed, ..BatchSpec::whole(1) };
        let lanes = |fixed| [0, 1, 2, 3].map(|number| lane_of(&spec(4, fixed), number, 3));
        assert_eq!(lanes(true), [1; 4]);
        assert_eq!(lanes(false), [0, 1, 2, 0]);
    }
}
