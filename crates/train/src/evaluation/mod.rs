//! Scores of a model: what is measured, on which splits.

mod accumulator;
mod by_first;
mod found;
mod node_scores;
mod scores;

pub use accumulator::MetricAccumulator;
pub(crate) use by_first::by_first;
pub use found::Evaluation;
pub(crate) use node_scores::{NodeScores, within};
pub(crate) use scores::is_better;
pub use scores::{LeakageReport, RelationScores, Scores};
