//! Known edges, which are no negatives.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::triples::{FilteredSet, Side};

/// Endpoints and relations whose known edges are asked for: a side that is predicted, and the endpoint on the other side
/// with the relation.
pub(crate) type Query = (Side, [u32; 2]);

/// The known edges of a task.
pub(crate) trait KnownEdges: Send + Sync {
    /// A filtered set that is complete for `queries`, over the edges of all splits.
    ///
    /// # Errors
    /// If a part does not reply.
    fn of(&self, queries: &[Query]) -> Result<Arc<FilteredSet>>;

    /// A filtered set that is complete for `queries`, over the training edges.
    ///
    /// # Errors
    /// If a part does not reply.
    fn training(&self, queries: &[Query]) -> Result<Arc<FilteredSet>>;
}

/// Known edges, all of them in memory.
pub(crate) struct KnownInMemory {
    /// Edges of all splits.
    pub all: Arc<FilteredSet>,
    /// Training edges, if negatives leave them out.
    pub training: Option<Arc<FilteredSet>>,
}

impl KnownEdges for KnownInMemory {
    fn of(&self, _: &[Query]) -> Result<Arc<FilteredSet>> {
        Ok(self.all.clone())
    }

    fn training(&self, _: &[Query]) -> Result<Arc<FilteredSet>> {
        self.training.clone().ok_or_else(|| Error::invalid("training edges are not looked up"))
    }
}
