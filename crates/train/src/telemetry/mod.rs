//! Telemetry of a run: epoch records, stage times, load balance, bottlenecks, heartbeat messages,
//! Prometheus, TensorBoard, profiles.

pub(crate) mod bottleneck;
pub(crate) mod load_balance;
mod numbers;
pub(crate) mod processor;
pub(crate) mod profile;
pub mod prometheus;
pub mod pulse;
pub(crate) mod record;
mod stage_times;
mod tally;
mod tensorboard;

pub use bottleneck::Verdict;
pub use load_balance::Balance;
pub(crate) use numbers::short;
pub use profile::{ProfileTotals, Rates, Total};
pub use prometheus::{Meter, Metrics};
pub use pulse::Pulse;
pub use record::{EpochRecord, ExchangedBytes};
pub use stage_times::Stages;
pub(crate) use tally::{Figures, Tally};
pub(crate) use tensorboard::EventFile;
