//! Metrics of processes that train no model: batch workers and coordinators.

use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;

use gnarl_common::{Context, Result};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::board::about_process;
use super::endpoint::{Endpoint, Pages};

/// A metric at the moment its page is asked for.
pub(crate) struct Figure {
    pub name: &'static str,
    pub help: &'static str,
    pub value: Reading,
}

/// The value of a figure.
pub(crate) enum Reading {
    /// A total that only grows.
    Total(f64),
    /// A current level.
    Level(f64),
}

/// The page of a process, served until this value is dropped.
pub(crate) struct RoleMetrics {
    _endpoint: Option<Endpoint>,
}

impl RoleMetrics {
    /// Serves the figures that `read` gives, at `address` if there is one.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the address cannot be had.
    pub fn start(
        address: Option<SocketAddr>,
        read: impl Fn() -> Vec<Figure> + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut registry = Registry::default();
        about_process(&mut registry);
        registry.register_collector(Box::new(Figures(read)));
        let metrics = move || {
            let mut page = String::new();
            // Only writing can fail, and a string takes everything.
            let _ = encode(&mut page, &registry);
            page
        };
        let pages = Pages { metrics: Box::new(metrics), events: None };
        let endpoint = address.map(|address| Endpoint::start(address, pages)).transpose();
        Ok(Self { _endpoint: endpoint.while_doing(|| "--metrics-listen")? })
    }
}

/// Figures read on export.
struct Figures<F>(F);

impl<F> Debug for Figures<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl<F: Fn() -> Vec<Figure> + Send + Sync + 'static> Collector for Figures<F> {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Figure { name, help, value } in (self.0)() {
            match value {
                Reading::Total(value) => {
                    encode_one(&mut encoder, (name, help), &ConstCounter::new(value))?
                }
                Reading::Level(value) => {
                    encode_one(&mut encoder, (name, help), &ConstGauge::new(value))?
                }
            }
        }
        Ok(())
    }
}

fn encode_one(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    metric: &impl EncodeMetric,
) -> fmt::Result {
    let kind = metric.metric_type();
    metric.encode(encoder.encode_descriptor(name, help, None, kind)?)
}
