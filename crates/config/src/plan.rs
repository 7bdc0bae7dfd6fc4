//! Machine rates for predictions.

use bytesize::ByteSize;
use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// `[plan]`: rates of the machines, from which `train.strategy = "auto"` and `gnarl plan` predict.
/// They are fixed, not measured, so that all ranks and all machines make the same choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanSection {
    /// Compute threads of a machine, over all workers there, where `train.threads` is 0.
    pub threads: usize,
    /// Floating-point operations a second of a compute thread in dense products.
    pub flops: f64,
    /// Bytes a second that a compute thread gathers over edges.
    pub gather: f64,
    /// Bytes a second that a compute thread reads and writes sequentially.
    pub stream: f64,
    /// Additional seconds per non-zero value of sparse input, whatever the number of threads.
    pub nonzero: f64,
    /// Seconds of sampling an edge.
    pub edge: f64,
    /// Additional seconds per optimizer step.
    pub step: f64,
    /// Bytes a second from a worker to the others.
    pub link: f64,
    /// Additional seconds per message.
    pub latency: f64,
    /// Bytes a second that are read from disk in sequence.
    pub disk: f64,
    /// Compute threads of a batch worker, or a share of one; 0 for as many as `threads`.
    pub batch_threads: f64,
    /// Price of an hour of a host of compute workers, in any currency.
    pub compute_price: f64,
    /// Price of an hour of a batch worker's host.
    pub batch_price: f64,
    /// Memory limit of a worker; 0 for none.
    pub memory: ByteSize,
}

impl Default for PlanSection {
    fn default() -> Self {
        Self {
            threads: 2,
            flops: 1.5e11,
            gather: 8e9,
            stream: 4e10,
            nonzero: 2e-8,
            edge: 2.5e-8,
            step: 2e-4,
            link: 2e9,
            latency: 2e-5,
            disk: 1e9,
            batch_threads: 0.0,
            compute_price: 0.0,
            batch_price: 0.0,
            memory: ByteSize(0),
        }
    }
}

impl PlanSection {
    /// Rejects invalid rates.
    pub(super) fn check(&self) -> Result<()> {
        let positive = [
            ("threads", self.threads as f64),
            ("flops", self.flops),
            ("gather", self.gather),
            ("stream", self.stream),
            ("link", self.link),
            ("disk", self.disk),
        ];
        for (key, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::usage(format!(
                    "invalid plan.{key} '{value}': expected a number above 0"
                )));
            }
        }
        let times = [
            ("nonzero", self.nonzero),
            ("edge", self.edge),
            ("step", self.step),
            ("latency", self.latency),
        ];
        let amounts = [
            ("batch_threads", self.batch_threads),
            ("compute_price", self.compute_price),
            ("batch_price", self.batch_price),
        ];
        let seconds = times.map(|(key, value)| (key, value, "seconds"));
        let numbers = amounts.map(|(key, value)| (key, value, "a number"));
        for (key, value, expected) in seconds.into_iter().chain(numbers) {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::usage(format!(
                    "invalid plan.{key} '{value}': expected {expected}"
                )));
            }
        }
        Ok(())
    }
}
