//! The trait of predictions.

use gnarl_common::Result;
use gnarl_config::{RunConfig, Strategy};

use super::facts::Facts;
use super::work::Work;

/// A strategy, as predictions see it.
pub(super) trait Predict {
    /// Which it is.
    fn strategy(&self) -> Strategy;

    /// Refuses what it cannot train, or what is not predicted.
    fn check(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<()>;

    /// What a rank does in an epoch of a run that it can train.
    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work>;
}
