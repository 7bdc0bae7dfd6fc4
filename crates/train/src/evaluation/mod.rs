//! Evaluation of a model: metrics and splits.

mod by_first;
mod forwards;
mod found;
mod node_scores;
mod scores;

pub(crate) use by_first::by_first;
pub(crate) use forwards::Forwards;
pub use found::Evaluation;
pub(crate) use node_scores::{NodeScores, within};
pub use scores::{Goal, LeakageReport, RelationScores, Scores};
