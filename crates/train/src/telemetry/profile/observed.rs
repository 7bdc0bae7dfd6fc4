//! Collectives as a rank sees them.

use gnarl_common::Result;
use gnarl_common::profile::collective;
use gnarl_engine::Communicator;

/// A communicator whose collectives are spans of the profile.
pub(crate) struct Observed<'a>(pub Inner<'a>);

/// The communicator itself.
pub(crate) enum Inner<'a> {
    Borrowed(&'a dyn Communicator),
    Owned(Box<dyn Communicator + 'a>),
}

impl<'a> Observed<'a> {
    /// The collectives of `comm`.
    pub fn new(comm: &'a dyn Communicator) -> Self {
        Self(Inner::Borrowed(comm))
    }

    fn inner(&self) -> &dyn Communicator {
        match &self.0 {
            Inner::Borrowed(comm) => *comm,
            Inner::Owned(comm) => &**comm,
        }
    }
}

impl Communicator for Observed<'_> {
    fn rank(&self) -> usize {
        self.inner().rank()
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    fn all_gather(&self, stage: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        collective(stage, bytes.len()).within(|| self.inner().all_gather(stage, bytes))
    }

    fn all_to_all(&self, stage: &str, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let bytes = outgoing.iter().map(Vec::len).sum();
        collective(stage, bytes).within(|| self.inner().all_to_all(stage, outgoing))
    }

    fn all_reduce_sum(&self, stage: &str, values: &mut [f32]) -> Result<()> {
        collective(stage, size_of_val(values)).within(|| self.inner().all_reduce_sum(stage, values))
    }

    fn split(&self, stage: &str, color: usize, key: usize) -> Result<Box<dyn Communicator + '_>> {
        let part = self.inner().split(stage, color, key)?;
        Ok(Box::new(Observed(Inner::Owned(part))))
    }

    fn abort(&self, reason: &str) {
        self.inner().abort(reason);
    }
}
