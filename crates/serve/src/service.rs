//! The Flight calls.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use gnarl_common::{Error, Result};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status, Streaming};

use crate::answers::Answers;
use crate::batches::Batches;
use crate::codec::found_batch;
use crate::command::{self, BATCHES, Column, Command, FILES, GetTicket, Whole, WholeSplit};
use crate::failure::{status, status_of};
use crate::files::Files;
use crate::limits::{Budget, Call, Limits, PIECE, SMALL};
use crate::received::Asked;
use crate::served::ServedPart;
use crate::targets::STRETCH;
use crate::traffic::Meter;

/// The served parts.
#[derive(Clone)]
pub(crate) struct Service {
    parts: Arc<Vec<Arc<ServedPart>>>,
    /// The description of their partition, or why there is none.
    files: Arc<Result<Files>>,
    /// Whole batches, if the server makes some.
    batches: Option<Arc<Batches>>,
    limits: Limits,
    budget: Budget,
    meter: Meter,
}

pub(crate) type Answer<T> = Result<Response<T>, Status>;
pub(crate) type Replies<T> = BoxStream<'static, Result<T, Status>>;

impl Service {
    /// A service of `parts` and the files of their partition, within limits, whose bytes a meter counts.
    pub(crate) fn new(
        parts: Vec<Arc<ServedPart>>,
        files: Result<Files>,
        (limits, meter): (Limits, Meter),
    ) -> Self {
        let budget = Budget::new(limits.memory);
        Self {
            parts: Arc::new(parts),
            files: Arc::new(files),
            batches: None,
            limits,
            budget,
            meter,
        }
    }

    /// The service with batches.
    pub(crate) fn with_batches(self, batches: Batches) -> Self {
        Self { batches: Some(Arc::new(batches)), ..self }
    }

    fn batches(&self) -> Result<&Batches, Status> {
        self.batches.as_deref().ok_or_else(|| {
            let none = Error::usage("this server makes no batches");
            status(&none.hint("start it with --batches"))
        })
    }

    /// Makes a batch, and keeps its place until it is sent.
    async fn batch(
        &self,
        (spec, request): (serde_json::Value, serde_json::Value),
        mut asked: Asked,
        call: Call,
    ) -> Result<Replies<FlightData>, Status> {
        let batches = self.batches()?;
        let server = batches.server()?;
        asked.share.wait(asked.bytes)?;
        let room = batches.room().await?;
        let place = batches.place().await?;
        let make = move || {
            let batch = server.batch(&spec, &request, &asked.batches);
            drop((place, asked));
            batch
        };
        let batch = busy(make).await?;
        Ok(call.reply(encoded(stream::iter([Ok(batch)]), self.meter.clone()), room))
    }

    fn files(&self) -> Result<&Files> {
        self.files.as_ref().as_ref().map_err(Error::clone)
    }

    fn part(&self, part: usize) -> Result<&Arc<ServedPart>> {
        self.parts.iter().find(|held| held.part() == part).ok_or_else(|| {
            let held: Vec<String> = self.parts.iter().map(|h| h.part().to_string()).collect();
            Error::usage(format!("the server does not have part {part}"))
                .hint(format!("this server has: {}", held.join(", ")))
        })
    }

    /// Answers a command about nodes piece by piece.
    async fn answers(
        &self,
        command: Command,
        asked: Asked,
        call: Call,
    ) -> Result<Replies<FlightData>, Status> {
        let Asked { batches, bytes, share, .. } = asked;
        let part = command.part().map(|part| self.part(part).cloned()).transpose();
        let part = part.map_err(|e| status(&e))?;
        let most = self.limits.ids;
        let begin = move || {
            let part = part.ok_or_else(|| Error::usage("the command names no part"))?;
            let mut answers = Answers::of(part, command, &batches, most)?;
            // A small reply is made at once: each change of threads takes as long as many rows.
            let first = answers.is_within(SMALL)?.then(|| answers.next(PIECE)).transpose()?;
            // The memory is given back with the request, also if the client has left.
            Ok((answers, first.flatten(), share))
        };
        let (mut answers, mut first, mut share) = busy(begin).await?;
        share.shrink();
        if first.is_none() {
            share.grow_for_reply(bytes).await?;
            // The first piece comes before the reply begins: what is wrong with the request is its status.
            (answers, first) = answers.piece().await?;
        }
        let rest = stream::try_unfold(answers, |answers| async {
            if answers.is_done() {
                return Ok(None);
            }
            let (answers, next) = answers.piece().await.map_err(flight_error)?;
            Ok(next.map(|batch| (batch, answers)))
        });
        let all = stream::iter(first.map(Ok)).chain(rest);
        Ok(call.reply(encoded(all, self.meter.clone()), share))
    }

    fn info(&self, part: &ServedPart, ntype: Option<&str>, column: Column) -> Result<FlightInfo> {
        let whole = Whole { part: part.part(), ntype: ntype.map(String::from), column };
        let schema = part.stretch(ntype, column, 0, 0)?.map(|batch| batch.schema());
        let name = std::iter::once(format!("part-{}", part.part()));
        let path = name.chain(ntype.map(String::from)).chain([column.name().into()]);
        let info = FlightInfo::new()
            .with_descriptor(FlightDescriptor::new_path(path.collect()))
            .with_endpoint(FlightEndpoint::new().with_ticket(Ticket::new(command::write(&whole))))
            .with_total_records(part.count(ntype)? as i64);
        match schema {
            Some(schema) => info
                .try_with_schema(&schema)
                .map_err(|e| Error::invalid(format!("the schema is not valid Arrow data: {e}"))),
            None => Ok(info),
        }
    }

    fn infos(&self) -> Result<Vec<FlightInfo>> {
        let of = |part: &Arc<ServedPart>| -> Vec<Result<FlightInfo>> {
            part.columns().map(|(ntype, column)| self.info(part, ntype, column)).collect()
        };
        self.parts.iter().flat_map(of).collect()
    }

    /// Returns whether all rows of a ticket take no more than a small reply.
    fn is_small(&self, ticket: &GetTicket) -> Result<bool> {
        let bytes = match ticket {
            GetTicket::Column(Whole { part, ntype, column }) => {
                let part = self.part(*part)?;
                let ntype = ntype.as_deref();
                part.row_bytes(ntype, *column)?.saturating_mul(part.count(ntype)?)
            }
            GetTicket::Split(WholeSplit { part, targets }) => {
                let part = self.part(*part)?;
                part.target_bytes().saturating_mul(part.split_len(*targets)?)
            }
            GetTicket::File(piece) => self.files()?.left(piece),
        };
        Ok(bytes <= SMALL)
    }

    /// A chunk of the rows of a ticket, from the `from`-th on; none after the last.
    fn stretch(&self, ticket: &GetTicket, from: u64) -> Result<Option<RecordBatch>> {
        match ticket {
            GetTicket::Column(Whole { part, ntype, column }) => {
                let part = self.part(*part)?;
                let rows = PIECE / part.row_bytes(ntype.as_deref(), *column)?.max(1);
                part.stretch(ntype.as_deref(), *column, from, rows.clamp(1, STRETCH))
            }
            GetTicket::Split(WholeSplit { part, targets }) => {
                let part = self.part(*part)?;
                let rows = (PIECE / part.target_bytes()).clamp(1, STRETCH);
                let found = part.split_targets(*targets, from, rows)?;
                let width = part.target_feature_width();
                found.map(|found| found_batch(found, "place", width)).transpose()
            }
            // A reply of one piece.
            GetTicket::File(_) if from > 0 => Ok(None),
            GetTicket::File(piece) => self.files()?.read(piece).map(Some),
        }
    }

    /// All rows of a ticket, in chunks.
    fn whole(
        self,
        ticket: GetTicket,
    ) -> impl futures::Stream<Item = Result<RecordBatch, FlightError>> {
        let ticket = Arc::new(ticket);
        stream::try_unfold(0, move |from| {
            let (service, ticket) = (self.clone(), Arc::clone(&ticket));
            async move {
                let read = move || service.stretch(&ticket, from);
                let next = busy(read).await.map_err(flight_error)?;
                Ok(next.map(|batch| {
                    let read = batch.num_rows() as u64;
                    (batch, from + read.max(1))
                }))
            }
        })
    }
}

impl Answers {
    /// The next piece, made on a thread of its own.
    async fn piece(mut self) -> Result<(Self, Option<RecordBatch>), Status> {
        busy(move || {
            let next = self.next(PIECE)?;
            Ok((self, next))
        })
        .await
    }
}

/// Runs blocking `work` on a thread of its own; it is not begun when nobody waits for it any more.
async fn busy<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T, Status> {
    let result = AbortOnDropHandle::new(tokio::task::spawn_blocking(work)).await;
    result
        .map_err(|_| Status::internal("the server failed on this request"))?
        .map_err(|e| status(&e))
}

fn flight_error(status: Status) -> FlightError {
    FlightError::Tonic(Box::new(status))
}

/// Messages of `batches`, counted by `meter`.
pub(crate) fn encoded(
    batches: impl futures::Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
    meter: Meter,
) -> Replies<FlightData> {
    let messages = FlightDataEncoderBuilder::new().build(batches).map_err(status_of);
    messages.inspect_ok(move |message| meter.send(message)).boxed()
}

/// The answer to calls that are not served.
pub(crate) fn unsupported<T>(what: &str) -> Answer<T> {
    Err(Status::unimplemented(format!("{what} is not served here")))
}

#[tonic::async_trait]
impl FlightService for Service {
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

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let _call = Call::begin(request.extensions())?;
        let infos = self.infos().map_err(|e| status(&e))?;
        Ok(Response::new(stream::iter(infos.into_iter().map(Ok)).boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let _call = Call::begin(request.extensions())?;
        let wanted = request.into_inner().path;
        let infos = self.infos().map_err(|e| status(&e))?;
        let matches = |info: &FlightInfo| {
            info.flight_descriptor.as_ref().is_some_and(|found| found.path == wanted)
        };
        let found = infos.into_iter().find(matches);
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("no flight {wanted:?}")))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        unsupported("polling")
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let info = self.get_flight_info(request).await?.into_inner();
        Ok(Response::new(SchemaResult { schema: info.schema }))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let call = Call::begin(request.extensions())?;
        let mut share = self.budget.share().await?;
        let ticket = request.into_inner().ticket;
        let bytes = ticket.len() as u64;
        let ticket = GetTicket::read(&ticket).map_err(|e| status(&e))?;
        if !self.is_small(&ticket).map_err(|e| status(&e))? {
            share.grow_for_reply(bytes).await?;
        }
        let messages = encoded(self.clone().whole(ticket), self.meter.clone());
        Ok(Response::new(call.reply(messages, share)))
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        unsupported("putting")
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let _call = Call::begin(request.extensions())?;
        let action = request.into_inner().r#type;
        let body = match action.as_str() {
            "describe" => {
                let parts = self.parts.iter().flat_map(|part| part.describe());
                command::write(&parts.collect::<Vec<_>>())
            }
            BATCHES => {
                // Also while the parts of others are being opened: requests wait for that.
                self.batches()?;
                Vec::new()
            }
            FILES => command::write(&self.files().map_err(|e| status(&e))?.list()),
            _ => return unsupported(&format!("the action '{action}'")),
        };
        let result = arrow_flight::Result { body: body.into() };
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let description = "The parts held, as JSON".into();
        let describe = ActionType { r#type: "describe".into(), description };
        let description = "The files that describe the partition, as JSON".into();
        let files = ActionType { r#type: FILES.into(), description };
        let description = "Replies without content if the server makes batches".into();
        let batches = ActionType { r#type: BATCHES.into(), description };
        Ok(Response::new(stream::iter([Ok(describe), Ok(files), Ok(batches)]).boxed()))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Answer<Self::DoExchangeStream> {
        let call = Call::begin(request.extensions())?;
        let share = self.budget.share().await?;
        let asked = Asked::receive(request.into_inner(), share, &self.meter).await?;
        let command: Command =
            command::read("the descriptor", &asked.descriptor).map_err(|e| status(&e))?;
        let reply = match command {
            // They have places of their own: servers that read parts of each other would wait for each other.
            Command::Batch { spec, request } => self.batch((spec, request), asked, call).await?,
            command => self.answers(command, asked, call).await?,
        };
        Ok(Response::new(reply))
    }
}
