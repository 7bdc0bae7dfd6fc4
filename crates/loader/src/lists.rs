//! The lists of neighbors that batches are drawn from.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_graph::blocks::Schema;
use gnarl_sample::HeteroSampleGraph;

#[cfg(feature = "serve")]
use crate::parts::PartLists;

/// Lists of a whole graph, or in its parts.
pub(crate) enum Lists {
    Whole(HeteroSampleGraph),
    #[cfg(feature = "serve")]
    Parts(PartLists),
}

impl Lists {
    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        match self {
            Self::Whole(lists) => lists.schema(),
            #[cfg(feature = "serve")]
            Self::Parts(lists) => &lists.schema,
        }
    }

    /// Number of nodes of a type.
    pub fn num_nodes(&self, node_type: usize) -> usize {
        match self {
            Self::Whole(lists) => lists.num_nodes(node_type),
            #[cfg(feature = "serve")]
            Self::Parts(lists) => lists.routes[node_type].num_nodes(),
        }
    }

    /// The lists of a whole graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] with `what` needs them, if there are none.
    #[cfg_attr(not(feature = "serve"), expect(unused_variables, reason = "there are no parts"))]
    pub fn whole(&self, what: &str) -> Result<&HeteroSampleGraph> {
        match self {
            Self::Whole(lists) => Ok(lists),
            #[cfg(feature = "serve")]
            Self::Parts(_) => Err(gnarl_common::Error::usage(format!(
                "{what} need the whole graph, not its parts"
            ))
            .hint("open the dataset that was partitioned")),
        }
    }

    /// Returns whether lists are behind servers.
    pub fn is_remote(&self) -> bool {
        match self {
            #[cfg(feature = "serve")]
            Self::Parts(lists) => lists.is_remote(),
            Self::Whole(_) => false,
        }
    }

    /// Rejects connections of another process, whose threads are not in this one.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] after a fork.
    pub fn check_process(&self) -> Result<()> {
        match self {
            #[cfg(feature = "serve")]
            Self::Parts(lists) => lists.check_process(),
            Self::Whole(_) => Ok(()),
        }
    }
}
