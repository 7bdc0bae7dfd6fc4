//! The adjacency lists of a part over one edge type.

mod copied;
mod edges_of_type;
mod nodes_of_type;
mod owned;
mod shared;
mod shared_of_type;
mod timed_of_type;

use gnarl_common::{Error, Result};

use super::hop::HopReply;
use crate::view::View;

pub use copied::Copied;
pub use edges_of_type::EdgesOfType;
pub use nodes_of_type::NodesByType;
pub use owned::{Owned, Sources};
pub use shared::Shared;
pub use shared_of_type::SharedOfType;

/// Draws from lists, given the position of each node asked for.
pub type DrawFrom<'d> = dyn FnMut(View<'_>, &[u32]) -> Result<HopReply> + 'd;

/// In-neighbor lists of a part: whole ones, or shares of them.
pub trait Lists: Send + Sync {
    /// Number of local nodes.
    fn num_nodes(&self) -> usize;

    /// Local id of a node; none if a vertex-cut part does not hold it.
    ///
    /// # Errors
    /// If the node belongs to another part.
    fn local(&self, id: u64) -> Result<Option<u32>>;

    /// The draw of `draw` from the lists of nodes, by their local ids.
    ///
    /// # Errors
    /// If lists are damaged, or those of `draw`.
    fn read(&self, nodes: &[u32], draw: &mut DrawFrom<'_>) -> Result<HopReply>;

    /// The lists with the times of edges and of their sources, as far as they have some.
    ///
    /// # Errors
    /// If they are replicas, which have none, or times do not fit.
    fn with_times(&self) -> Result<Box<dyn Lists>> {
        Err(Error::usage("lists that are replicated have no times")
            .hint("set cache.lists to 0, or leave out sample.time"))
    }

    /// Returns whether other parts may have edges of the same nodes.
    fn are_shares(&self) -> bool {
        false
    }

    /// Returns whether the lists also give the degrees of sources, as in graphs of one type.
    fn cover_sources(&self) -> bool {
        true
    }
}
