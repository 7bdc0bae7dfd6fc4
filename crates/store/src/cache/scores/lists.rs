//! The in-neighbor lists that scores are computed from.

use gnarl_common::{Error, Result};
use gnarl_graph::Csc;

/// A callback that takes a node, its in-degree, and in-neighbors of it.
pub type Visit<'a> = &'a mut dyn FnMut(u32, u32, &[u32]) -> Result<()>;

/// In-neighbor lists of nodes `0..num_nodes`, in one place or in several.
pub trait InLists {
    /// Number of nodes.
    fn num_nodes(&self) -> usize;

    /// Calls `each` with a node, its in-degree, and in-neighbors of it, for all of `nodes`, in the
    /// same order every time. A list may be split over several calls. Only available lists are
    /// visited, which may be those of some nodes only.
    ///
    /// # Errors
    /// Those of `each`, and if lists cannot be read.
    fn visit(&self, nodes: &[u32], each: Visit<'_>) -> Result<()>;
}

impl InLists for Csc {
    fn num_nodes(&self) -> usize {
        self.num_dst()
    }

    fn visit(
        &self,
        nodes: &[u32],
        each: &mut dyn FnMut(u32, u32, &[u32]) -> Result<()>,
    ) -> Result<()> {
        nodes.iter().try_for_each(|&node| each(node, self.degree(node), self.sources(node)))
    }
}

/// The value of `source`, checked to exist.
pub(super) fn of_source<T>(values: &mut [T], source: u32) -> Result<&mut T> {
    let nodes = values.len();
    values.get_mut(source as usize).ok_or_else(|| {
        Error::invalid(format!(
            "in-neighbor lists: source {source} does not exist, there are {nodes} nodes"
        ))
    })
}
