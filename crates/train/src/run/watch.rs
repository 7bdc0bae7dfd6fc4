//! Whoever follows a run.

use std::path::Path;

use crate::telemetry::EpochRecord;

/// Whoever follows a run. Its methods are called on the first rank.
pub trait Watch: Sync {
    /// The run's folder is known; training begins.
    fn begins(&self, _folder: &Path) {}

    /// An epoch has ended.
    fn epoch(&self, record: &EpochRecord);

    /// The run has ended, and all its results are in the folder if it is `finished`. The folder is still locked for this
    /// process. Not called if [`Watch::begins`] was not, or no epoch could begin.
    fn ends(&self, _finished: bool) {}

    /// The words of the command that started the run, which its folder records. None unless a program gives them: they may
    /// have secrets.
    fn command(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Calls [`Watch::ends`] when dropped, on whatever way the run ends.
pub(super) struct Ending<'a> {
    watch: &'a dyn Watch,
    finished: bool,
}

impl<'a> Ending<'a> {
    pub fn new(watch: &'a dyn Watch) -> Self {
        Self { watch, finished: false }
    }

    /// Ends a run whose results are written.
    pub fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.watch.ends(self.finished);
    }
}

/// A function that is called after every epoch.
pub(super) struct Epochs<'a>(pub &'a (dyn Fn(&EpochRecord) + Sync));

impl Watch for Epochs<'_> {
    fn epoch(&self, record: &EpochRecord) {
        (self.0)(record);
    }
}
