//! Heartbeat: a log line at least every minute, however long an epoch takes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::short;
use crate::data::batch::BatchSpec;
use crate::telemetry::{EpochRecord, Tally};

/// The longest time without a line.
const SILENCE: Duration = Duration::from_secs(60);

/// Runs `work` while a thread calls `say`, with the time since the start, after each interval given
/// by `due`. The thread ends with the work.
fn beside<T>(
    due: impl Fn() -> Duration + Send,
    say: impl Fn(Duration) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (working, ended) = bounded::<()>(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let beats = move || {
            while ended.recv_timeout(due()) == Err(RecvTimeoutError::Timeout) {
                say(start.elapsed());
            }
        };
        // A run without a heartbeat is better than none.
        _ = std::thread::Builder::new().name("pulse".into()).spawn_scoped(scope, beats);
        // Dropped when the work ends, even by a panic.
        let _working = working;
        work()
    })
}

/// Runs `work` while a thread logs `what` every minute.
pub fn every_minute<T>(what: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    let say = move |since: Duration| tracing::info!("{}: {} so far", what(), human(since));
    beside(|| SILENCE, say, work)
}

/// The state of a run for its log lines.
pub struct Pulse {
    /// Epochs of the run.
    epochs: usize,
    /// True on ranks that do not log.
    silent: bool,
    now: Mutex<Now>,
}

struct Now {
    /// The last line.
    line: Instant,
    /// The current epochs, and the steps done in them.
    current: RangeInclusive<usize>,
    began: Instant,
    step: usize,
    loss: f64,
    weight: f64,
    doing: &'static str,
    /// Scheduled steps by epoch.
    planned: BTreeMap<usize, usize>,
    /// Epochs finished since the run began or continued, and the time of the last.
    ended: usize,
    start: Instant,
}

impl Pulse {
    /// The heartbeat of a run of that many epochs.
    pub(crate) fn new(epochs: usize) -> Self {
        let now = Instant::now();
        let now = Now {
            line: now,
            current: 1..=1,
            began: now,
            step: 0,
            loss: 0.0,
            weight: 0.0,
            doing: "starting",
            planned: BTreeMap::new(),
            ended: 0,
            start: now,
        };
        Self { epochs, silent: false, now: Mutex::new(now) }
    }

    /// The heartbeat of a rank that does not log.
    pub(crate) fn silent() -> Self {
        Self { silent: true, ..Self::new(0) }
    }

    /// Runs `work`, and logs progress whenever there was no line for a minute.
    pub(crate) fn while_working<T>(&self, work: impl FnOnce() -> T) -> T {
        let due = || SILENCE.saturating_sub(self.now().line.elapsed());
        let say = |_| {
            let mut now = self.now();
            // The line of an epoch may have come just before.
            if now.line.elapsed() >= SILENCE {
                tracing::info!("{}", now.describe(self.epochs));
                now.line = Instant::now();
            }
        };
        beside(due, say, work)
    }

    /// Records the schedule of an epoch, or of a part's.
    pub(crate) fn planned(&self, epoch: usize, specs: &[BatchSpec]) {
        let steps = specs.iter().filter(|spec| spec.last_of_step).count();
        *self.now().planned.entry(epoch).or_default() += steps;
    }

    /// Begins some epochs.
    pub(crate) fn epochs_begin(&self, epochs: RangeInclusive<usize>) {
        let mut now = self.now();
        now.planned.retain(|epoch, _| epoch >= epochs.start());
        (now.step, now.loss, now.weight) = (0, 0.0, 0.0);
        now.began = Instant::now();
        now.current = epochs;
        now.doing = "training";
    }

    /// Records a step with its counts.
    pub(crate) fn step(&self, counted: &Tally) {
        let mut now = self.now();
        now.step += 1;
        now.loss += counted.loss;
        now.weight += counted.weight;
    }

    /// Begins other work than steps.
    pub(crate) fn doing(&self, what: &'static str) {
        self.now().doing = what;
    }

    /// Ends an epoch, with a log line for the first, each tenth of the run, and after a minute
    /// without.
    pub(crate) fn epoch_ends(&self, record: &EpochRecord) {
        if self.silent {
            return;
        }
        let mut now = self.now();
        now.ended += 1;
        let tenth = record.epoch.is_multiple_of((self.epochs / 10).max(1));
        if tenth || now.ended == 1 || now.line.elapsed() >= SILENCE {
            let left = now.left(self.epochs - record.epoch.min(self.epochs));
            tracing::info!("{}{left}", line(record, self.epochs));
            now.line = Instant::now();
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log line of an epoch.
fn line(record: &EpochRecord, epochs: usize) -> String {
    let valid = record.valid.iter().map(|(name, score)| format!(", valid {name} {score:.4}"));
    let valid: String = valid.collect();
    let EpochRecord { epoch, loss, seconds, .. } = record;
    let loss = if loss.abs() < 1e5 { format!("{loss:.4}") } else { short(*loss) };
    format!("epoch {epoch} of {epochs}: loss {loss}{valid}, {seconds:.3} s")
}

impl Now {
    /// Progress of the current epochs.
    fn describe(&self, epochs: usize) -> String {
        let (first, last) = (self.current.start(), self.current.end());
        let which = match first == last {
            true => format!("epoch {last} of {epochs}"),
            false => format!("epochs {first} to {last} of {epochs}"),
        };
        let planned: usize = self.planned.range(self.current.clone()).map(|(_, steps)| steps).sum();
        let step = match planned >= self.step {
            // Of a run that goes on with an evaluation, or has no schedule yet.
            true if planned == 0 => String::new(),
            true => format!(", step {} of {planned}", self.step),
            false => format!(", step {}", self.step),
        };
        let loss = match self.weight > 0.0 {
            true => format!(", loss {} so far", short(self.loss / self.weight)),
            false => String::new(),
        };
        let left = self.left(epochs + 1 - (*first).min(epochs + 1));
        format!("{which}: {}{step}{loss}, {}{left}", self.doing, human(self.began.elapsed()))
    }

    /// Estimated time of `epochs` more, if known.
    fn left(&self, epochs: usize) -> String {
        if self.ended == 0 || epochs == 0 {
            return String::new();
        }
        let mean = self.start.elapsed().as_secs_f64() / self.ended as f64;
        let left = Duration::try_from_secs_f64(mean * epochs as f64).unwrap_or(Duration::MAX);
        format!(", {} left", human(left))
    }
}

/// A human-readable duration.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_epoch_tells_its_steps_and_loss() {
        let pulse = Pulse::new(10);
        let spec = |last_of_step| BatchSpec { last_of_step, ..BatchSpec::whole(3) };
        pulse.planned(3, &[spec(false), spec(true), spec(true), spec(true)]);
        pulse.epochs_begin(3..=3);
        pulse.step(&Tally { loss: 3.0, weight: 2.0, ..Tally::default() });
        let text = pulse.now().describe(10);
        assert!(
            text.starts_with("epoch 3 of 10: training, step 1 of 3, loss 1.5 so far"),
            "{text}"
        );
        assert!(!text.contains("left"), "nothing to tell it from: {text}");
        pulse.epoch_ends(&EpochRecord { epoch: 3, ..EpochRecord::default() });
        pulse.epochs_begin(4..=6);
        pulse.doing("evaluating");
        let text = pulse.now().describe(10);
        assert!(text.starts_with("epochs 4 to 6 of 10: evaluating, "), "{text}");
        assert!(!text.contains("step"), "none is scheduled: {text}");
        assert!(text.ends_with(" left"), "{text}");
    }

    #[test]
    fn the_thread_ends_with_the_work() {
        let beats = Mutex::new(0);
        let (tell, told) = bounded(0);
        let say = |_| {
            *beats.lock().unwrap() += 1;
            _ = tell.try_send(());
        };
        let heard = beside(|| Duration::ZERO, say, || told.recv());
        assert_eq!(heard, Ok(()));
        assert!(*beats.lock().unwrap() > 0);
        let panics = std::panic::catch_unwind(|| beside(|| SILENCE, |_| (), || panic!("work")));
        assert!(panics.is_err());
    }

    #[test]
    fn durations_are_for_people() {
        let cases = [(45, "45 s"), (600, "10 min"), (7300, "2 h 1 min"), (200_000, "2 days")];
        for (seconds, text) in cases {
            assert_eq!(human(Duration::from_secs(seconds)), text);
        }
    }
}
