//! A connection's state, as the server sees it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;

/// Time of a client for its first request, with the handshakes before it.
pub const GREETING: Duration = Duration::from_secs(10);
/// Time without a call after which a connection is closed.
pub const IDLE: Duration = Duration::from_secs(15 * 60);
/// Time in which a client takes a message of a reply, whatever else it takes meanwhile.
pub const STUCK: Duration = Duration::from_secs(300);
/// Time for the last reply of a connection that leaves, if its client goes on asking.
const PARTING: Duration = Duration::from_secs(5);
/// Time without a call that ends a turn.
const REST: Duration = Duration::from_millis(20);
/// Time in which a client takes some bytes of a reply.
pub const STALLED: Duration = Duration::from_secs(20);

/// The state of a connection.
#[derive(Debug)]
pub struct Connection {
    opened: Instant,
    admitted: AtomicBool,
    /// True once a byte has come.
    heard: AtomicBool,
    /// Calls under way.
    calls: AtomicUsize,
    /// Milliseconds from the opening to the moment since which it has calls under way, but for pauses shorter than [`REST`].
    busy: AtomicU64,
    /// True once its calls are refused, since others wait for its place.
    leaving: AtomicBool,
    /// Milliseconds from the opening to the end of the latest call, or to the latest byte that the client took.
    latest: AtomicU64,
    /// Milliseconds from the opening to the latest byte that the client took.
    written: AtomicU64,
    ended: AtomicBool,
    waker: AtomicWaker,
    replies: Mutex<Vec<Weak<Pace>>>,
}

/// Milliseconds from the opening of a connection to the moment since which a client has not taken more of a reply; 0 while
/// the server works on it.
pub type Pace = AtomicU64;

/// The claim of a connection on its place, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It has sent nothing yet.
    Silent,
    /// Its calls were answered, and further ones are refused.
    Leaving,
    /// It has not made a call yet.
    Greeting,
    /// It has no call under way.
    Resting,
    /// It has.
    Busy,
}

impl Claim {
    /// Time after which its connection is ended if others wait for the place; none if it keeps it.
    pub fn grace(self) -> Option<Duration> {
        let milliseconds = match self {
            Self::Silent => 20,
            // The last reply may still be on its way to the socket.
            Self::Leaving => 50,
            Self::Greeting => 500,
            Self::Resting => 5000,
            Self::Busy => return None,
        };
        Some(Duration::from_millis(milliseconds))
    }
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            admitted: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            busy: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
            latest: AtomicU64::new(0),
            written: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            replies: Mutex::default(),
        }
    }

    /// Notes that the client has made a call it may make.
    pub fn admit(&self) {
        if !self.admitted.swap(true, Ordering::Relaxed) {
            self.touch();
            self.busy.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Notes that bytes have come.
    pub(super) fn hear(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Notes that the client has taken bytes.
    pub(super) fn take(&self) {
        self.written.store(self.now(), Ordering::Relaxed);
    }

    /// Counts a call until its guard is dropped; none if the client is to come back by another connection, since others wait
    /// for the place of this one.
    pub fn begin(self: &Arc<Self>) -> Option<UnderWay> {
        if self.is_leaving() {
            return None;
        }
        let under_way = self.calls.fetch_add(1, Ordering::Relaxed);
        let rested = self.since(self.latest.load(Ordering::Relaxed)) > REST;
        if under_way == 0 && rested {
            self.busy.store(self.now(), Ordering::Relaxed);
        }
        Some(UnderWay(self.clone()))
    }

    /// Returns whether further calls are refused.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Refuses further calls.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Watches a reply.
    pub(super) fn watch(&self, pace: &Arc<Pace>) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.retain(|reply| reply.strong_count() > 0);
        replies.push(Arc::downgrade(pace));
    }

    /// Milliseconds since the opening, from 1 on.
    pub(super) fn now(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64 + 1
    }

    fn touch(&self) {
        self.latest.store(self.now(), Ordering::Relaxed);
    }

    /// The claim, and how long it has been as it is.
    pub(super) fn claim(&self) -> (Claim, Duration) {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let since = |moment: &AtomicU64| self.since(moment.load(Ordering::Relaxed));
        // A reply may be on its way after its call.
        let rested = since(&self.latest).min(since(&self.written));
        match (is(&self.admitted), self.calls.load(Ordering::Relaxed)) {
            (false, _) if !is(&self.heard) => (Claim::Silent, self.opened.elapsed()),
            (false, _) => (Claim::Greeting, self.opened.elapsed()),
            // Refusals are bytes that the client takes.
            (true, 0) if is(&self.leaving) => {
                (Claim::Leaving, rested.max(since(&self.latest).saturating_sub(PARTING)))
            }
            (true, 0) => (Claim::Resting, rested),
            (true, _) => (Claim::Busy, since(&self.busy)),
        }
    }

    fn since(&self, moment: u64) -> Duration {
        Duration::from_millis(self.now().saturating_sub(moment))
    }

    /// Returns whether the client has stopped taking a reply: none of its bytes for a while, though there are some.
    pub(super) fn is_stalled(&self) -> bool {
        let replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let paces = replies.iter().filter_map(Weak::upgrade);
        let waits = paces.map(|pace| pace.load(Ordering::Relaxed)).filter(|since| *since != 0);
        let longest = waits.map(|since| self.since(since)).max().unwrap_or_default();
        let silent = self.since(self.written.load(Ordering::Relaxed));
        // Acknowledgments, and replies to other calls, are bytes that are taken, too.
        longest.min(silent) > STALLED || longest > STUCK
    }

    /// Ends the connection at its next sign of life, or now if it waits for one.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Returns whether it is to end; if not, `waker` is woken when it is.
    pub(super) fn has_ended(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.ended.load(Ordering::Relaxed)
    }
}

/// A call of a connection, until it is dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<Connection>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.touch();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
