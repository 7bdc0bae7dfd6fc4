//! In-neighbor lists as slices, wherever they are stored.

use gnarl_common::{Error, Result};
use gnarl_graph::NarrowSlice;
use gnarl_graph::blocks::EdgeRows;

use crate::edge_features::EdgeFeatures;
use crate::lanes::LANES;
use crate::weights::WeightSlice;

/// Slices of the arrays of a graph or a part, looked up once per batch.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// `nodes + 1` offsets into the arrays of edges.
    pub indptr: NarrowSlice<'a>,
    /// Local id of each edge's source.
    pub indices: &'a [u32],
    /// Row of each edge in the edge columns; none if rows equal positions.
    pub edge: Option<NarrowSlice<'a>>,
    /// Row of each edge's weight; none if weights are in the order of the lists.
    pub weight_rows: Option<NarrowSlice<'a>>,
    /// Dataset id of each node; none if dataset ids equal local ids.
    pub ids: Option<NarrowSlice<'a>>,
    /// Number of possible sources: the nodes with lists, unless sources are of another type.
    pub num_sources: usize,
    /// As `ids`, for sources.
    pub source_ids: Option<NarrowSlice<'a>>,
    /// In-degrees in the whole graph; none if they are the lengths of the lists.
    pub degrees: Option<&'a [u32]>,
    pub weights: Option<WeightSlice<'a>>,
    pub times: Option<&'a [i64]>,
    /// Time of each source.
    pub source_times: Option<&'a [i64]>,
    pub edge_features: Option<&'a dyn EdgeFeatures>,
    /// True if lists are read ahead of sampling.
    pub ahead: bool,
}

impl<'a> View<'a> {
    pub fn num_nodes(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Start and length of a node's list, checked to lie inside the indices.
    #[inline(always)]
    pub fn list(&self, node: u32) -> Result<(usize, u32)> {
        let (start, end) = (self.indptr.get(node as usize), self.indptr.get(node as usize + 1));
        let degree = end.wrapping_sub(start);
        if end > self.indices.len() as u64 || degree > u64::from(u32::MAX) {
            return Err(bad_list(node, start, end));
        }
        Ok((start as usize, degree as u32))
    }

    #[inline(always)]
    pub fn id(&self, node: u32) -> u64 {
        self.ids.map_or(u64::from(node), |ids| ids.get(node as usize))
    }

    /// Dataset id of a source, as by [`known_id`].
    #[inline(always)]
    pub fn source_id(&self, source: u32) -> u64 {
        self.source_ids.map_or(u64::from(source), |ids| known_id(ids, source))
    }

    /// Source of the edge at `position` of the indices.
    #[inline(always)]
    pub fn source(&self, position: usize) -> Result<u32> {
        let source = self.indices[position];
        if (source as usize) < self.num_sources { Ok(source) } else { Err(self.bad_source(source)) }
    }

    #[inline(always)]
    pub fn degree(&self, node: u32) -> u32 {
        match self.degrees {
            Some(degrees) => degrees[node as usize],
            None => {
                let node = node as usize;
                (self.indptr.get(node + 1) - self.indptr.get(node)) as u32
            }
        }
    }

    /// In-degree of a node whose list has not been read yet.
    #[inline]
    pub fn checked_degree(&self, node: u32) -> Result<u32> {
        self.list(node)?;
        Ok(self.degree(node))
    }

    /// Weight of the edge at `position` of the indices.
    #[inline(always)]
    pub fn weight(&self, weights: WeightSlice<'_>, position: usize) -> f32 {
        weights.get(self.weight_rows.map_or(position, |rows| rows.get(position) as usize))
    }

    /// Weights of `count` edges from that at `first` of the indices on.
    #[inline(always)]
    pub fn weights_from(
        &self,
        weights: WeightSlice<'_>,
        first: usize,
        count: usize,
    ) -> [f32; LANES] {
        let Some(rows) = self.weight_rows else { return weights.lanes(first, count) };
        let mut lanes = [0.0; LANES];
        for (lane, row) in lanes.iter_mut().zip(rows.range(first..first + count)) {
            *lane = weights.get(row as usize);
        }
        lanes
    }

    /// The weights, if they are in the order of the lists.
    #[inline(always)]
    pub fn aligned_weights(&self) -> Option<WeightSlice<'a>> {
        self.weights.filter(|_| self.weight_rows.is_none())
    }

    /// Row of the edge at `position` of the indices in the edge columns.
    #[inline(always)]
    pub fn row(&self, position: usize) -> u64 {
        self.edge.map_or(position as u64, |rows| rows.get(position))
    }

    /// Features of the edges at some positions of the indices, if edges have them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn rows_of(
        &self,
        positions: impl ExactSizeIterator<Item = usize>,
    ) -> Result<Option<EdgeRows>> {
        let Some(all) = self.edge_features else { return Ok(None) };
        let mut rows = EdgeRows::with_capacity(positions.len(), all.width());
        for position in positions {
            all.append(self.row(position), &mut rows.values)?;
        }
        Ok(Some(rows))
    }

    /// Returns whether edges or their sources have times.
    pub fn is_timed(&self) -> bool {
        self.times.is_some() || self.source_times.is_some()
    }

    /// The time from which the edge at `position` of the indices is there: its own or that of its source, the later one;
    /// the earliest of all times without either.
    #[inline(always)]
    pub fn time(&self, position: usize) -> i64 {
        let edge = self.times.map(|times| times[self.row(position) as usize]);
        let source = self.source_times.map(|times| times[self.indices[position] as usize]);
        edge.max(source).unwrap_or(i64::MIN)
    }

    /// The weights, or an error if edges have none.
    pub fn needed_weights(&self) -> Result<WeightSlice<'a>> {
        self.weights.ok_or_else(|| {
            Error::usage("weighted sampling requires edge weights, which the graph lacks")
                .hint("import it with weights, or use another sampler")
        })
    }

    /// Rejects edges without times, their own or those of their sources.
    pub fn needs_times(&self) -> Result<()> {
        if self.is_timed() {
            return Ok(());
        }
        Err(Error::usage(
            "temporal sampling requires times of edges or nodes, which the graph lacks",
        )
        .hint("import it with a column 'time' of integers, or use another sampler"))
    }

    /// Checks every list: offsets ascend, sources exist, and dataset ids ascend within a list.
    pub fn verify(&self) -> Result<()> {
        for node in 0..self.num_nodes() as u32 {
            let (start, degree) = self.list(node)?;
            let list = &self.indices[start..start + degree as usize];
            if let Some(&source) = list.iter().find(|&&s| s as usize >= self.num_sources) {
                return Err(self.bad_source(source));
            }
            if !list.is_sorted_by_key(|&s| self.source_id(s)) {
                return Err(Error::invalid(format!(
                    "in-neighbors of local node {node} are not in the order of dataset ids"
                )));
            }
        }
        Ok(())
    }

    #[cold]
    pub fn bad_source(&self, source: u32) -> Error {
        Error::invalid(format!(
            "in-neighbor lists: source {source} does not exist, there are {} nodes",
            self.num_sources
        ))
    }
}

/// Dataset id of a node; a node outside the graph is reported when its edge is read.
#[inline(always)]
pub fn known_id(ids: NarrowSlice<'_>, node: u32) -> u64 {
    if (node as usize) < ids.len() { ids.get(node as usize) } else { u64::MAX }
}

#[cold]
fn bad_list(node: u32, start: u64, end: u64) -> Error {
    Error::invalid(format!("in-neighbor lists: node {node} has the range {start}..{end}"))
}
