//! A server of parts on its own threads.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use futures::TryStreamExt;
use gnarl_common::{Error, Kind, Result};
use gnarl_partition::PartitionedDataset;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::interceptor::InterceptedService;

use crate::batches::{Batches, DeferredBatches};
use crate::files::Files;
use crate::security::{Guard, Tls, check_address};
use crate::served::ServedPart;
use crate::service::Service;
use crate::traffic::{Meter, Traffic};
use crate::work::{Handler, WorkService};

/// Largest message to a server, in bytes; longer requests are split.
const LONGEST_REQUEST: usize = 64 << 20;

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
}

impl Default for ServerConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { listen, token: None, tls: None, open_to_everyone: false, threads: 2 }
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
    /// If the address is taken, or is public without a token and encryption.
    pub fn start(parts: Vec<Arc<ServedPart>>, config: &ServerConfig) -> Result<Self> {
        let none = Err(Error::usage("this server does not describe its partition"));
        let meter = Meter::default();
        Self::launch(
            Service::new(parts, none, meter.clone()),
            meter,
            (config, 1, config.threads.max(1)),
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
        let service = Service::new(held, Files::open(parts), meter.clone());
        let Some(deferred) = batches else {
            return Self::launch(service, meter, (config, 1, threads));
        };
        let service = service.with_batches(Batches::new(deferred, threads));
        // Batches are large: encoding them is the work of the threads of the runtime. Rows of parts wait for none of them.
        Self::launch(service, meter, (config, threads, 2 * threads))
    }

    /// Serves the calls of batch workers or of their coordinator until the server is dropped.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn of_workers(handler: Arc<dyn Handler>, config: &ServerConfig) -> Result<Self> {
        let meter = Meter::default();
        // Batches are large: encoding them is the work of the threads of the runtime.
        let service = WorkService::new(handler, meter.clone());
        let threads = config.threads.max(1);
        Self::launch(service, meter, (config, threads, threads))
    }

    fn launch<S: FlightService>(
        service: S,
        meter: Meter,
        (config, workers, blocking): (&ServerConfig, usize, usize),
    ) -> Result<Self> {
        let (token, tls) = (config.token.is_some(), config.tls.is_some());
        check_address(config.listen, token, tls, config.open_to_everyone)?;
        let refused = |e: std::io::Error| {
            Error::usage(format!("cannot listen at {}: {e}", config.listen))
                .hint("take another port, or port 0 for a free one")
        };
        let listener = TcpListener::bind(config.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(blocking)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|e| Error::new(Kind::Limit, format!("cannot start server threads: {e}")))?;
        let (stop, stopped) = oneshot::channel();
        let service = FlightServiceServer::new(service)
            .max_decoding_message_size(LONGEST_REQUEST)
            .max_encoding_message_size(usize::MAX);
        let service = InterceptedService::new(service, Guard::new(config.token.clone()));
        let mut builder = tonic::transport::Server::builder();
        if let Some(tls) = &config.tls {
            let wrong = |e| Error::usage(format!("invalid certificate or key: {e}"));
            builder = builder.tls_config(tls.config()).map_err(wrong)?;
        }
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(refused)?;
        drop(entered);
        runtime.spawn(async move {
            // The builder applies its socket settings only to connections that it accepts itself.
            let incoming = TcpListenerStream::new(listener).inspect_ok(|connection| {
                if let Err(e) = connection.set_nodelay(true) {
                    tracing::debug!(
                        "cannot disable Nagle's algorithm, small replies may be delayed: {e}"
                    );
                }
            });
            let ended = async { drop(stopped.await) };
            let served = builder.add_service(service);
            if let Err(e) = served.serve_with_incoming_shutdown(incoming, ended).await {
                tracing::error!("the server failed: {e}");
            }
        });
        let (stop, runtime) = (Some(stop), Some(runtime));
        Ok(Self { address, encrypted: tls, meter, stop, runtime })
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
