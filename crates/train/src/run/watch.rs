//! Whoever follows a run.

use std::path::Path;

use crate::telemetry::EpochRecord;

/// Whoever follows a run. Its methods are called on the first rank.
pub trait Watch: Sync {
    /// The run's folder is known; training begins.
    fn begins(&self, _folder: &Path) {}

    /// An epoch has ended.
    fn epoch(&self, record: &EpochRecord);
}

/// A function that is called after every epoch.
pub(super) struct Epochs<'a>(pub &'a (dyn Fn(&EpochRecord) + Sync));

impl Watch for Epochs<'_> {
    fn epoch(&self, record: &EpochRecord) {
        (self.0)(record);
    }
}
