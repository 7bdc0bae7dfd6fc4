//! Prometheus metrics of a running training.
//!
//! In: the counters of every rank at each step, and the figures of each epoch. Out: a page in the
//! text format of OpenMetrics, for Prometheus to scrape, at `/metrics` of `output.metrics_listen`.
//! Ranks that are threads of one process share its page; each has its own `rank` there. Batch workers and coordinators have
//! pages of their own (`roles.rs`).
//!
//! Counting is a few atomic additions a step, listening a thread of its own that reads them:
//! neither waits for the other.

mod board;
mod endpoint;
mod meter;
#[cfg(feature = "serve")]
mod roles;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use gnarl_common::{Context, Result};
use gnarl_config::RunConfig;

use board::Board;
use endpoint::Endpoint;

pub use meter::Meter;
#[cfg(feature = "serve")]
pub(crate) use roles::{Figure, Reading, RoleMetrics};

/// The metrics of one process. They are served until this value is dropped.
pub struct Metrics {
    board: Arc<Board>,
    planned: usize,
    _endpoint: Option<Endpoint>,
}

impl Metrics {
    /// Begins to count, and to serve if configured. `rank` is the first of the process.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the address of `output.metrics_listen` cannot be had, for
    /// instance because another program listens there.
    pub fn start(config: &RunConfig, rank: usize) -> Result<Self> {
        let board = Arc::new(Board::new());
        let listen = config.output.metrics_listen.map(|listen| {
            let board = board.clone();
            Endpoint::start(listen.of_rank(rank)?, move || board.page())
        });
        let endpoint = listen.transpose().while_doing(|| "output.metrics_listen")?;
        Ok(Self { board, planned: config.train.epochs, _endpoint: endpoint })
    }

    /// The meter of `rank`.
    pub fn meter(&self, rank: usize) -> Meter {
        Meter::new(&self.board, rank, self.planned)
    }
}
