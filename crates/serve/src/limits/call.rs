//! A call of a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt, stream::BoxStream};
use tonic::transport::server::TlsConnectInfo;
use tonic::{Extensions, Status};

use super::connection::{Connection, Pace, UnderWay};
use super::stream::Peer;

/// A call under way.
pub(crate) struct Call {
    connection: Arc<Connection>,
    _under_way: UnderWay,
}

impl Call {
    /// A call with such extensions.
    ///
    /// # Errors
    /// If the client is to connect again, or was not accepted by a [`Listener`](super::Listener).
    pub fn begin(extensions: &Extensions) -> Result<Self, Status> {
        let peer = peer(extensions);
        let peer = peer.ok_or_else(|| Status::internal("the connection is not known"))?;
        let connection = peer.connection.clone();
        let refused = || Status::unavailable("others wait for the place of this connection");
        let under_way = connection.begin().ok_or_else(refused)?;
        Ok(Self { connection, _under_way: under_way })
    }

    /// The messages of its reply. The connection is ended if its client stops to take them; `held` is kept until the last is
    /// taken.
    pub fn reply<T: Send + 'static>(
        self,
        messages: impl Stream<Item = Result<T, Status>> + Send + 'static,
        held: impl Send + 'static,
    ) -> BoxStream<'static, Result<T, Status>> {
        let pace = Arc::<Pace>::default();
        self.connection.watch(&pace);
        let watched = Watched { messages: messages.boxed(), pace, call: self, _held: held };
        watched.boxed()
    }
}

/// Who makes a call.
pub(crate) fn peer(extensions: &Extensions) -> Option<&Peer> {
    let encrypted = || extensions.get::<TlsConnectInfo<Peer>>().map(TlsConnectInfo::get_ref);
    extensions.get::<Peer>().or_else(encrypted)
}

/// Messages, with the moment at which the latest was taken.
struct Watched<T, H> {
    messages: BoxStream<'static, Result<T, Status>>,
    pace: Arc<Pace>,
    call: Call,
    _held: H,
}

impl<T, H> Unpin for Watched<T, H> {}

impl<T, H> Stream for Watched<T, H> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watched = self.get_mut();
        watched.pace.store(0, Ordering::Relaxed);
        let next = watched.messages.poll_next_unpin(context);
        if next.is_ready() {
            watched.pace.store(watched.call.connection.now(), Ordering::Relaxed);
        }
        next
    }
}
