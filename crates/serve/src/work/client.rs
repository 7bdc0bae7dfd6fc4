//! Calls of batch workers and compute workers.

use arrow_array::RecordBatch;
use gnarl_common::Result;

use super::message::{Joining, Living, Orders, WorkRequest};
use crate::calls::{Act, AskBatch};
use crate::client::Client;
use crate::command;

/// Calls of batch workers and compute workers.
impl Client {
    /// Says that a batch worker lives.
    ///
    /// # Errors
    /// If the coordinator does not reply, or has another run.
    pub fn join(&self, joining: &Joining) -> Result<Orders> {
        command::read("orders", &act(self, "join", command::write(joining))?)
    }

    /// Says that a batch worker ends.
    ///
    /// # Errors
    /// If the coordinator does not reply.
    pub fn leave(&self, joining: &Joining) -> Result<Orders> {
        command::read("orders", &act(self, "leave", command::write(joining))?)
    }

    /// The batch workers of `run` that live.
    ///
    /// # Errors
    /// As [`Client::join`].
    pub fn living(&self, run: &str) -> Result<Living> {
        command::read("the list of batch workers", &act(self, "where", command::write(&run))?)
    }

    /// Asks a batch worker for a batch, or for features, once: whoever is told that it does not reply asks another one. The returned function
    /// waits for the reply; an error that is not of [`Kind::Usage`](gnarl_common::Kind::Usage) is of this worker alone.
    ///
    /// # Errors
    /// If the examples or nodes make no valid Arrow data.
    pub fn ask_batch(
        &self,
        request: &WorkRequest,
    ) -> Result<impl FnOnce() -> Result<RecordBatch> + Send + use<>> {
        let (descriptor, about) = request.message()?;
        Ok(self.start_once(AskBatch { descriptor, about }))
    }
}

/// Does an action of a coordinator, and returns the body of its reply.
fn act(client: &Client, action: &'static str, body: Vec<u8>) -> Result<Vec<u8>> {
    client.start(Act { action, body })()
}
