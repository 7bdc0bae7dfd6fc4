//! The meetings of ranks within a layer.

use gnarl_common::Result;

use super::{MEETINGS, Peers};
use crate::places::Places;

/// The meetings of ranks within a layer.
pub(crate) struct Meetings<'a> {
    peers: Option<&'a Peers<'a>>,
    /// Own nodes between two meetings.
    each: usize,
    done: usize,
    met: usize,
}

impl<'a> Meetings<'a> {
    /// Those of a layer that is computed for the own nodes at `places`.
    pub fn new(peers: Option<&'a Peers<'a>>, places: &[Places]) -> Self {
        let own: usize = places.iter().map(Places::num_own).sum();
        Self { peers, each: own.div_ceil(MEETINGS).max(1), done: 0, met: 0 }
    }

    /// Meets after some more nodes, where that is due.
    pub fn after(&mut self, nodes: usize) -> Result<()> {
        self.done += nodes;
        self.until(self.done / self.each)
    }

    /// The meetings left.
    pub fn end(&mut self) -> Result<()> {
        self.until(MEETINGS)
    }

    fn until(&mut self, due: usize) -> Result<()> {
        while let Some(peers) = self.peers
            && self.met < due.min(MEETINGS)
        {
            peers.meet()?;
            self.met += 1;
        }
        Ok(())
    }
}
