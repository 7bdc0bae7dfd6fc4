//! The trait of predictions.

use gnarl_common::Result;
use gnarl_config::{RunConfig, Strategy};

use super::facts::Facts;
use super::work::Work;

/// The predictions for a strategy.
pub(super) trait Predict {
    /// The strategy.
    fn strategy(&self) -> Strategy;

    /// Rejects runs that it does not support, or that are not predicted.
    fn check(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<()>;

    /// The work of a rank in an epoch of a supported run.
    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work>;
}
