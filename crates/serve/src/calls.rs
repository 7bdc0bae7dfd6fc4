//! Client calls, one type each.

use arrow_array::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::{Action, FlightClient, FlightDescriptor, Ticket};
use futures::{TryStreamExt, stream};
use serde::Serialize;
use tonic::Status;

use crate::command::{self, Command, FilePiece, Whole, WholeSplit};
use crate::failure::status_of;

/// A call that may be retried.
pub(crate) trait Call: Send + Sync + 'static {
    type Reply: Send + 'static;

    /// Makes one attempt.
    fn make(
        &self,
        client: FlightClient,
    ) -> impl Future<Output = Result<Self::Reply, Status>> + Send;
}

/// A command on the nodes of a batch.
pub(crate) struct Exchange {
    pub command: Command,
    pub about: RecordBatch,
}

impl Call for Exchange {
    type Reply = Vec<RecordBatch>;

    async fn make(&self, mut client: FlightClient) -> Result<Self::Reply, Status> {
        let descriptor = FlightDescriptor::new_cmd(command::write(&self.command));
        let request = FlightDataEncoderBuilder::new()
            .with_flight_descriptor(Some(descriptor))
            .build(stream::iter([Ok(self.about.clone())]));
        let reply = client.do_exchange(request).await.map_err(status_of)?;
        collect(reply).await
    }
}

/// All batches of a reply, at least one: without rows where a server has none to send, so that the types of its
/// columns are known.
async fn collect(mut reply: FlightRecordBatchStream) -> Result<Vec<RecordBatch>, Status> {
    let mut batches = Vec::new();
    while let Some(batch) = reply.try_next().await.map_err(status_of)? {
        batches.push(batch);
    }
    if batches.is_empty()
        && let Some(schema) = reply.schema()
    {
        batches.push(RecordBatch::new_empty(schema.clone()));
    }
    Ok(batches)
}

async fn get(
    ticket: &impl Serialize,
    mut client: FlightClient,
) -> Result<Vec<RecordBatch>, Status> {
    let reply = client.do_get(Ticket::new(command::write(ticket))).await.map_err(status_of)?;
    collect(reply).await
}

impl Call for Whole {
    type Reply = Vec<RecordBatch>;

    async fn make(&self, client: FlightClient) -> Result<Self::Reply, Status> {
        get(self, client).await
    }
}

impl Call for WholeSplit {
    type Reply = Vec<RecordBatch>;

    async fn make(&self, client: FlightClient) -> Result<Self::Reply, Status> {
        get(self, client).await
    }
}

impl Call for FilePiece {
    type Reply = Vec<RecordBatch>;

    async fn make(&self, client: FlightClient) -> Result<Self::Reply, Status> {
        get(self, client).await
    }
}

/// Lists the server's parts: the bodies of its reply.
pub(crate) struct Describe;

impl Call for Describe {
    type Reply = Vec<Vec<u8>>;

    async fn make(&self, mut client: FlightClient) -> Result<Self::Reply, Status> {
        let reply = client.do_action(Action::new("describe", "")).await.map_err(status_of)?;
        reply.map_ok(|body| body.to_vec()).try_collect().await.map_err(status_of)
    }
}

/// An action with its body; the reply's body.
pub(crate) struct Act {
    pub action: &'static str,
    pub body: Vec<u8>,
}

impl Call for Act {
    type Reply = Vec<u8>;

    async fn make(&self, mut client: FlightClient) -> Result<Self::Reply, Status> {
        let action = Action::new(self.action, self.body.clone());
        let reply = client.do_action(action).await.map_err(status_of)?;
        let bodies: Vec<_> = reply.try_collect().await.map_err(status_of)?;
        bodies.into_iter().next().map(Into::into).ok_or_else(|| Status::internal("empty reply"))
    }
}

/// A request for a batch.
pub(crate) struct AskBatch {
    pub descriptor: Vec<u8>,
    pub about: RecordBatch,
}

impl Call for AskBatch {
    type Reply = RecordBatch;

    async fn make(&self, mut client: FlightClient) -> Result<Self::Reply, Status> {
        let descriptor = FlightDescriptor::new_cmd(self.descriptor.clone());
        let request = FlightDataEncoderBuilder::new()
            .with_flight_descriptor(Some(descriptor))
            .build(stream::iter([Ok(self.about.clone())]));
        let reply = client.do_exchange(request).await.map_err(status_of)?;
        let mut batches = collect(reply).await?;
        match batches.len() {
            1 => Ok(batches.remove(0)),
            other => Err(Status::internal(format!("{other} record batches for one batch"))),
        }
    }
}
