//! The nodes of one type in a vertex-cut part.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Error, Result};
use gnarl_partition::VertexCutPart;

/// The nodes of each type in a vertex-cut part, read when they are first asked for and shared by edge types.
pub struct NodesByType {
    part: Arc<VertexCutPart>,
    types: Vec<OnceLock<Arc<NodesOfType>>>,
}

impl NodesByType {
    /// The nodes of `part`.
    pub fn new(part: Arc<VertexCutPart>) -> Self {
        let types = part.manifest().node_types.iter().map(|_| OnceLock::new()).collect();
        Self { part, types }
    }

    /// The nodes of type number `node_type`.
    ///
    /// # Errors
    /// If the type has more nodes than 32-bit ids.
    pub fn of(&self, node_type: usize) -> Result<Arc<NodesOfType>> {
        if let Some(known) = self.types[node_type].get() {
            return Ok(known.clone());
        }
        let new = Arc::new(NodesOfType::new(&self.part, node_type)?);
        Ok(self.types[node_type].get_or_init(|| new).clone())
    }
}

/// The nodes of one type in a vertex-cut part, at places in the order of their local ids.
pub struct NodesOfType {
    /// Local ids, which are consecutive.
    local: Range<u32>,
    /// Dataset id of each.
    ids: Vec<u32>,
}

impl NodesOfType {
    fn new(part: &VertexCutPart, node_type: usize) -> Result<Self> {
        let of = &part.manifest().node_types[node_type];
        let [from, to] = of.local;
        let own_id = |local: u64| {
            let id = part.global(local as u32).checked_sub(of.first);
            id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
                Error::invalid(format!("local node {local} has no 32-bit id of type '{}'", of.name))
            })
        };
        // A vector of results does not know its length, and would have room for up to twice as many.
        let mut ids = Vec::with_capacity((to - from) as usize);
        for local in from..to {
            ids.push(own_id(local)?);
        }
        Ok(Self { local: from as u32..to as u32, ids })
    }

    /// Local ids.
    pub fn local(&self) -> Range<u32> {
        self.local.clone()
    }

    /// Dataset id of each.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The place of the source of an edge.
    ///
    /// # Errors
    /// If it is of another type.
    pub fn place(&self, local: u32) -> Result<u32> {
        match self.local.contains(&local) {
            true => Ok(local - self.local.start),
            false => {
                Err(Error::invalid(format!("an edge comes from node {local} of another type")))
            }
        }
    }
}
