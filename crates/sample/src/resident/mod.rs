//! Graphs of some parts in memory: each part in a place, lists merged from edge buckets (Armada §3; MariusGNN's buffer).
//!
//! The local id of a node is the first of its part's place plus its row among the part's nodes of its type. Lists have the
//! sources that are in memory, ascending by dataset id as everywhere; degrees are those in the whole graph. `parts.rs` is
//! what parts bring; `lists.rs` makes the lists of an edge type, from old ones and from buckets by `merge.rs`;
//! `samplable.rs` has the graphs that samplers read.

mod lists;
mod merge;
mod parts;
mod samplable;

use std::sync::Arc;

use gnarl_common::memory::SparePages;
use gnarl_common::{Buf, Divisor, Error, Kind, Result};
use gnarl_graph::Csc;
use gnarl_graph::blocks::Schema;
use rayon::prelude::*;

use lists::Endpoints;
use merge::Lists;
pub use parts::{Buckets, PartNodes};

/// Parts in places, and the edges among them.
#[derive(Debug, Clone)]
pub struct ResidentGraph {
    schema: Arc<Schema>,
    /// Nodes of each type that a place has room for.
    strides: Vec<Divisor>,
    places: Vec<Option<Arc<PartNodes>>>,
    /// Dataset ids of the nodes of each type, by local id; the largest number for local ids without a node.
    ids: Vec<Buf<u32>>,
    /// In-neighbor lists of each edge type.
    lists: Vec<Lists>,
    /// Memory of the tables of graphs that are not used any more.
    spare: Arc<SparePages>,
    /// True if parts stay once they have come.
    fixed: bool,
}

impl ResidentGraph {
    /// No parts, in `places` places of up to so many nodes of each type of `schema`.
    ///
    /// # Errors
    /// [`Kind::Limit`] if local ids of a type exceed 32 bits.
    ///
    /// # Panics
    /// If there is not a number for each type.
    pub fn new(schema: Arc<Schema>, places: usize, largest: &[usize]) -> Result<Self> {
        assert_eq!(largest.len(), schema.node_types().len(), "node types");
        for (name, most) in schema.node_types().iter().zip(largest) {
            if places.saturating_mul(*most) >= u32::MAX as usize {
                let message = format!(
                    "{places} parts of up to {most} nodes of type '{name}' exceed 32-bit local ids"
                );
                return Err(Error::new(Kind::Limit, message)
                    .hint("have fewer parts in memory at a time: disaggregated.resident"));
            }
        }
        let strides: Vec<Divisor> =
            largest.iter().map(|&most| Divisor::new((most as u32).max(1))).collect();
        let nodes = |stride: &Divisor| places * stride.get() as usize;
        let ids = strides.iter().map(|stride| vec![u32::MAX; nodes(stride)].into()).collect();
        let empty = |edge_type: usize| {
            let indptr = vec![0u32; nodes(&strides[schema.ends(edge_type).1]) + 1].into();
            let csc = Csc { indptr, indices: Buf::default(), edge: None };
            Lists { csc, keys: Buf::default() }
        };
        let lists = (0..schema.edge_types().len()).map(empty).collect();
        let places = vec![None; places];
        let spare = Arc::default();
        Ok(Self { schema, strides, places, ids, lists, spare, fixed: false })
    }

    /// Makes it a graph whose parts stay once they have come, which takes 4 bytes less for each edge.
    pub fn fixed(self) -> Self {
        Self { fixed: true, ..self }
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The nodes in each place.
    pub fn places(&self) -> &[Option<Arc<PartNodes>>] {
        &self.places
    }

    /// Local ids of the first node of a type of each place differ by so many.
    ///
    /// # Panics
    /// If there is no such type.
    pub fn stride(&self, node_type: usize) -> u32 {
        self.strides[node_type].get()
    }

    /// Number of edges of all types.
    pub fn num_edges(&self) -> usize {
        self.lists.iter().map(|lists| lists.csc.num_edges()).sum()
    }

    /// The place of part `part`, if it is in memory.
    pub fn place_of(&self, part: usize) -> Option<usize> {
        self.places.iter().position(|nodes| nodes.as_ref().is_some_and(|n| n.part == part))
    }

    /// Dataset id of a local node of a type; the largest number for a local id without a node.
    pub fn id(&self, node_type: usize, node: u32) -> u32 {
        self.ids[node_type].get(node as usize).copied().unwrap_or(u32::MAX)
    }

    /// The graph with other parts in some places. Buckets are read between parts of which one is new where it is; all
    /// other edges are carried over.
    ///
    /// Memory: both graphs, and the new edges into one part at a time, 8 bytes each, of as many types as there are threads;
    /// for each thread 8 bytes for each of 262,144 edges, or of the edges of the longest list. Memory of graphs that are not
    /// used any more is kept for those that come.
    ///
    /// # Errors
    /// If a bucket cannot be read, has rows that its parts have not, or other numbers of edges than it says; if a part's ids
    /// and degrees differ in number; [`Kind::Limit`] if dataset ids exceed 32 bits.
    ///
    /// # Panics
    /// If the number of places is another one, or a part has other types or exceeds the room of its place.
    pub fn with(&self, places: Vec<Option<Arc<PartNodes>>>, buckets: &dyn Buckets) -> Result<Self> {
        assert_eq!(places.len(), self.places.len(), "places");
        let part = |nodes: &Option<Arc<PartNodes>>| nodes.as_ref().map(|nodes| nodes.part);
        if places.iter().map(part).eq(self.places.iter().map(part)) {
            return Ok(self.clone());
        }
        let mut kept = Vec::with_capacity(places.len());
        for (new, old) in places.iter().zip(&self.places) {
            kept.push(new.is_some() && part(new) == part(old));
            if let (Some(nodes), Some(false)) = (new, kept.last()) {
                self.check(nodes)?;
            }
        }
        let types = 0..self.schema.node_types().len();
        let ids: Vec<Buf<u32>> = types.map(|t| self.ids_of(t, &places)).collect::<Result<_>>()?;
        let of_type = |edge_type: usize| {
            let (src, dst) = self.schema.ends(edge_type);
            let endpoints = Endpoints {
                types: (src, dst),
                strides: (self.strides[src], self.strides[dst]),
                ids: &ids[src],
                places: &places,
                kept: &kept,
                spare: &self.spare,
                fixed: self.fixed,
            };
            endpoints.lists((edge_type, buckets), &self.lists[edge_type])
        };
        let lists = (0..self.lists.len()).into_par_iter().map(of_type).collect::<Result<_>>()?;
        Ok(Self {
            schema: self.schema.clone(),
            strides: self.strides.clone(),
            places,
            ids,
            lists,
            spare: self.spare.clone(),
            fixed: self.fixed,
        })
    }

    /// Rejects a part whose tables disagree.
    fn check(&self, nodes: &PartNodes) -> Result<()> {
        let PartNodes { part, ids, degrees } = nodes;
        for (ids, stride) in ids.iter().zip(&self.strides) {
            let rows = ids.len();
            let room = stride.get() as usize;
            assert!(rows <= room, "{rows} nodes in a place for {room}");
            if ids.last().is_some_and(|&id| id >= u64::from(u32::MAX)) {
                let message = format!("part {part} has dataset ids beyond 32 bits");
                return Err(Error::new(Kind::Limit, message));
            }
        }
        for (edge_type, degrees) in degrees.iter().enumerate() {
            let ids = ids[self.schema.ends(edge_type).1].len();
            let degrees = degrees.len();
            if ids != degrees {
                let message = format!("part {part} has {ids} ids and {degrees} degrees");
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }

    /// Dataset ids of the nodes of a type, by local id.
    ///
    /// # Errors
    /// [`Kind::Limit`] without memory.
    fn ids_of(&self, node_type: usize, places: &[Option<Arc<PartNodes>>]) -> Result<Buf<u32>> {
        let stride = self.stride(node_type) as usize;
        let mut ids = self.spare.table(places.len() * stride)?;
        ids.par_chunks_exact_mut(stride).zip(places).for_each(|(own, nodes)| {
            let of_part = nodes.as_ref().map_or(&[][..], |nodes| &nodes.ids[node_type][..]);
            let (own, others) = own.split_at_mut(of_part.len());
            own.iter_mut().zip(of_part).for_each(|(out, &id)| *out = id as u32);
            others.fill(u32::MAX);
        });
        Ok(ids.into())
    }
}
