//! Whole batches for loaders elsewhere.

use arrow_array::RecordBatch;
use gnarl_common::{Error, Result};
use serde_json::Value;

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

impl Client {
    /// Rejects a server that makes no batches.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if so; if it does not reply.
    pub(crate) fn check_batches(&self) -> Result<()> {
        self.start(Act { action: BATCHES, body: Vec::new() })().map(drop)
    }

    /// Asks for a batch: `once`, or again until the deadline.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Rank`] if the server does not reply; those of [`BatchServer::batch`].
    pub fn ask_whole_batch(
        &self,
        spec: &Value,
        request: &Value,
        lists: &RecordBatch,
        once: bool,
    ) -> Result<RecordBatch> {
        let command = Command::Batch { spec: spec.clone(), request: request.clone() };
        let exchange = Exchange { command, about: lists.clone() };
        let mut replies = match once {
            true => self.start_once(exchange)()?,
            false => self.start(exchange)()?,
        };
        match replies.len() {
            1 => Ok(replies.remove(0)),
            other => Err(Error::invalid(format!("{}: {other} messages of a batch", self.uri()))),
        }
    }
}
