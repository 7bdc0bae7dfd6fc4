//! Limits of a server: its connections, and the memory of calls under way.
//!
//! [`Listener`] accepts connections and closes those that are silent; [`Call`] is a call under way, whose client must take its
//! reply; [`Budget`] bounds the memory of all calls. A client that asks for much is served piece by piece and waits for
//! others that do; small calls have places of their own and never wait for it.

mod budget;
mod call;
mod connection;
mod descriptors;
mod listener;
mod places;
mod stream;

use gnarl_common::{Error, Result};

pub(crate) use budget::{Budget, LONGEST, MESSAGE, PIECE, SMALL, Share};
pub(crate) use call::{Call, peer};
pub use connection::Connection;
pub use listener::Listener;
pub use stream::{Accepted, Peer};

/// Bounds on clients of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time; fewer where the process may not open as many files.
    pub connections: usize,
    /// Most nodes, or edges, of a call.
    pub ids: usize,
    /// Bytes for the requests and replies of calls under way, besides batches. Batches have two places for each thread of
    /// the server.
    pub memory: u64,
}

impl Default for Limits {
    /// 1,024 connections, 2²² nodes, 1 GiB.
    fn default() -> Self {
        Self { connections: 1024, ids: 1 << 22, memory: 1 << 30 }
    }
}

impl Limits {
    /// Rejects limits within which no call could be answered.
    ///
    /// # Errors
    /// [`Kind::Usage`](gnarl_common::Kind::Usage) naming the limit.
    pub fn check(&self) -> Result<()> {
        if self.connections == 0 || self.ids == 0 {
            return Err(Error::usage(
                "a server requires at least one connection and one id a call",
            ));
        }
        if self.memory < budget::LEAST {
            let least = budget::LEAST >> 20;
            let message = format!("{} bytes are too few for the calls of a server", self.memory);
            return Err(Error::usage(message).hint(format!("give at least {least} MiB")));
        }
        Ok(())
    }
}
