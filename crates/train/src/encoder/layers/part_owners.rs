//! Ranks that own the nodes of a partitioned graph in inference.

use gnarl_infer::Owners;
use gnarl_sample::parts::Routes;

use crate::data::shares::Shares;

/// The shares of the nodes of each type.
pub(in crate::encoder) struct SharesByType<'a>(Vec<Shares<'a>>);

impl<'a> SharesByType<'a> {
    /// Of `size` ranks, for each type of `nodes`.
    pub fn new(nodes: &'a [Routes], size: usize) -> Self {
        Self(nodes.iter().map(|nodes| Shares::new(nodes, size)).collect())
    }
}

impl Owners for SharesByType<'_> {
    fn rank_of(&self, node_type: usize, node: u32) -> usize {
        self.0[node_type].place(node).0
    }
}
