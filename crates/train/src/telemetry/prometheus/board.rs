//! The registry of metrics, and the exported page.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use gnarl_common::memory::{current_rss, open_descriptors};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Metric, Registry};

/// A counter of seconds.
pub(super) type Seconds = Counter<f64, AtomicU64>;
/// A floating-point gauge.
pub(super) type Value = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfRank {
    pub rank: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfStage {
    pub rank: usize,
    pub stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfScore {
    pub rank: usize,
    pub metric: String,
}

/// The metrics of a process, by rank.
#[derive(Debug)]
pub(super) struct Board {
    pub epoch: Family<OfRank, Gauge>,
    pub planned: Family<OfRank, Gauge>,
    pub loss: Family<OfRank, Value>,
    pub rate: Family<OfRank, Value>,
    pub score: Family<OfScore, Value>,
    pub stage: Family<OfStage, Seconds>,
    pub edges: Family<OfRank, Counter>,
    pub seeds: Family<OfRank, Counter>,
    pub steps: Family<OfRank, Counter>,
    pub batch_workers: Family<OfRank, Gauge>,
    registry: Registry,
}

impl Board {
    /// A board without ranks, started now.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        about_process(&mut registry);
        let to = &mut registry;
        Self {
            epoch: show(to, "gnarl_epoch", "Epochs finished"),
            planned: show(to, "gnarl_epochs_planned", "Epochs the run takes at most"),
            loss: show(to, "gnarl_training_loss", "Mean loss over all ranks in the last epoch"),
            rate: show(to, "gnarl_learning_rate", "Learning rate of the last epoch"),
            score: show(to, "gnarl_validation_score", "Last validation score by metric"),
            stage: show(to, "gnarl_stage_seconds", "Seconds this rank spent in each stage"),
            edges: show(to, "gnarl_sampled_edges", "Edges of the batches this rank computed"),
            seeds: show(to, "gnarl_seeds", "Seeds of the batches this rank computed"),
            steps: show(to, "gnarl_steps", "Optimizer steps this rank took part in"),
            batch_workers: show(
                to,
                "gnarl_batch_workers",
                "Batch workers at the end of the last epoch",
            ),
            registry,
        }
    }

    /// The page in the text format of OpenMetrics.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // Only writing can fail, and a string takes everything.
        let _ = encode(&mut page, &self.registry);
        page
    }
}

/// Registers what is told of every process, started now.
pub(super) fn about_process(registry: &mut Registry) {
    // Not the type `info`: readers of Prometheus's older format do not know it.
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    let build: Family<_, Gauge> = show(registry, "gnarl_build_info", "Version of gnarl");
    build.get_or_create(&version).set(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let start = ConstGauge::new(now.as_secs_f64());
    registry.register(
        "gnarl_start_time_seconds",
        "When this process began to count, in Unix time",
        start,
    );
    registry.register_collector(Box::new(Process));
}

/// Registers a metric without values yet.
fn show<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Resource usage of the process, read on export; under the metric names common to all programs.
#[derive(Debug)]
struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let memory = ("process_resident_memory_bytes", "Resident memory.", current_rss());
        let open = ("process_open_fds", "Open file descriptors.", open_descriptors());
        for (name, help, value) in [memory, open] {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
        }
        Ok(())
    }
}
