//! The Flight calls of coordinators and batch workers.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::{StreamExt, stream};
use gnarl_common::{Error, Result};
use tokio::sync::oneshot;
use tonic::{Request, Response, Status, Streaming};

use super::message::WorkRequest;
use crate::failure::status;
use crate::limits::{Budget, Call, Limits, peer};
use crate::received::Asked;
use crate::service::{Answer, Replies, encoded, unsupported};
use crate::traffic::Meter;

/// Receives a batch or features, or why there are none.
pub type Reply = Box<dyn FnOnce(Result<RecordBatch>) + Send>;

/// A coordinator or a batch worker behind a server.
pub trait Handler: Send + Sync + 'static {
    /// Prepares a batch, or gathers features, sooner or later, and hands the reply to `reply`.
    fn batch(&self, _request: WorkRequest, reply: Reply) {
        reply(Err(Error::usage("no batches are prepared here: this is no batch worker")));
    }

    /// Answers an action of the worker at the address `from`, without waiting.
    ///
    /// # Errors
    /// If there is no such action, or the body has another form.
    fn act(&self, action: &str, _body: &[u8], _from: Option<IpAddr>) -> Result<Vec<u8>> {
        Err(Error::usage(format!("no action '{action}' here: this is no coordinator")))
    }
}

/// The service of a handler.
#[derive(Clone)]
pub(crate) struct WorkService {
    handler: Arc<dyn Handler>,
    budget: Budget,
    meter: Meter,
}

impl WorkService {
    /// The service of `handler` within limits, whose bytes a meter counts.
    pub fn new(handler: Arc<dyn Handler>, (limits, meter): (Limits, Meter)) -> Self {
        Self { handler, budget: Budget::new(limits.memory), meter }
    }
}

#[tonic::async_trait]
impl FlightService for WorkService {
    type HandshakeStream = Replies<HandshakeResponse>;
    type ListFlightsStream = Replies<FlightInfo>;
    type DoGetStream = Replies<FlightData>;
    type DoPutStream = Replies<PutResult>;
    type DoActionStream = Replies<arrow_flight::Result>;
    type ListActionsStream = Replies<ActionType>;
    type DoExchangeStream = Replies<FlightData>;

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Self::HandshakeStream> {
        unsupported("a handshake: bear the token in the header 'authorization'; it")
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        unsupported("a list of flights")
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        unsupported("a flight")
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        unsupported("polling")
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        unsupported("a schema")
    }

    async fn do_get(&self, _: Request<Ticket>) -> Answer<Self::DoGetStream> {
        unsupported("getting: batches are asked for by exchange; it")
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        unsupported("putting")
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let _call = Call::begin(request.extensions())?;
        let from = peer(request.extensions()).and_then(|peer| peer.address);
        let from = from.map(|address| address.ip());
        let Action { r#type, body } = request.into_inner();
        let body = self.handler.act(&r#type, &body, from).map_err(|e| status(&e))?;
        let result = arrow_flight::Result { body: body.into() };
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        unsupported("a list of actions")
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Answer<Self::DoExchangeStream> {
        let call = Call::begin(request.extensions())?;
        let share = self.budget.share().await?;
        let asked = Asked::receive(request.into_inner(), share, &self.meter).await?;
        let request =
            WorkRequest::read(&asked.descriptor, &asked.batches).map_err(|e| status(&e))?;
        // Ranks of a run ask for one batch after the other: these are bounded by the run's own queues.
        drop(asked);
        let (sender, receiver) = oneshot::channel();
        // A compute worker that has gone does not wait for it.
        let reply = Box::new(move |batch| drop(sender.send(batch)));
        self.handler.batch(request, reply);
        let gone = || Status::unavailable("the batch worker ends");
        let batch = receiver.await.map_err(|_| gone())?.map_err(|e| status(&e))?;
        let messages = encoded(stream::iter([Ok(batch)]), self.meter.clone());
        Ok(Response::new(call.reply(messages, ())))
    }
}
