//! Routes: the parts that have edges of a node.

use std::sync::Arc;

use gnarl_common::{Buf, Error, IdMap, Kind, Result};
use gnarl_partition::{PartLayout, PartitionedDataset};

use crate::temporal::TemporalDraw;

/// The parts to query for a node's in-neighbors.
#[derive(Debug, Clone)]
pub struct Routes {
    ids: Arc<IdMap>,
    /// For vertex cuts: bit `p % 8` of byte `p / 8` of a node's row is set if part `p` holds the
    /// node.
    holders: Option<Buf<u8>>,
}

impl Routes {
    /// The routes of a partitioned homogeneous graph.
    ///
    /// # Errors
    /// If it has several node types, or its parts lack the lists of their own nodes.
    pub fn of(parts: &PartitionedDataset) -> Result<Self> {
        match &parts.manifest().node_types[..] {
            [only] => Self::of_type(parts, &only.name),
            _ => {
                Err(Error::invalid("the parts have several node types: each has routes of its own"))
            }
        }
    }

    /// The routes of the nodes of type `name`.
    ///
    /// # Errors
    /// If there is no such type, or parts lack the lists of their own nodes.
    pub fn of_type(parts: &PartitionedDataset, name: &str) -> Result<Self> {
        let manifest = parts.manifest();
        let holders = match manifest.layout {
            PartLayout::VertexCut => Some(parts.column(name, "holders")?.values()?),
            PartLayout::EdgeCut if manifest.hops == 0 => {
                let dir = parts.dir().display();
                return Err(Error::usage(format!("{dir}: the parts lack cut edges"))
                    .hint("partition the graph again with --hops 1"));
            }
            PartLayout::EdgeCut => None,
            PartLayout::Storage => return Err(parts.without_lists()),
        };
        Ok(Self { ids: parts.id_map(name)?, holders })
    }

    /// The part of each node, and its position there.
    pub fn ids(&self) -> &Arc<IdMap> {
        &self.ids
    }

    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.ids.len()
    }

    /// Number of parts.
    pub fn num_parts(&self) -> usize {
        self.ids.parts()
    }

    /// Returns whether a node's list may be shared by several parts.
    pub fn shares_lists(&self) -> bool {
        self.holders.is_some()
    }

    /// Rejects so many services unless there is one per part, and nodes that exceed 32-bit ids.
    ///
    /// # Errors
    /// Either.
    pub(crate) fn check_services(&self, services: usize) -> Result<()> {
        let parts = self.num_parts();
        let nodes = self.num_nodes();
        if services != parts {
            return Err(Error::usage(format!(
                "expected {parts} services, one per part; found {services}"
            )));
        }
        match nodes < u32::MAX as usize {
            true => Ok(()),
            false => Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32-bit ids"))),
        }
    }

    /// Rejects parts that share lists, unless edges are drawn at times by numbers of their own.
    ///
    /// # Errors
    /// [`Kind::Usage`] with the method that they can draw by.
    pub(crate) fn check_draw(&self, draw: TemporalDraw) -> Result<()> {
        if !self.shares_lists() || draw.exact {
            return Ok(());
        }
        Err(Error::usage(
            "edges are sampled by time from whole lists, and the parts of a vertex cut share them",
        )
        .hint("set sample.method to 'exact', or partition the graph by an edge cut"))
    }

    /// The part that owns `node`.
    pub fn owner(&self, node: u32) -> usize {
        self.ids.part(node as usize)
    }

    /// Prefetches the entries that later calls read of `node`.
    #[inline]
    pub fn prefetch(&self, node: u32) {
        self.ids.prefetch(node as usize);
    }

    /// Calls `each` with every part that may have in-neighbors of `node`, ascending.
    #[inline]
    pub fn for_each(&self, node: u32, mut each: impl FnMut(usize)) {
        let owner = self.owner(node);
        let Some(holders) = &self.holders else { return each(owner) };
        let parts = self.num_parts();
        let width = parts.div_ceil(8);
        let row = &holders[node as usize * width..][..width];
        let held = |&p: &usize| p == owner || row[p / 8] >> (p % 8) & 1 == 1;
        (0..parts).filter(held).for_each(each);
    }
}
