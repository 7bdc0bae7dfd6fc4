//! Whole batches for loaders elsewhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow_array::RecordBatch;
use gnarl_common::{Error, Kind, Result};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::calls::{Act, Exchange};
use crate::client::{Client, Missed};
use crate::command::{BATCHES, Command};

/// Makes batches for clients. Messages are those of the loaders at both ends.
pub trait BatchServer: Send + Sync + 'static {
    /// The batch of a request, by the loader's `spec`.
    ///
    /// # Errors
    /// If a message has another form, or names what the graph does not have.
    fn batch(&self, spec: &Value, request: &Value, lists: &[RecordBatch]) -> Result<RecordBatch>;
}

/// The maker of a server's batches, once it is there. The server listens before: it may read parts of servers that wait for
/// this one. Clones share it.
#[derive(Clone, Default)]
pub struct DeferredBatches(Arc<OnceLock<Arc<dyn BatchServer>>>);

impl DeferredBatches {
    /// Begins to answer requests for batches; until then clients ask again.
    pub fn fill(&self, server: Arc<dyn BatchServer>) {
        // Whoever was first stays.
        drop(self.0.set(server));
    }
}

/// Batches at a server: so many are made at once, and twice as many are here until their clients have taken them. Others wait.
pub(crate) struct Batches {
    deferred: DeferredBatches,
    places: Arc<Semaphore>,
    here: Arc<Semaphore>,
}

impl Batches {
    /// Batches of what is deferred, on at most `threads` threads.
    pub fn new(deferred: DeferredBatches, threads: usize) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { deferred, places: places(threads), here: places(2 * threads) }
    }

    /// Returns what makes batches.
    pub fn server(&self) -> Result<Arc<dyn BatchServer>, Status> {
        let opening = || Status::unavailable("the server is opening the parts of other servers");
        self.deferred.0.get().cloned().ok_or_else(opening)
    }

    /// Waits for a place among the batches that are here, until they are sent.
    pub async fn room(&self) -> Result<OwnedSemaphorePermit, Status> {
        acquire(&self.here).await
    }

    /// Waits for a place among the batches that are made, for as long as the client does. The work keeps it, which goes on when
    /// the client has left.
    pub async fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        acquire(&self.places).await
    }
}

async fn acquire(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Status> {
    let place = places.clone().acquire_owned().await;
    place.map_err(|_| Status::unavailable("the server ends"))
}

impl Client {
    /// Begins to ask whether a server makes batches; the returned function waits for the reply.
    ///
    /// # Errors
    /// If it does not reply.
    pub(crate) fn makes_batches(&self) -> impl FnOnce() -> Result<bool> + Send + use<> {
        let reply = self.start_once(Act { action: BATCHES, body: Vec::new() });
        || match reply() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == Kind::Rank => Err(e),
            Err(_) => Ok(false),
        }
    }

    /// Asks for a batch, once, within `time`.
    ///
    /// # Errors
    /// If the server does not reply, which passes; those of [`BatchServer::batch`].
    pub fn ask_whole_batch(
        &self,
        (spec, request): (&Value, &Value),
        lists: &RecordBatch,
        time: Duration,
    ) -> Result<RecordBatch, Missed> {
        let command = Command::Batch { spec: spec.clone(), request: request.clone() };
        let mut replies = self.ask_within(Exchange { command, about: lists.clone() }, time)?;
        if replies.len() == 1 {
            return Ok(replies.remove(0));
        }
        let message = format!("{}: {} messages of a batch", self.uri(), replies.len());
        Err(Missed { error: Error::invalid(message), is_passing: false })
    }
}
