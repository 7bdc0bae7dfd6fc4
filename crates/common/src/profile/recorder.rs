//! The spans of a process.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::kind::{Kind, Work};

/// True while spans are recorded.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Number of the profile that is taken: threads have numbers in each.
static PROFILES: AtomicU64 = AtomicU64::new(0);
static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The profile in which this thread has a number, and that number.
    static NUMBER: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// Returns whether spans are recorded.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// A span that has ended.
pub(super) struct Ended {
    pub kind: Kind,
    pub name: Cow<'static, str>,
    pub start: Instant,
    pub took: Duration,
    pub work: Work,
    pub rank: usize,
}

/// The record so far.
struct State {
    start: Instant,
    unix: Duration,
    /// Most spans.
    most: usize,
    threads: Vec<Thread>,
    spans: Vec<Recorded>,
    left: u64,
    sums: BTreeMap<(usize, Kind, Cow<'static, str>), (u32, Sum)>,
}

/// A recorded span.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The place of the span's kind and name among [`Profile::sums`].
    pub sum: u32,
    /// The place of the span's thread among [`Profile::threads`].
    pub thread: u32,
    /// Nanoseconds from the start of the profile to that of the span.
    pub start: u64,
    /// Nanoseconds that the span took.
    pub took: u64,
    /// Work done in the span.
    pub work: Work,
}

/// A thread with spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The rank of the thread's first span.
    pub rank: usize,
    /// The thread's name.
    pub name: String,
}

/// The sum of the spans of a kind and name of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    /// The rank.
    pub rank: usize,
    /// The kind of the spans.
    pub kind: Kind,
    /// The name of the spans.
    pub name: String,
    /// The number of the spans.
    pub count: u64,
    /// Seconds of all spans together.
    pub seconds: f64,
    /// Seconds of the longest span.
    pub longest: f64,
    /// Work done in all spans.
    pub work: Work,
}

/// The spans of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Nanoseconds from 1970 to the start.
    pub unix: u64,
    /// Seconds from the start to the end.
    pub seconds: f64,
    /// Threads with spans.
    pub threads: Vec<Thread>,
    /// The first spans, in the order in which they ended.
    pub spans: Vec<Recorded>,
    /// Number of spans that are in the sums alone.
    pub left: u64,
    /// Sums over all spans, in the order of [`Recorded::sum`].
    pub sums: Vec<Sum>,
}

/// A profile that is being taken, of all threads of the process. Dropping it lets the spans go.
#[derive(Debug)]
pub struct Taking(());

impl Taking {
    /// Starts a profile of at most `most` spans, unless one is taken: it is that of the process. Sums go on beyond them.
    pub fn start(most: usize) -> Option<Self> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut state = lock();
        if state.is_some() {
            return None;
        }
        PROFILES.fetch_add(1, Ordering::Relaxed);
        *state = Some(State {
            start: Instant::now(),
            unix,
            most,
            threads: Vec::new(),
            spans: Vec::new(),
            left: 0,
            sums: BTreeMap::new(),
        });
        TAKEN.store(true, Ordering::Relaxed);
        Some(Self(()))
    }

    /// Ends the profile. Spans that have not ended are no part of it.
    pub fn finish(self) -> Profile {
        TAKEN.store(false, Ordering::Relaxed);
        let state = lock().take();
        // The next profile may begin: it is not to be dropped with this one.
        std::mem::forget(self);
        state.map_or_else(Profile::default, State::finish)
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Relaxed);
        lock().take();
    }
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a span, unless the profile it began in has ended.
pub(super) fn add(ended: Ended) {
    if let Some(state) = &mut *lock() {
        state.add(ended);
    }
}

impl State {
    fn add(&mut self, Ended { kind, name, start, took, work, rank }: Ended) {
        let Some(start) = start.checked_duration_since(self.start) else { return };
        let thread = self.thread(rank);
        let next = self.sums.len() as u32;
        let (place, sum) = self.sums.entry((rank, kind, name)).or_insert_with_key(|key| {
            let none = Sum {
                rank,
                kind,
                name: key.2.to_string(),
                count: 0,
                seconds: 0.0,
                longest: 0.0,
                work: Work::default(),
            };
            (next, none)
        });
        sum.count += 1;
        sum.seconds += took.as_secs_f64();
        sum.longest = sum.longest.max(took.as_secs_f64());
        sum.work.flops += work.flops;
        sum.work.bytes += work.bytes;
        if self.spans.len() == self.most {
            self.left += 1;
            return;
        }
        let [start, took] = [start, took].map(nanoseconds);
        self.spans.push(Recorded { sum: *place, thread, start, took, work });
    }

    /// The number of this thread.
    fn thread(&mut self, rank: usize) -> u32 {
        let profile = PROFILES.load(Ordering::Relaxed);
        let (of, number) = NUMBER.get();
        if of == profile {
            return number;
        }
        let number = self.threads.len() as u32;
        NUMBER.set((profile, number));
        let name = std::thread::current().name().unwrap_or("thread").to_owned();
        self.threads.push(Thread { rank, name });
        number
    }

    fn finish(self) -> Profile {
        let mut sums: Vec<(u32, Sum)> = self.sums.into_values().collect();
        sums.sort_unstable_by_key(|(place, _)| *place);
        Profile {
            unix: nanoseconds(self.unix),
            seconds: self.start.elapsed().as_secs_f64(),
            threads: self.threads,
            spans: self.spans,
            left: self.left,
            sums: sums.into_iter().map(|(_, sum)| sum).collect(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{collective, kernel, set_rank, stage, without_kernels};

    #[test]
    fn spans_beyond_the_limit_are_in_the_sums() {
        drop(stage("before"));
        let taking = Taking::start(3).unwrap();
        assert!(Taking::start(3).is_none());
        for bytes in 0..4 {
            collective("gradients", bytes).within(|| std::thread::sleep(Duration::from_millis(2)));
        }
        let other = || {
            set_rank(1);
            let work = || Work { flops: 3.0, bytes: 5.0 };
            without_kernels(|| drop(kernel("unseen", work)));
            kernel("matrix product", work).within(|| std::thread::sleep(Duration::from_millis(1)));
        };
        std::thread::Builder::new().name("compute-0".into()).spawn(other).unwrap().join().unwrap();
        let profile = taking.finish();
        drop(stage("after"));
        assert_eq!((profile.spans.len(), profile.left), (3, 2));
        assert_eq!(profile.threads[1], Thread { rank: 1, name: "compute-0".into() });
        let [waits, products] = &profile.sums[..] else { panic!("{:?}", profile.sums) };
        assert_eq!((waits.rank, waits.count, waits.work.bytes), (0, 4, 6.0));
        assert!(
            waits.seconds >= 0.008 && waits.longest >= 0.002 && waits.seconds <= profile.seconds
        );
        assert_eq!((products.rank, products.count, products.work.flops), (1, 1, 3.0));
        let first = &profile.spans[0];
        assert!(first.took >= 2_000_000 && first.start + first.took <= profile.spans[1].start);
    }
}
