//! Evaluation of a model: metrics and splits.

mod by_first;
mod by_shares;
mod classes;
mod embedded;
mod forwards;
mod found;
mod node_scores;
mod scores;

pub(crate) use by_first::{by_first, of_first};
pub(crate) use by_shares::by_shares;
pub(crate) use classes::Confusion;
pub use classes::{ClassCount, ClassScores};
pub(crate) use embedded::Embedded;
pub(crate) use forwards::Forwards;
pub use found::Evaluation;
pub(crate) use found::{classes, scorers};
pub(crate) use node_scores::{NodeScores, within};
pub use scores::{Goal, LeakageReport, RelationScores, Scores};
