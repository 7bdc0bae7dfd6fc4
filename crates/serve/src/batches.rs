//! Whole batches for loaders elsewhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow_array::RecordBatch;
use gnarl_common::{Error, Result};
use serde_json::Value;
use tokio::sync::Semaphore;
use tonic::Status;

use crate::calls::{Act, Exchange};
use crate::client::Client;
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
pub struct BatchSlot(Arc<OnceLock<Arc<dyn BatchServer>>>);

impl BatchSlot {
    /// Begins to answer requests for batches; until then clients ask again.
    pub fn fill(&self, server: Arc<dyn BatchServer>) {
        // Whoever was first stays.
        drop(self.0.set(server));
    }
}

/// Batches at a server: so many are made at once, and others wait.
pub(crate) struct Batches {
    slot: BatchSlot,
    places: Semaphore,
}

impl Batches {
    /// Batches of a slot, on at most `threads` threads.
    pub fn new(slot: BatchSlot, threads: usize) -> Self {
        Self { slot, places: Semaphore::new(threads) }
    }

    /// Returns what makes batches.
    pub fn server(&self) -> Result<Arc<dyn BatchServer>, Status> {
        let opening = || Status::unavailable("the server is opening the parts of other servers");
        self.slot.0.get().cloned().ok_or_else(opening)
    }

    /// Waits for a place among the batches that are made, for as long as the client does.
    pub async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Status> {
        self.places.acquire().await.map_err(|_| Status::unavailable("the server ends"))
    }
}

impl Client {
    /// Returns whether a server makes batches.
    ///
    /// # Errors
    /// If it does not reply.
    pub(crate) fn makes_batches(&self) -> Result<bool> {
        match self.start(Act { action: BATCHES, body: Vec::new() })() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == gnarl_common::Kind::Usage => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Asks for a batch, once, within `time`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Rank`] if the server does not reply; those of [`BatchServer::batch`].
    pub fn ask_whole_batch(
        &self,
        (spec, request): (&Value, &Value),
        lists: &RecordBatch,
        time: Duration,
    ) -> Result<RecordBatch> {
        let command = Command::Batch { spec: spec.clone(), request: request.clone() };
        let mut replies = self.ask_within(Exchange { command, about: lists.clone() }, time)?;
        match replies.len() {
            1 => Ok(replies.remove(0)),
            other => Err(Error::invalid(format!("{}: {other} messages of a batch", self.uri()))),
        }
    }
}
