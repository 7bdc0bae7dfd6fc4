//! Connections of clients.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use gnarl_common::{Error, Kind, Result};
use gnarl_serve::{Accepted, Connection, Listener};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::routes::Service;

/// Most connections at a time.
const MOST: usize = 1024;
/// Time of a client for the head of a request, and for the handshake of an encrypted connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for answers to be sent at the end.
const FINISH: Duration = Duration::from_secs(5);

/// A listener and its connections.
pub(super) struct Connections {
    address: SocketAddr,
    runtime: Runtime,
    accepting: JoinHandle<()>,
    graceful: Arc<GracefulShutdown>,
}

impl Connections {
    /// Listens at `listen`, and answers requests by `service`.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the address cannot be had; [`Kind::Limit`] if no thread can be started.
    pub fn start(
        listen: SocketAddr,
        tls: Option<TlsAcceptor>,
        service: Arc<Service>,
    ) -> Result<Self> {
        let refused = |e: std::io::Error| {
            Error::usage(format!("cannot listen at {listen}: {e}"))
                .hint("take another port, or port 0 for a free one")
        };
        let listener = TcpListener::bind(listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(|e| Error::new(Kind::Limit, format!("cannot start server threads: {e}")))?;
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(refused)?;
        let listener = Listener::new(listener, MOST);
        drop(entered);
        let graceful = Arc::new(GracefulShutdown::new());
        let watching = graceful.clone();
        let accepting = runtime.spawn(accept(listener, tls, service, watching));
        Ok(Self { address, runtime, accepting, graceful })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the listener, and connections when their last answer is sent.
    pub fn finish(self) {
        let Self { runtime, accepting, graceful, .. } = self;
        runtime.block_on(async {
            accepting.abort();
            // Aborted, which is no failure; from here on nobody else has the guard.
            let _ = accepting.await;
            if let Some(graceful) = Arc::into_inner(graceful)
                && tokio::time::timeout(FINISH, graceful.shutdown()).await.is_err()
            {
                tracing::warn!("some clients did not take their answers in time");
            }
        });
        runtime.shutdown_background();
    }
}

async fn accept(
    mut listener: Listener,
    tls: Option<TlsAcceptor>,
    service: Arc<Service>,
    graceful: Arc<GracefulShutdown>,
) {
    loop {
        let stream = listener.accept().await;
        let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(e) = connected(stream, tls, service, watcher).await {
                tracing::debug!("a client disconnected: {e}");
            }
        });
    }
}

async fn connected(
    stream: Accepted,
    tls: Option<TlsAcceptor>,
    service: Arc<Service>,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let connection = stream.connection().clone();
    match tls {
        Some(acceptor) => {
            let stream = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await??;
            requests(stream, connection, service, watcher).await?;
        }
        None => requests(stream, connection, service, watcher).await?,
    }
    Ok(())
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    state: Arc<Connection>,
    service: Arc<Service>,
    watcher: Watcher,
) -> Result<(), hyper::Error> {
    let answer = service_fn(move |request| service.clone().answer(request, state.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), answer);
    watcher.watch(connection).await
}
