//! Requests and their answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gnarl_serve::{Connection, Guard};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use rayon::ThreadPool;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::body::{EdgesBody, NodesBody};
use super::catalog::Catalog;
use super::compute::{Computed, Job, Work};
use super::meters::{FORMAT, Meters};
use super::queue::{Queue, Rejected};
use super::refusal::Refusal;
use super::rows;

/// Time of a client for the body of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a body beside its ids, and for each of them.
const BODY: (usize, usize) = (1 << 16, 1 << 9);
const JSON: &str = "application/json";

/// The server's state, shared by all connections.
pub(super) struct Service {
    pub catalog: Catalog,
    pub queue: Arc<Queue<Job>>,
    pub meters: Arc<Meters>,
    pub guard: Guard,
    /// The run and its dataset.
    pub about: Value,
    /// Writes answers, apart from the threads that compute and those that connect.
    pub writer: ThreadPool,
    pub deadline: Duration,
    pub max_ids: usize,
}

type Answer = Response<Full<Bytes>>;

impl Service {
    /// Answers a request of a connection.
    pub async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Result<Answer, Infallible> {
        let start = Instant::now();
        let endpoint = match request.uri().path() {
            "/health" => "health",
            "/metrics" => "metrics",
            "/nodes" => "nodes",
            "/edges" => "edges",
            _ => "other",
        };
        let answer = match self.route(endpoint, request, &connection).await {
            Ok(answer) => answer,
            Err(refusal) => refused(&refusal),
        };
        let rows = ["nodes", "edges"].contains(&endpoint).then(|| start.elapsed());
        self.meters.answered(endpoint, answer.status().as_u16(), rows);
        Ok(answer)
    }

    async fn route(
        self: &Arc<Self>,
        endpoint: &str,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
    ) -> Result<Answer, Refusal> {
        let header = request.headers().get(AUTHORIZATION);
        self.guard
            .admit(header.map_or(&[], |header| header.as_bytes()))
            .map_err(|reason| Refusal::new(StatusCode::UNAUTHORIZED, reason))?;
        connection.admit();
        let again = "others wait for the place of this connection";
        let _under_way = connection
            .begin()
            .ok_or_else(|| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, again).closing())?;
        match (endpoint, request.method()) {
            ("health", &Method::GET) => Ok(with(JSON, self.health().to_string())),
            ("metrics", &Method::GET) => Ok(with(FORMAT, self.meters.page(self.queue.len()))),
            ("nodes", &Method::POST) => self.nodes(self.body(request).await?).await,
            ("edges", &Method::POST) => self.edges(self.body(request).await?).await,
            ("other", _) => {
                Err(Refusal::new(StatusCode::NOT_FOUND, format!("no {}", request.uri().path()))
                    .hint("there are GET /health, GET /metrics, POST /nodes and POST /edges"))
            }
            (_, method) => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{method} {} is not allowed", request.uri().path()),
            )),
        }
    }

    fn health(&self) -> Value {
        let status = if self.queue.is_closed() { "stopping" } else { "ok" };
        let mut health = json!({ "status": status });
        for more in [&self.about, &self.catalog.describe()] {
            if let (Value::Object(health), Value::Object(more)) = (&mut health, more) {
                health.extend(more.clone());
            }
        }
        health
    }

    /// Reads the body of a request.
    async fn body<B: DeserializeOwned>(&self, request: Request<Incoming>) -> Result<B, Refusal> {
        let longest = BODY.0 + BODY.1 * self.max_ids;
        let body = Limited::new(request.into_body(), longest).collect();
        let body = timeout(PATIENCE, body).await.map_err(|_| {
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
        })?;
        let body = body.map_err(|e| match e.is::<LengthLimitError>() {
            true => {
                let message = format!("the body is longer than {longest} bytes");
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
            }
            false => Refusal::bad(format!("the body cannot be read: {e}")),
        })?;
        serde_json::from_slice(&body.to_bytes())
            .map_err(|e| Refusal::bad(format!("invalid body: {e}")))
    }

    async fn nodes(self: &Arc<Self>, body: NodesBody) -> Result<Answer, Refusal> {
        let asked = self.catalog.nodes(body)?;
        let (hidden, last) = (asked.outputs.needs_hidden(), asked.outputs.needs_last());
        let count = asked.nodes.len();
        let work = Work::Nodes { of: asked.of, nodes: asked.nodes, hidden, last };
        let computed = self.computed(work, count).await?;
        self.written(move || rows::of_nodes(&asked.ids, &asked.outputs, &computed)).await
    }

    async fn edges(self: &Arc<Self>, body: EdgesBody) -> Result<Answer, Refusal> {
        let asked = self.catalog.edges(body)?;
        let computed = self.computed(Work::Edges(asked.triples), asked.edges.len()).await?;
        self.written(move || rows::of_edges(&asked.edges, asked.outputs.as_ref(), &computed)).await
    }

    /// The rows of `work`, about `count` ids, once they are computed.
    async fn computed(&self, work: Work, count: usize) -> Result<Computed, Refusal> {
        if count == 0 {
            return Ok(Computed::default());
        }
        let late = || {
            let message = format!("no answer within {} ms", self.deadline.as_millis());
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, message)
        };
        let (reply, computed) = oneshot::channel();
        let refusal = |message: &str| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message);
        let full = "too many requests wait";
        let pushed = self.queue.push(Job { work, reply }, count);
        let (number, given_up) = pushed.map_err(|rejected| match rejected {
            Rejected::Full => refusal(full),
            Rejected::Closed => refusal("the server is stopping"),
        })?;
        if let Some(job) = given_up {
            // Its connection may have been closed meanwhile.
            let _ = job.reply.send(Err(refusal(full)));
        }
        let _ticket = Ticket { queue: &self.queue, number };
        // Late is late, computed meanwhile or not: nobody waits for the answer any more.
        let found = timeout(self.deadline, computed).await.map_err(|_| late())?;
        // Without a reply it was late when its batch was taken.
        let found = found.map_err(|_| late())??;
        self.meters.ids(count);
        Ok(found)
    }

    /// The answer that `write` makes on the thread of answers.
    async fn written(
        &self,
        write: impl FnOnce() -> gnarl_common::Result<String> + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let (reply, text) = oneshot::channel();
        self.writer.spawn(move || {
            // The connection may have been closed meanwhile.
            let _ = reply.send(write());
        });
        let failed = |e: &dyn std::fmt::Display| {
            tracing::error!("an answer failed: {e}");
            Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the answer failed, see the server's log",
            )
        };
        let text = text.await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(with(JSON, text))
    }
}

/// A place in the queue, which is free when its request has ended, such as by a closed connection.
struct Ticket<'a> {
    queue: &'a Queue<Job>,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.queue.withdraw(self.number);
    }
}

fn with(kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}

fn refused(refusal: &Refusal) -> Answer {
    let mut answer = with(JSON, refusal.body());
    *answer.status_mut() = refusal.status;
    if refusal.closes {
        answer.headers_mut().insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    }
    let header = match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
        StatusCode::METHOD_NOT_ALLOWED => Some((ALLOW, "GET, POST")),
        _ => None,
    };
    if let Some((name, value)) = header {
        answer.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    }
    answer
}
