//! Accepts connections, and ends those whose time is over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::connection::Connection;
use super::descriptors;
use super::places::{Connections, Place};
use super::stream::Accepted;

/// Pause when no connection can be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause until a place is looked for again.
const LOOKING: Duration = Duration::from_millis(10);
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
            let place = Place::of(connection.clone(), &self.connections, permit);
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
