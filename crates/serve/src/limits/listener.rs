//! Accepts connections, and ends those whose time is over.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::connection::{Claim, Connection, GREETING, IDLE};
use super::descriptors;
use super::stream::Accepted;

/// Pause when no connection can be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause until a place is looked for again.
const LOOKING: Duration = Duration::from_millis(10);
/// Time that a busy connection has its place for in any case.
const TURN: Duration = Duration::from_secs(1);
/// Interval of looks at all connections.
const LOOK: Duration = Duration::from_secs(1);
/// Time for a connection to leave, until another is asked to.
const PARTING: Duration = Duration::from_millis(250);
/// Least time between warnings.
const WARNING: Duration = Duration::from_secs(60);

/// A listener with so many places. Who comes when all are taken gets that of the client that has been silent longest. If the
/// clients of all are busy, the one that has not rested longest gives its place up when its calls are answered.
pub struct Listener {
    listener: tokio::net::TcpListener,
    places: Arc<Semaphore>,
    connections: Arc<Connections>,
    asked: Option<Instant>,
    warned: Option<Instant>,
}

/// The connections that are open, by the order of their arrival.
#[derive(Debug, Default)]
struct Connections(Mutex<(u64, BTreeMap<u64, Arc<Connection>>)>);

/// The place of a connection.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    connections: Arc<Connections>,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    /// Accepts connections of `listener`, at most `most` at a time, and fewer where the process may not open as many files.
    /// Must be called within the runtime that is to watch them.
    pub fn new(listener: tokio::net::TcpListener, most: usize) -> Self {
        let places = descriptors::connections(most);
        if places < most {
            tracing::info!("at most {places} connections: the process may open no more files");
        }
        let connections = Arc::<Connections>::default();
        let watched = Arc::downgrade(&connections);
        tokio::spawn(async move {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                let Some(connections) = watched.upgrade() else { return };
                connections.end_late();
            }
        });
        let places = Arc::new(Semaphore::new(places));
        Self { listener, places, connections, asked: None, warned: None }
    }

    /// Waits for a connection.
    pub async fn accept(&mut self) -> Accepted {
        loop {
            // The client comes first: a place is taken from another only for one that is there.
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(e) => {
                    self.refused(&e);
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let permit = self.place().await;
            // Small replies would wait for acknowledgments else.
            if let Err(e) = stream.set_nodelay(true) {
                tracing::debug!("a client left at once: {e}");
                continue;
            }
            let connection = Arc::new(Connection::new());
            let number = self.connections.add(connection.clone());
            let place = Place { number, connections: self.connections.clone(), _permit: permit };
            return Accepted::new(stream, connection, place);
        }
    }

    /// Waits for a free place.
    async fn place(&mut self) -> OwnedSemaphorePermit {
        loop {
            let places = self.places.clone();
            if let Ok(place) = places.clone().try_acquire_owned() {
                return place;
            }
            if !self.connections.end_weakest() {
                if self.asked.is_none_or(|last| last.elapsed() > PARTING) {
                    self.asked = Some(Instant::now());
                    self.connections.ask_to_leave();
                }
                self.warn("all connections are busy, others wait".into());
            }
            if let Ok(Ok(place)) = timeout(LOOKING, places.acquire_owned()).await {
                return place;
            }
        }
    }

    /// Makes room after a connection could not be accepted for want of descriptors or memory.
    fn refused(&mut self, e: &io::Error) {
        if descriptors::is_want(e) {
            self.connections.end_weakest();
        }
        self.warn(format!("cannot accept a connection: {e}"));
    }

    fn warn(&mut self, message: String) {
        if self.warned.is_none_or(|last| last.elapsed() > WARNING) {
            self.warned = Some(Instant::now());
            tracing::warn!("{message}");
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Arc<Connection>>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, connection: Arc<Connection>) -> u64 {
        let mut all = self.lock();
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, connection);
        number
    }

    /// Ends the connection with the weakest claim, the longest one of those; false if none is over.
    fn end_weakest(&self) -> bool {
        let mut all = self.lock();
        let claims = all.1.iter().map(|(&number, connection)| (number, connection.claim()));
        let over =
            claims.filter(|(_, (claim, time))| claim.grace().is_some_and(|most| *time > most));
        let weakest = over.min_by_key(|&(_, (claim, time))| (claim, Reverse(time)));
        // It is not ended twice: its place is free as soon as its task has seen the end.
        let ended = weakest.and_then(|(number, _)| all.1.remove(&number));
        ended.inspect(|connection| connection.end()).is_some()
    }

    /// Asks the connection to leave that has been busy longest, if it has had its turn.
    fn ask_to_leave(&self) {
        let all = self.lock();
        let busy = all.1.values().filter_map(|connection| match connection.claim() {
            (Claim::Busy, time) if time > TURN && !connection.is_leaving() => {
                Some((time, connection))
            }
            _ => None,
        });
        if let Some((_, longest)) = busy.max_by_key(|(time, _)| *time) {
            longest.leave();
        }
    }

    /// Ends connections that were given time enough.
    fn end_late(&self) {
        for connection in self.lock().1.values() {
            let is_late = match connection.claim() {
                (Claim::Silent | Claim::Greeting, time) => time > GREETING,
                (Claim::Resting, time) => time > IDLE,
                // Also if nobody waits any more: its calls would be refused for ever.
                (Claim::Leaving, time) => Claim::Leaving.grace().is_some_and(|most| time > most),
                (Claim::Busy, _) => connection.is_stalled(),
            };
            if is_late {
                connection.end();
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().1.remove(&self.number);
    }
}
