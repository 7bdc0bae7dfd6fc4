//! A connection to a server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_flight::FlightClient;
use arrow_flight::flight_service_client::FlightServiceClient;
use gnarl_common::{Error, Kind, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use crate::calls::{Call, Describe, Exchange};
use crate::command::{self, Command};
use crate::failure::{error, is_passing, status_of};
use crate::security::bearer;
use crate::served::Description;

/// Time without a sign of life after which a connection is reopened.
const SILENCE: Duration = Duration::from_secs(5);
/// Most bytes of a frame: replies are long, and frames of the default, 16 KiB, take longer than their copy.
const FRAME: u32 = 1 << 20;
/// Most nodes of a call.
const NODES: usize = 1 << 20;
/// The first and the longest pause between retries.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Connection settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `http://host:port`, or `https://` for an encrypted connection.
    pub uri: String,
    /// Bearer token.
    pub token: Option<String>,
    /// The certificate to trust, in PEM, for `https`.
    pub certificate: Option<Vec<u8>>,
    /// Deadline of a call, retries included.
    pub deadline: Duration,
    /// Most concurrent calls; further ones queue.
    pub in_flight: usize,
}

impl ClientConfig {
    /// Settings for `uri` without a token, with a deadline of a minute and 16 concurrent calls.
    pub fn new(uri: impl Into<String>) -> Self {
        let (deadline, in_flight) = (Duration::from_secs(60), 16);
        Self { uri: uri.into(), token: None, certificate: None, deadline, in_flight }
    }
}

/// A call without a reply.
#[derive(Debug)]
pub struct Missed {
    /// The reason.
    pub error: Error,
    /// True if another attempt may succeed: the server is away, starting, or took too long.
    pub is_passing: bool,
}

/// A connection; clones share it.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    uri: String,
    token: Option<String>,
    deadline: Duration,
    channel: Channel,
    places: Semaphore,
    runtime: &'static Runtime,
}

/// The threads shared by all clients of this process: they wait most of the time. A process that is forked off has none of
/// them, and starts its own for clients that it connects.
fn runtime() -> Result<&'static Runtime> {
    static SHARED: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = shared.filter(|(of, _)| *of == process) {
        return Ok(runtime);
    }
    let built = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("remote")
        .enable_all()
        .build()
        .map_err(|e| Error::new(Kind::Limit, format!("cannot start the clients' threads: {e}")))?;
    let runtime: &Runtime = Box::leak(Box::new(built));
    *shared = Some((process, runtime));
    Ok(runtime)
}

impl Client {
    /// Prepares a connection, which the first call opens, and later ones reopen if it was lost.
    ///
    /// # Errors
    /// If the address or the certificate is invalid.
    pub fn connect(config: &ClientConfig) -> Result<Self> {
        let wrong = |e: tonic::transport::Error| {
            Error::usage(format!("invalid server address '{}': {e}", config.uri))
                .hint("such as http://10.0.0.1:7070")
        };
        let mut endpoint = Endpoint::from_shared(config.uri.clone()).map_err(wrong)?;
        if config.uri.starts_with("https") {
            let pem = config.certificate.as_ref().map(Certificate::from_pem);
            let tls = ClientTlsConfig::new();
            let tls = pem.map_or(tls.clone(), |pem| tls.ca_certificate(pem));
            endpoint = endpoint.tls_config(tls).map_err(wrong)?;
        }
        let endpoint = endpoint
            .tcp_nodelay(true)
            .connect_timeout(SILENCE)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SILENCE)
            .max_frame_size(FRAME)
            .initial_stream_window_size(8 << 20)
            .initial_connection_window_size(64 << 20);
        let runtime = runtime()?;
        let channel = {
            let _entered = runtime.enter();
            endpoint.connect_lazy()
        };
        Ok(Self(Arc::new(Inner {
            uri: config.uri.clone(),
            token: config.token.as_deref().map(bearer),
            deadline: config.deadline,
            channel,
            places: Semaphore::new(config.in_flight.max(1)),
            runtime,
        })))
    }

    /// Address of the server.
    pub fn uri(&self) -> &str {
        &self.0.uri
    }

    /// Describes the server's parts.
    ///
    /// # Errors
    /// If the server does not reply.
    pub fn describe(&self) -> Result<Vec<Description>> {
        let replies = self.start(Describe)()?;
        let parts: Result<Vec<Vec<Description>>> =
            replies.iter().map(|body| command::read("the description", body)).collect();
        Ok(parts?.concat())
    }

    /// Fetches all that a ticket stands for.
    pub(crate) fn whole(
        &self,
        ticket: impl Call<Reply = Vec<RecordBatch>>,
    ) -> Result<Vec<RecordBatch>> {
        self.start(ticket)()
    }

    /// Begins a call on the nodes of a batch; the returned function waits for its reply. Rows and neighbors of very many nodes
    /// are asked for in several calls, as servers require.
    pub(crate) fn begin(
        &self,
        command: Command,
        about: RecordBatch,
    ) -> impl FnOnce() -> Result<Vec<RecordBatch>> + Send + use<> {
        let divides = matches!(command, Command::Gather { .. } | Command::Sample { .. });
        let most = if divides { NODES } else { usize::MAX };
        let mut replies = Vec::new();
        let mut first = 0;
        while first == 0 || first < about.num_rows() {
            let rows = most.min(about.num_rows() - first);
            let call = Exchange { command: command.clone(), about: about.slice(first, rows) };
            replies.push(self.start(call));
            first = first.saturating_add(most);
        }
        move || {
            let mut all = Vec::new();
            for reply in replies {
                all.extend(reply()?);
            }
            Ok(all)
        }
    }

    /// Deadline of a call, retries included.
    pub fn deadline(&self) -> Duration {
        self.0.deadline
    }

    /// Makes a call once, within `time`, and waits for its reply.
    pub(crate) fn ask_within<C: Call>(&self, call: C, time: Duration) -> Result<C::Reply, Missed> {
        let client = self.clone();
        let asked = self.wait_for(async move { Ok(client.0.once(&call, time).await) })();
        asked.map_err(|error| Missed { error, is_passing: false })?
    }

    /// Begins a call that is made once, within the deadline; the returned function waits for its reply.
    pub(crate) fn start_once<C: Call>(
        &self,
        call: C,
    ) -> impl FnOnce() -> Result<C::Reply> + Send + use<C> {
        let client = self.clone();
        self.wait_for(async move {
            client.0.once(&call, client.0.deadline).await.map_err(|missed| missed.error)
        })
    }

    /// Begins a call; the returned function waits for its reply.
    pub(crate) fn start<C: Call>(
        &self,
        call: C,
    ) -> impl FnOnce() -> Result<C::Reply> + Send + use<C> {
        let client = self.clone();
        self.wait_for(async move { client.0.call(&call).await })
    }

    /// Begins `work`; the returned function waits for its result.
    fn wait_for<T, F>(&self, work: F) -> impl FnOnce() -> Result<T> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        // The receiver may have been dropped meanwhile.
        drop(self.0.runtime.spawn(async move { drop(sender.send(work.await)) }));
        let gone = || Error::new(Kind::Rank, "the connection's thread ended");
        move || receiver.recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl Inner {
    /// Retries until there is a reply, a permanent error, or the deadline.
    async fn call<C: Call>(&self, call: &C) -> Result<C::Reply> {
        let start = Instant::now();
        let left = || self.deadline.saturating_sub(start.elapsed());
        let late = |last: Option<Status>| {
            let why = last.map_or_else(String::new, |s| format!(": {}", s.message()));
            let (uri, seconds) = (&self.uri, self.deadline.as_secs_f64());
            Error::new(Kind::Rank, format!("no reply from {uri} within {seconds} s{why}"))
        };
        let Ok(Ok(_place)) = timeout(left(), self.places.acquire()).await else {
            return Err(late(None));
        };
        let (mut last, mut pause) = (None, PAUSES.0);
        loop {
            match timeout(left(), self.try_once(call)).await {
                Err(_) => return Err(late(last)),
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(status)) if is_passing(&status) => last = Some(status),
                Ok(Err(status)) => {
                    return Err(error(&status).context(format!("asking {}", self.uri)));
                }
            }
            if left() <= pause {
                return Err(late(last));
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    /// Makes one attempt within `time`.
    async fn once<C: Call>(&self, call: &C, time: Duration) -> Result<C::Reply, Missed> {
        let uri = &self.uri;
        match timeout(time, self.try_once(call)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(status)) => {
                let error = error(&status).context(format!("asking {uri}"));
                Err(Missed { error, is_passing: is_passing(&status) })
            }
            Err(_) => {
                let seconds = time.as_secs_f64();
                let message = format!("no reply from {uri} within {seconds} s");
                Err(Missed { error: Error::new(Kind::Rank, message), is_passing: true })
            }
        }
    }

    async fn try_once<C: Call>(&self, call: &C) -> Result<C::Reply, Status> {
        let inner = FlightServiceClient::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        let mut client = FlightClient::new_from_inner(inner);
        if let Some(token) = &self.token {
            client.add_header("authorization", token).map_err(status_of)?;
        }
        call.make(client).await
    }
}
