//! Graphs of some parts in memory: each part in a place, lists merged from edge buckets (Armada §3; MariusGNN's buffer).
//!
//! The local id of a node is the first of its part's place plus its row among the part's nodes. Lists have the sources
//! that are in memory, ascending by dataset id as everywhere; degrees are those in the whole graph.

mod merge;

use std::sync::Arc;

use gnarl_common::{Buf, Divisor, Error, Kind, Result};
use gnarl_graph::Csc;
use gnarl_partition::LoadedBucket;

use crate::SampleGraph;
use merge::{Merge, Run, Sources};

/// The nodes of a part.
#[derive(Debug, Clone)]
pub struct PartNodes {
    /// Number of the part.
    pub part: usize,
    /// Dataset ids, ascending.
    pub ids: Buf<u64>,
    /// In-degrees in the whole graph.
    pub degrees: Buf<u32>,
}

/// Edge buckets of the parts.
pub trait Buckets: Sync {
    /// Number of edges from part `i` to part `j`.
    fn len(&self, i: usize, j: usize) -> usize;

    /// Reads buckets (i, j), the edges from part `i` to part `j`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, wanted: &[(usize, usize)]) -> Result<Vec<LoadedBucket>>;
}

/// Parts in places, and the edges among them.
#[derive(Debug, Clone)]
pub struct ResidentGraph {
    /// Nodes that a place has room for.
    stride: Divisor,
    places: Vec<Option<Arc<PartNodes>>>,
    csc: Csc,
}

impl ResidentGraph {
    /// No parts, in `places` places of up to `stride` nodes each.
    ///
    /// # Errors
    /// [`Kind::Limit`] if local ids exceed 32 bits.
    pub fn new(places: usize, stride: usize) -> Result<Self> {
        let nodes = places.saturating_mul(stride);
        if nodes >= u32::MAX as usize {
            let message = format!("{places} parts of up to {stride} nodes exceed 32-bit local ids");
            return Err(Error::new(Kind::Limit, message)
                .hint("have fewer parts in memory at a time: disaggregated.resident"));
        }
        let csc = Csc { indptr: vec![0u32; nodes + 1].into(), indices: Buf::default(), edge: None };
        Ok(Self { stride: Divisor::new((stride as u32).max(1)), places: vec![None; places], csc })
    }

    /// The nodes in each place.
    pub fn places(&self) -> &[Option<Arc<PartNodes>>] {
        &self.places
    }

    /// Local ids of the first node of each place differ by so many.
    pub fn stride(&self) -> u32 {
        self.stride.get()
    }

    /// Local id of the first node of a place, as a position.
    fn first(&self, place: usize) -> usize {
        place * self.stride() as usize
    }

    /// Number of edges.
    pub fn num_edges(&self) -> usize {
        self.csc.num_edges()
    }

    /// The place of part `part`, if it is in memory.
    pub fn place_of(&self, part: usize) -> Option<usize> {
        self.places.iter().position(|nodes| nodes.as_ref().is_some_and(|n| n.part == part))
    }

    /// Dataset id of a local node; the largest number for a local id without a node.
    pub fn id(&self, node: u32) -> u64 {
        let (place, row) = self.stride.divide(node);
        let nodes = self.places[place as usize].as_ref();
        nodes.and_then(|nodes| nodes.ids.get(row as usize).copied()).unwrap_or(u64::MAX)
    }

    /// The graph with other parts in some places. Buckets are read between parts of which one is new where it is; all
    /// other edges are carried over.
    ///
    /// Memory: both graphs, and the new edges into one part at a time, 8 bytes each.
    ///
    /// # Errors
    /// If a bucket cannot be read, or has rows that its parts have not.
    ///
    /// # Panics
    /// If the number of places is another one, or a part exceeds the stride.
    pub fn with(&self, places: Vec<Option<Arc<PartNodes>>>, buckets: &dyn Buckets) -> Result<Self> {
        assert_eq!(places.len(), self.places.len(), "places");
        let part = |nodes: &Option<Arc<PartNodes>>| nodes.as_ref().map(|nodes| nodes.part);
        let kept: Vec<bool> = places
            .iter()
            .zip(&self.places)
            .map(|(new, old)| new.is_some() && part(new) == part(old))
            .collect();
        let ids = self.ids32(&places)?;
        let sources = Sources { stride: self.stride, kept: &kept, ids: &ids };
        let into = |j: usize| -> usize {
            let Some(to) = part(&places[j]) else { return 0 };
            places.iter().filter_map(part).map(|from| buckets.len(from, to)).sum()
        };
        let total = (0..places.len()).map(into).sum();
        let mut indices = vec![0u32; total];
        let mut indptr = vec![0u64; self.first(places.len()) + 1];
        let mut left = &mut indices[..];
        let mut first = 0u64;
        for (j, nodes) in places.iter().enumerate() {
            let rows = nodes.as_ref().map_or(0, |nodes| nodes.ids.len());
            assert!(
                rows <= self.stride() as usize,
                "{rows} nodes in a place for {}",
                self.stride()
            );
            let new = |i: usize| !(kept[i] && kept[j]);
            let from: Vec<(usize, &PartNodes, &PartNodes)> = places
                .iter()
                .enumerate()
                .filter_map(|(i, from)| Some((i, from.as_deref()?, nodes.as_deref()?)))
                .filter(|(i, _, _)| new(*i))
                .collect();
            let wanted: Vec<_> = from.iter().map(|(_, from, to)| (from.part, to.part)).collect();
            let mut runs = Vec::with_capacity(from.len());
            for ((i, from, to), bucket) in from.into_iter().zip(buckets.read(&wanted)?) {
                check(&bucket, from, to)?;
                runs.push(Run { first: self.first(i) as u32, bucket });
            }
            let old = kept[j].then_some(&self.csc);
            let own = self.first(j);
            let merge = Merge { sources: &sources, old, first: own as u32, runs: &runs };
            let (mine, others) = left.split_at_mut(into(j));
            left = others;
            let ends = &mut indptr[own + 1..self.first(j + 1) + 1];
            merge.lists(rows, ends, first, mine)?;
            first += mine.len() as u64;
        }
        let indptr = match u32::try_from(total) {
            Ok(_) => indptr.iter().map(|&offset| offset as u32).collect::<Vec<_>>().into(),
            Err(_) => indptr.into(),
        };
        let csc = Csc { indptr, indices: indices.into(), edge: None };
        Ok(Self { stride: self.stride, places, csc })
    }

    /// Dataset ids by local id, in 32 bits.
    fn ids32(&self, places: &[Option<Arc<PartNodes>>]) -> Result<Vec<u32>> {
        let mut ids = vec![0u32; self.first(places.len())];
        for (place, nodes) in places.iter().enumerate() {
            let Some(nodes) = nodes else { continue };
            if nodes.ids.last().is_some_and(|&id| id > u64::from(u32::MAX)) {
                let message = format!("part {} has dataset ids beyond 32 bits", nodes.part);
                return Err(Error::new(Kind::Limit, message));
            }
            let own = &mut ids[self.first(place)..];
            own.iter_mut().zip(&nodes.ids[..]).for_each(|(out, &id)| *out = id as u32);
        }
        Ok(ids)
    }

    /// The graph for samplers. Local ids without a node have empty lists.
    ///
    /// # Errors
    /// If a part's ids and degrees differ in number.
    pub fn sample_graph(&self) -> Result<SampleGraph> {
        let nodes = self.first(self.places.len());
        // All fit: they were checked when lists were made.
        let mut ids = vec![u32::MAX; nodes];
        let mut degrees = vec![0; nodes];
        for (place, nodes) in self.places.iter().enumerate() {
            let Some(nodes) = nodes else { continue };
            let first = self.first(place);
            if nodes.ids.len() != nodes.degrees.len() {
                let PartNodes { part, ids, degrees } = nodes.as_ref();
                let (ids, degrees) = (ids.len(), degrees.len());
                let message = format!("part {part} has {ids} ids and {degrees} degrees");
                return Err(Error::invalid(message));
            }
            let own = &mut ids[first..first + nodes.ids.len()];
            own.iter_mut().zip(&nodes.ids[..]).for_each(|(own, &id)| *own = id as u32);
            degrees[first..first + nodes.ids.len()].copy_from_slice(&nodes.degrees);
        }
        SampleGraph::with_part(self.csc.clone(), ids.into(), Some(degrees.into()), nodes)
    }
}

/// Rejects the edges from part `from` to part `to` that have nodes which these have not.
fn check(bucket: &LoadedBucket, from: &PartNodes, to: &PartNodes) -> Result<()> {
    let within =
        |rows: &[u32], nodes: &PartNodes| rows.iter().all(|&row| (row as usize) < nodes.ids.len());
    if within(&bucket.src, from) && within(&bucket.dst, to) {
        return Ok(());
    }
    let message = format!("bucket ({}, {}) has nodes that its parts have not", from.part, to.part);
    Err(Error::invalid(message).hint("partition the graph again"))
}
