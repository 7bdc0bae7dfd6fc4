//! Batches that batch servers make.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gnarl_common::memory::SparePages;
use gnarl_common::{Context, Error, Kind, Result};
use gnarl_sample::HeteroScratch;
use gnarl_serve::{Client, Missed};
use serde_json::Value;

use crate::batch::Batch;
use crate::graph::LoaderGraph;
use crate::request::BatchRequest;
use crate::source::BatchSource;
use crate::wire::{BatchSpec, batch_of, request_message};

/// Time in which a server that did not reply is not asked, as long as others are.
const REST: Duration = Duration::from_secs(10);

/// The first and the longest pause after which all servers are asked again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Batches of servers, which are asked in turns. They are the same from all of them, so that another one stands in for one
/// that does not reply.
pub(crate) struct RemoteBatches {
    graph: Arc<LoaderGraph>,
    servers: Arc<Vec<Client>>,
    /// Until when each is not asked.
    resting: Mutex<Vec<Option<Instant>>>,
    asked: AtomicUsize,
    spec: Value,
    rows: Arc<SparePages>,
}

impl fmt::Debug for RemoteBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBatches").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl RemoteBatches {
    /// Batches of `servers` by `spec`.
    pub fn new(graph: Arc<LoaderGraph>, servers: &Arc<Vec<Client>>, spec: &BatchSpec) -> Self {
        Self {
            graph,
            servers: servers.clone(),
            resting: Mutex::new(vec![None; servers.len()]),
            asked: AtomicUsize::new(0),
            spec: spec.message(),
            rows: Arc::default(),
        }
    }

    /// The servers in the order in which a batch is asked for, those that rest last; and the number of the others.
    fn order(&self) -> (Vec<usize>, usize) {
        let first = self.asked.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        let rests = |at: usize| resting[at].is_some_and(|until| until > now);
        let count = self.servers.len();
        let mut order: Vec<usize> = (0..count).map(|at| (first + at) % count).collect();
        order.sort_by_key(|&at| rests(at));
        let awake = order.iter().filter(|&&at| !rests(at)).count();
        (order, awake)
    }

    fn rest(&self, server: usize, error: &Error) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        if resting[server].is_none_or(|until| until < Instant::now()) && self.servers.len() > 1 {
            let seconds = REST.as_secs();
            tracing::warn!("batches come from other servers for {seconds} s: {error}");
        }
        resting[server] = Some(Instant::now() + REST);
    }
}

impl BatchSource for RemoteBatches {
    fn batch(&self, request: &BatchRequest, _: &mut HeteroScratch) -> Result<Batch> {
        self.graph.check_process()?;
        let (head, lists) = request_message(request)?;
        let deadline = self.servers.iter().map(Client::deadline).max().unwrap_or_default();
        let until = Instant::now() + deadline;
        let mut pause = PAUSES.0;
        // The first error counts: later attempts have little time.
        let mut failed: Vec<Option<Missed>> = Vec::new();
        failed.resize_with(self.servers.len(), || None);
        let is_over = |missed: &Option<Missed>| missed.as_ref().is_some_and(|of| !of.is_passing);
        loop {
            let (order, awake) = self.order();
            for (asked, &server) in order.iter().enumerate() {
                if is_over(&failed[server]) {
                    continue;
                }
                // One that hangs leaves time for another that is awake.
                let left = until.saturating_duration_since(Instant::now());
                let time = if asked + 1 < awake { left / 2 } else { left };
                let client = &self.servers[server];
                match client.ask_whole_batch((&self.spec, &head), &lists, time) {
                    Ok(reply) => {
                        return batch_of(&reply, self.graph.schema(), request, &self.rows)
                            .while_doing(|| format!("reading a batch of {}", client.uri()));
                    }
                    // It would be another's, too.
                    Err(missed) if missed.error.kind() != Kind::Rank => return Err(missed.error),
                    Err(missed) => {
                        self.rest(server, &missed.error);
                        if !missed.is_passing || failed[server].is_none() {
                            failed[server] = Some(missed);
                        }
                    }
                }
            }
            if Instant::now() + pause >= until || failed.iter().all(is_over) {
                let first = order.first().and_then(|&server| failed[server].take());
                let none = || Error::usage("there are no servers that make batches");
                let error = first.map_or_else(none, |missed| missed.error);
                return Err(error).while_doing(|| "asking servers for a batch");
            }
            // They may be starting, or opening parts.
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSES.1);
        }
    }
}
