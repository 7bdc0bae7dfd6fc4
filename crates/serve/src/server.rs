//! A server of parts on its own threads.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use futures::stream;
use gnarl_common::{Error, Kind, Result};
use gnarl_partition::PartitionedDataset;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tonic::service::interceptor::InterceptedService;

use crate::batches::{Batches, DeferredBatches};
use crate::files::Files;
use crate::limits::{LONGEST, Limits, Listener, MESSAGE};
use crate::security::{Guard, Tls, check_address};
use crate::served::ServedPart;
use crate::service::Service;
use crate::traffic::{Meter, Traffic};
use crate::work::{Handler, WorkService};

/// Bytes of a call that are received before it has a place. Those of a connection are of all its calls together: one that
/// waits must not keep another from being received.
const AHEAD: u32 = 1 << 16;

/// Calls of a kind of server.
struct Calls {
    /// Threads that work on them.
    threads: usize,
    /// Calls of a connection that are open at a time.
    streams: u32,
    /// Most bytes of a message.
    message: usize,
}

impl Calls {
    /// Calls about the nodes of parts.
    fn of_parts(threads: usize) -> Self {
        Self { threads, streams: 32, message: MESSAGE }
    }

    /// Requests for batches, whose lists are one message.
    fn of_batches(threads: usize) -> Self {
        Self { threads, streams: 200, message: LONGEST as usize }
    }
}

/// Interval of signs of life that a client must answer, and the time for it.
const SIGN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// Longest header fields of a call, in bytes.
const HEADER: u32 = 16 << 10;

/// Address and access settings of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Bearer token expected from clients.
    pub token: Option<String>,
    /// Certificate and key for encryption.
    pub tls: Option<Tls>,
    /// True to listen on a public address without a token or encryption.
    pub open_to_everyone: bool,
    /// Threads that sample and gather.
    pub threads: usize,
    /// Bounds on clients.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let limits = Limits::default();
        Self { listen, token: None, tls: None, open_to_everyone: false, threads: 2, limits }
    }
}

/// A running server; dropping it stops it.
pub struct Server {
    address: SocketAddr,
    encrypted: bool,
    meter: Meter,
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Serves `parts` until the server is dropped.
    ///
    /// # Errors
    /// If the address is taken, or is public without a token and encryption, or limits are too low.
    pub fn start(parts: Vec<Arc<ServedPart>>, config: &ServerConfig) -> Result<Self> {
        let none = Err(Error::usage("this server does not describe its partition"));
        let meter = Meter::default();
        Self::launch(
            Service::new(parts, none, (config.limits, meter.clone())),
            meter,
            (config, Calls::of_parts(config.threads.max(1))),
        )
    }

    /// As [`Server::start`], of `held`, some of `parts`: clients that have no folder of them fetch what describes them, and may
    /// ask for whole batches if these are made, at once or deferred.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn of_partition(
        parts: &PartitionedDataset,
        held: Vec<Arc<ServedPart>>,
        batches: Option<DeferredBatches>,
        config: &ServerConfig,
    ) -> Result<Self> {
        let meter = Meter::default();
        let threads = config.threads.max(1);
        let service = Service::new(held, Files::open(parts), (config.limits, meter.clone()));
        let Some(deferred) = batches else {
            return Self::launch(service, meter, (config, Calls::of_parts(threads)));
        };
        let service = service.with_batches(Batches::new(deferred, threads));
        // Rows of parts wait for no batch.
        Self::launch(service, meter, (config, Calls::of_batches(2 * threads)))
    }

    /// Serves the calls of batch workers or of their coordinator until the server is dropped.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn of_workers(handler: Arc<dyn Handler>, config: &ServerConfig) -> Result<Self> {
        let meter = Meter::default();
        let service = WorkService::new(handler, (config.limits, meter.clone()));
        Self::launch(service, meter, (config, Calls::of_batches(config.threads.max(1))))
    }

    fn launch<S: FlightService>(
        service: S,
        meter: Meter,
        (config, calls): (&ServerConfig, Calls),
    ) -> Result<Self> {
        let tls = config.tls.is_some();
        check_address(config.listen, config.token.is_some(), tls, config.open_to_everyone)?;
        config.limits.check()?;
        let refused = |e: std::io::Error| {
            Error::usage(format!("cannot listen at {}: {e}", config.listen))
                .hint("take another port, or port 0 for a free one")
        };
        let listener = TcpListener::bind(config.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = Builder::new_multi_thread()
            // Replies are large: encoding them is the work of these threads.
            .worker_threads(config.threads.max(1))
            .max_blocking_threads(calls.threads)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|e| Error::new(Kind::Limit, format!("cannot start server threads: {e}")))?;
        let (stop, stopped) = oneshot::channel();
        let service = FlightServiceServer::new(service)
            .max_decoding_message_size(calls.message)
            .max_encoding_message_size(usize::MAX);
        let service = InterceptedService::new(service, Guard::new(config.token.clone()));
        let mut builder = tonic::transport::Server::builder()
            .max_concurrent_streams(calls.streams)
            .initial_stream_window_size(AHEAD)
            .initial_connection_window_size(calls.streams * AHEAD)
            .http2_max_header_list_size(HEADER)
            .http2_keepalive_interval(Some(SIGN.0))
            .http2_keepalive_timeout(Some(SIGN.1));
        if let Some(tls) = &config.tls {
            let wrong = |e| Error::usage(format!("invalid certificate or key: {e}"));
            builder = builder.tls_config(tls.config()).map_err(wrong)?;
        }
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(refused)?;
        let listener = Listener::new(listener, config.limits.connections);
        drop(entered);
        runtime.spawn(async move {
            let incoming = stream::unfold(listener, async |mut listener| {
                Some((std::io::Result::Ok(listener.accept().await), listener))
            });
            let ended = async { drop(stopped.await) };
            let served = builder.add_service(service);
            if let Err(e) = served.serve_with_incoming_shutdown(incoming, ended).await {
                tracing::error!("the server failed: {e}");
            }
        });
        Ok(Self { address, encrypted: tls, meter, stop: Some(stop), runtime: Some(runtime) })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes received and sent so far.
    pub fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// The URI for clients.
    pub fn uri(&self) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
