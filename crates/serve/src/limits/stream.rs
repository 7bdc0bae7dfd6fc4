//! The stream of an accepted connection.

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

use super::connection::Connection;
use super::places::Place;

/// An accepted connection; it fails when the server ends it, and has its place until it is dropped.
#[derive(Debug)]
pub struct Accepted {
    stream: TcpStream,
    connection: Arc<Connection>,
    _place: Place,
}

impl Accepted {
    pub(super) fn new(stream: TcpStream, connection: Arc<Connection>, place: Place) -> Self {
        Self { stream, connection, _place: place }
    }

    /// The connection's state.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Notes the bytes that the client took, if it took some.
    fn taken(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.connection.take();
        }
        written
    }

    /// The stream, unless the connection is to end.
    fn living(&mut self, context: &Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        match self.connection.has_ended(context.waker()) {
            true => Err(io::Error::new(ErrorKind::ConnectionAborted, "ended by the server")),
            false => Ok(Pin::new(&mut self.stream)),
        }
    }
}

/// The address of a client, and the state of its connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The state of the connection.
    pub connection: Arc<Connection>,
    /// The address, unless the client has left already.
    pub address: Option<SocketAddr>,
}

impl Connected for Accepted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        Peer { connection: self.connection.clone(), address: self.stream.peer_addr().ok() }
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let accepted = self.get_mut();
        let before = out.filled().len();
        let read = match accepted.living(context) {
            Ok(stream) => stream.poll_read(context, out),
            Err(e) => Poll::Ready(Err(e)),
        };
        if out.filled().len() > before {
            accepted.connection.hear();
        }
        read
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let accepted = self.get_mut();
        let written = match accepted.living(context) {
            Ok(stream) => stream.poll_write(context, bytes),
            Err(e) => Poll::Ready(Err(e)),
        };
        accepted.taken(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let accepted = self.get_mut();
        let written = match accepted.living(context) {
            Ok(stream) => stream.poll_write_vectored(context, slices),
            Err(e) => Poll::Ready(Err(e)),
        };
        accepted.taken(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
