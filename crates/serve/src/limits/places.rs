//! The connections that are open, and their places.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Claim, Connection, GREETING, IDLE};

/// Time that a busy connection has its place for in any case.
const TURN: Duration = Duration::from_secs(1);

/// The connections that are open, by the order of their arrival.
#[derive(Debug, Default)]
pub struct Connections(Mutex<(u64, BTreeMap<u64, Arc<Connection>>)>);

/// The place of a connection.
#[derive(Debug)]
pub struct Place {
    number: u64,
    connections: Arc<Connections>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// The place of a connection, which is counted until the place is dropped.
    pub fn of(
        connection: Arc<Connection>,
        connections: &Arc<Connections>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let number = connections.add(connection);
        Self { number, connections: connections.clone(), _permit: permit }
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
    pub fn end_weakest(&self) -> bool {
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
    pub fn ask_to_leave(&self) {
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
    pub fn end_late(&self) {
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
