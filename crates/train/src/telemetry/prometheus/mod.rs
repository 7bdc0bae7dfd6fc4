//! Prometheus metrics of a running training.
//!
//! In: the counters of every rank at each step, and the figures of each epoch. Out: a page in the
//! text format of OpenMetrics, for Prometheus to scrape, at `/metrics` of `output.metrics_listen`; at `/` a page for people,
//! which grows with each epoch (`events.rs`, `live.html`).
//! Ranks that are threads of one process share its page; each has its own `rank` there. Batch workers and coordinators have
//! pages of their own (`roles.rs`).
//!
//! Counting is a few atomic additions a step, listening a thread of its own that reads them:
//! neither waits for the other.

mod board;
mod endpoint;
mod events;
mod meter;
#[cfg(feature = "serve")]
mod roles;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use gnarl_common::{Context, Result};
use gnarl_config::RunConfig;

use board::Board;
use endpoint::{Endpoint, Pages};
use events::Events;

pub use meter::Meter;
#[cfg(feature = "serve")]
pub(crate) use roles::{Figure, Reading, RoleMetrics};

/// The metrics of one process. They are served until this value is dropped.
pub struct Metrics {
    board: Arc<Board>,
    /// Events of the process, sent by its first rank.
    events: Arc<Events>,
    first: usize,
    planned: usize,
    endpoint: Option<Endpoint>,
}

impl Metrics {
    /// Begins to count, and to serve if configured. `rank` is the first of the process.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the address of `output.metrics_listen` cannot be had, for
    /// instance because another program listens there.
    pub fn start(config: &RunConfig, rank: usize) -> Result<Self> {
        let board = Arc::new(Board::new());
        let events = Arc::new(Events::new(config.train.epochs));
        let listen = config.output.metrics_listen.map(|listen| {
            let board = board.clone();
            let metrics = Box::new(move || board.page());
            let pages = Pages { metrics, events: Some(events.clone()) };
            Endpoint::start(listen.of_rank(rank)?, pages)
        });
        let endpoint = listen.transpose().while_doing(|| "output.metrics_listen")?;
        let planned = config.train.epochs;
        Ok(Self { board, events, first: rank, planned, endpoint })
    }

    /// The meter of `rank`.
    pub fn meter(&self, rank: usize) -> Meter {
        let events = (rank == self.first && self.endpoint.is_some()).then(|| self.events.clone());
        Meter::new(&self.board, events, rank, self.planned)
    }
}
