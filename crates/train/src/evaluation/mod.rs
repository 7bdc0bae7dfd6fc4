//! Scores of a model: what is measured, on which splits.

mod accumulator;
mod node_scores;
mod scores;

pub use accumulator::MetricAccumulator;
pub(crate) use node_scores::{NodeScores, within};
pub use scores::{Evaluation, LeakageReport, RelationScores, Scores};
pub(crate) use scores::{by_first, is_better};
