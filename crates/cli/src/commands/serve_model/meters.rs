//! Metrics of the server, for Prometheus.

use std::fmt::Debug;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

/// The text format of OpenMetrics.
pub(super) const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of an answered request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    endpoint: &'static str,
    status: u16,
}

/// Labels of a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

/// The counters of a server.
pub(super) struct Meters {
    requests: Family<Answered, Counter>,
    refused: Family<Refused, Counter>,
    ids: Counter,
    seconds: Histogram,
    batches: Counter,
    waiting: Gauge,
    registry: Registry,
}

impl Meters {
    /// Counters at 0.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let to = &mut registry;
        // From a millisecond to 16 seconds.
        let seconds = Histogram::new(exponential_buckets(0.001, 2.0, 15));
        Self {
            requests: show(to, "requests", "Requests answered", Family::default()),
            refused: show(
                to,
                "refused",
                "Requests refused before they were computed",
                Family::default(),
            ),
            ids: show(
                to,
                "ids",
                "Ids and edges of requests that were answered",
                Counter::default(),
            ),
            seconds: show(to, "seconds", "Seconds from a request for rows to its answer", seconds),
            batches: show(
                to,
                "batches",
                "Batches of requests computed together",
                Counter::default(),
            ),
            waiting: show(to, "waiting", "Requests in the queue", Gauge::default()),
            registry,
        }
    }

    /// Counts an answer; `rows` is the time of a request for rows.
    pub fn answered(&self, endpoint: &'static str, status: u16, rows: Option<Duration>) {
        self.requests.get_or_create(&Answered { endpoint, status }).inc();
        if let Some(rows) = rows {
            self.seconds.observe(rows.as_secs_f64());
        }
        let reason = match status {
            401 => "token",
            503 => "queue",
            504 => "deadline",
            400..500 => "request",
            _ => return,
        };
        self.refused.get_or_create(&Refused { reason }).inc();
    }

    /// Counts the ids of a request that was computed.
    pub fn ids(&self, count: usize) {
        self.ids.inc_by(count as u64);
    }

    /// Counts a computed batch.
    pub fn batch(&self) {
        self.batches.inc();
    }

    /// The page in the text format of OpenMetrics; so many requests wait.
    pub fn page(&self, waiting: usize) -> String {
        self.waiting.set(waiting as i64);
        let mut page = String::new();
        // Only writing can fail, and a string takes everything.
        let _ = encode(&mut page, &self.registry);
        page
    }

    /// Ids answered, and batches.
    pub fn totals(&self) -> (u64, u64) {
        (self.ids.get(), self.batches.get())
    }
}

fn show<M: Metric + Clone + Debug>(to: &mut Registry, name: &str, help: &str, metric: M) -> M {
    to.register(format!("gnarl_online_{name}"), help, metric.clone());
    metric
}
