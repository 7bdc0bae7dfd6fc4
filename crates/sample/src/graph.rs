//! The graph that samplers read: in-neighbor lists in local ids, and attributes of the whole graph.

use std::sync::Arc;

use gnarl_common::{Buf, Error, Kind, Result};
use gnarl_graph::{Csc, Dataset, Narrow, Triple};

use crate::edge_features::{EdgeFeatures, Shared, mapped};
use crate::view::View;
use crate::weights::Weights;
use gnarl_graph::times::{edge_times, node_times};

/// A graph, or one part of it, ready for sampling.
///
/// Nodes have local ids `0..num_nodes`. In a part the first `core` nodes are its own, with complete
/// in-neighbor lists; the rest is halo, whose lists may be truncated or empty.
///
/// *Invariant:* every list is ascending by **dataset** id, not by local id. Samplers choose
/// positions in a list, so this is what makes a node's sample the same in a part as in the whole
/// graph. [`SampleGraph::verify`] checks it.
#[derive(Debug, Clone)]
pub struct SampleGraph {
    csc: Csc,
    ids: Option<Narrow>,
    degrees: Option<Buf<u32>>,
    weights: Option<Weights>,
    /// True if weights are in the order of the lists, not of the edge rows.
    listed: bool,
    times: Option<Buf<i64>>,
    /// Times of sources.
    source_times: Option<Buf<i64>>,
    edge_features: Option<Shared>,
    core: usize,
    /// True if lists are read ahead of sampling.
    ahead: bool,
}

impl SampleGraph {
    /// A whole graph: local ids are dataset ids.
    ///
    /// # Errors
    /// If the offsets do not span the indices, or there are more nodes than 32-bit ids.
    pub fn new(csc: Csc) -> Result<Self> {
        let nodes = csc.indptr.len().checked_sub(1);
        let nodes = nodes.ok_or_else(|| Error::invalid("in-neighbor lists: no offsets"))?;
        let (first, last) = (csc.indptr.get(0), csc.indptr.get(nodes as u64));
        if first != 0 || last != csc.indices.len() as u64 {
            return Err(Error::invalid(format!(
                "in-neighbor lists: offsets span {first}..{last}, but there are {} edges",
                csc.indices.len()
            )));
        }
        same_length("edge rows", csc.edge.as_ref().map(|e| e.len()), csc.indices.len())?;
        if nodes >= u32::MAX as usize {
            return Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32-bit local ids"))
                .hint("partition the graph first"));
        }
        Ok(Self {
            csc,
            ids: None,
            degrees: None,
            weights: None,
            listed: false,
            times: None,
            source_times: None,
            edge_features: None,
            core: nodes,
            ahead: false,
        })
    }

    /// A part: `ids` are the dataset ids of its nodes, `degrees` their in-degrees in the whole
    /// graph (taken from the part's lists if absent), the first `core` nodes are its own. `csc` has
    /// a list, perhaps empty, for every node, halo included, in the order of dataset ids.
    ///
    /// # Errors
    /// As [`SampleGraph::new`], or if the lengths disagree.
    pub fn with_part(
        csc: Csc,
        ids: Narrow,
        degrees: Option<Buf<u32>>,
        core: usize,
    ) -> Result<Self> {
        Self::new(csc)?.in_part(Some(ids), degrees, core)
    }

    /// As [`SampleGraph::with_part`] for existing lists; without `ids`, local ids are dataset ids.
    pub(crate) fn in_part(
        self,
        ids: Option<Narrow>,
        degrees: Option<Buf<u32>>,
        core: usize,
    ) -> Result<Self> {
        let nodes = self.num_nodes();
        same_length("dataset ids", ids.as_ref().map(|ids| ids.len()), nodes)?;
        same_length("in-degrees", degrees.as_ref().map(|d| d.len()), nodes)?;
        if core > nodes {
            return Err(Error::invalid(format!("{core} core nodes in a part of {nodes} nodes")));
        }
        Ok(Self { ids, degrees, core, ..self })
    }

    /// A homogeneous dataset, or a part of one, with its edge weights, and its edge times if they are
    /// integers.
    ///
    /// # Errors
    /// As [`SampleGraph::with_part`], or if there are several types of nodes or edges.
    pub fn open(dataset: &Dataset) -> Result<Self> {
        let (node, edge) = dataset.plain()?;
        let csc = dataset.csc(&edge.triple)?;
        let graph = match dataset.node_column(&node.name, "orig_id")? {
            None => Self::new(csc)?,
            Some(ids) => {
                let degrees = dataset.node_column(&node.name, "degree")?;
                let degrees = degrees.map(|column| column.values()).transpose()?;
                let core = node.core.unwrap_or(node.count) as usize;
                Self::with_part(csc, ids.ids()?.into(), degrees, core)?
            }
        };
        let graph = graph.with_weights_of(dataset, &edge.triple)?;
        graph.with_times_of(dataset, &edge.triple)
    }

    /// The graph for files that exceed memory: samplers bring the lists that they draw from into memory first, many at a
    /// time.
    pub fn read_ahead(self) -> Self {
        Self { ahead: true, ..self }
    }

    /// Advises the system that lists are read here and there.
    pub fn expect_random_reads(&self) {
        self.csc.indices.expect_random_reads();
    }

    /// Adds the times of the edges of a dataset and of their sources, if they have integer ones.
    pub(crate) fn with_times_of(mut self, dataset: &Dataset, triple: &Triple) -> Result<Self> {
        self.source_times = node_times(dataset, &triple.src)?;
        match edge_times(dataset, triple)? {
            Some(times) => self.with_times(times),
            None => Ok(self),
        }
    }

    /// Adds the edge weights of a dataset, if it has some: those in the order of the lists, or in
    /// that of the edge rows where it was written without.
    pub(crate) fn with_weights_of(self, dataset: &Dataset, triple: &Triple) -> Result<Self> {
        if let Some(weights) = dataset.edge_column(triple, "csc.weight")? {
            return self.with_list_weights(Weights::of(&weights)?);
        }
        match dataset.edge_column(triple, "weight")? {
            Some(weights) => self.with_weights(Weights::of(&weights)?),
            None => Ok(self),
        }
    }

    /// Adds edge weights in the order of the lists.
    ///
    /// # Errors
    /// If there are not as many as edges.
    pub fn with_list_weights(mut self, weights: Weights) -> Result<Self> {
        same_length("edge weights", Some(weights.len()), self.num_edges())?;
        (self.weights, self.listed) = (Some(weights), true);
        Ok(self)
    }

    /// Adds edge weights, one per edge row (`csc.edge`, or the position where that is absent).
    ///
    /// # Errors
    /// If an edge's row has no weight. Reads all rows once.
    pub fn with_weights(mut self, weights: Weights) -> Result<Self> {
        self.check_rows("weight", weights.len())?;
        (self.weights, self.listed) = (Some(weights), false);
        Ok(self)
    }

    /// Adds edge times, one per edge row as weights, in whatever unit seeds have theirs.
    ///
    /// # Errors
    /// If an edge's row has no time. Reads all rows once.
    pub fn with_times(mut self, times: Buf<i64>) -> Result<Self> {
        self.check_rows("time", times.len())?;
        self.times = Some(times);
        Ok(self)
    }

    /// Adds times of nodes, by local id: no edge from a node is there before the node is.
    ///
    /// # Errors
    /// If a node has no time.
    pub fn with_node_times(self, times: Buf<i64>) -> Result<Self> {
        same_length("node times", Some(times.len()), self.num_nodes())?;
        Ok(self.with_source_times(times))
    }

    /// Adds the times of all sources, which may be of another type than the nodes.
    pub(crate) fn with_source_times(self, times: Buf<i64>) -> Self {
        Self { source_times: Some(times), ..self }
    }

    /// Adds features of edges, a row per edge row as weights. Neighbor samplers read them with the edges they choose.
    ///
    /// # Errors
    /// If an edge's row has none. Reads all rows once.
    pub fn with_edge_features(mut self, features: Arc<dyn EdgeFeatures>) -> Result<Self> {
        self.check_rows("feature", features.rows() as usize)?;
        self.edge_features = Some(Shared(features));
        Ok(self)
    }

    /// Adds the features of the edges of a homogeneous dataset or part, if they have any.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn with_edge_features_of(self, dataset: &Dataset, triple: &Triple) -> Result<Self> {
        match dataset.edge_column(triple, "features")? {
            Some(column) => self.with_edge_features(mapped(column)?),
            None => Ok(self),
        }
    }

    /// Width of the features of edges; 0 without.
    pub fn edge_width(&self) -> usize {
        self.edge_features.as_ref().map_or(0, |shared| shared.0.width())
    }

    /// Rejects a column of `len` values that lacks the row of an edge.
    fn check_rows(&self, what: &str, len: usize) -> Result<()> {
        let Some(rows) = &self.csc.edge else {
            return same_length(&format!("edge {what}s"), Some(len), self.num_edges());
        };
        match rows.as_slice().range(0..rows.len()).find(|&row| row >= len as u64) {
            Some(row) => {
                Err(Error::invalid(format!("edge row {row} has no {what}: there are {len}")))
            }
            None => Ok(()),
        }
    }

    /// Number of local nodes, halo included.
    pub fn num_nodes(&self) -> usize {
        self.csc.num_dst()
    }

    /// Number of stored edges.
    pub fn num_edges(&self) -> usize {
        self.csc.num_edges()
    }

    /// Number of nodes with complete lists; they come first.
    pub fn core(&self) -> usize {
        self.core
    }

    /// Rejects seeds with incomplete lists.
    pub(crate) fn check_seeds(&self, seeds: &[u32]) -> Result<()> {
        match seeds.iter().find(|&&seed| seed as usize >= self.core) {
            None => Ok(()),
            Some(seed) => Err(Error::invalid(format!(
                "seed {seed} is not one of the {} nodes with complete in-neighbor lists",
                self.core
            ))),
        }
    }

    /// The in-neighbor lists.
    pub fn csc(&self) -> &Csc {
        &self.csc
    }

    /// Sources of a node's edges, in the order of its list.
    ///
    /// # Errors
    /// If the list is not inside the graph.
    pub fn sources(&self, node: u32) -> Result<&[u32]> {
        let (start, degree) = self.view().list(node)?;
        Ok(&self.csc.indices[start..start + degree as usize])
    }

    /// Copies the weights of a node's edges, in the order of its list, into `out`; returns whether there are any.
    ///
    /// # Errors
    /// If the list is not inside the graph.
    ///
    /// # Panics
    /// If `out` is not as long as the list.
    pub fn copy_weights(&self, node: u32, out: &mut [f32]) -> Result<bool> {
        let view = self.view();
        let (start, degree) = view.list(node)?;
        assert_eq!(out.len(), degree as usize, "one weight an edge");
        let Some(weights) = view.weights else { return Ok(false) };
        for (position, out) in (start..).zip(out) {
            *out = view.weight(weights, position);
        }
        Ok(true)
    }

    /// The weight of the edge at `position` of a node's list; none in a graph without weights.
    ///
    /// # Panics
    /// If the list is shorter.
    #[inline]
    pub fn weight(&self, node: u32, position: usize) -> Option<f32> {
        let view = self.view();
        let first = self.csc.indptr.get(node.into()) as usize;
        view.weights.map(|weights| view.weight(weights, first + position))
    }

    /// Dataset id of a local node.
    pub fn id(&self, node: u32) -> u64 {
        self.ids.as_ref().map_or(u64::from(node), |ids| ids.get(node.into()))
    }

    /// In-degree of a local node in the whole graph.
    pub fn degree(&self, node: u32) -> u32 {
        match &self.degrees {
            Some(degrees) => degrees[node as usize],
            None => self.csc.degree(node),
        }
    }

    /// The edge weights, in the order of the lists or of the edge rows.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    /// Returns whether edges have weights.
    pub fn is_weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// Bytes that samplers read once all of the graph is resident: offsets, sources, weights, and
    /// edge rows if weights are in their order.
    pub fn num_bytes(&self) -> usize {
        let csc = &self.csc;
        let weights = self.weights.as_ref().map_or(0, Weights::num_bytes);
        let rows = csc.edge.as_ref().filter(|_| self.is_weighted() && !self.listed);
        let rows = rows.map_or(0, Narrow::num_bytes);
        csc.indptr.num_bytes() + size_of_val(&csc.indices[..]) + rows + weights
    }

    /// Returns whether edges have times, their own or those of their sources.
    pub fn is_timed(&self) -> bool {
        self.view().is_timed()
    }

    /// Times of the nodes that edges come from, if they have some.
    pub fn node_times(&self) -> Option<&Buf<i64>> {
        self.source_times.as_ref()
    }

    /// Checks every list: offsets ascend, sources exist, and dataset ids ascend within a list.
    /// Samplers check the lists they read; this is for writers of parts and for tests.
    ///
    /// # Errors
    /// Names the first node whose list is wrong.
    pub fn verify(&self) -> Result<()> {
        self.view().verify()
    }

    pub(crate) fn view(&self) -> View<'_> {
        let ids = self.ids.as_ref().map(Narrow::as_slice);
        let edge = self.csc.edge.as_ref().map(Narrow::as_slice);
        View {
            indptr: self.csc.indptr.as_slice(),
            indices: &self.csc.indices,
            edge,
            weight_rows: edge.filter(|_| !self.listed),
            ids,
            num_sources: self.num_nodes(),
            source_ids: ids,
            degrees: self.degrees.as_deref(),
            weights: self.weights.as_ref().map(Weights::as_slice),
            times: self.times.as_deref(),
            source_times: self.source_times.as_deref(),
            edge_features: self.edge_features.as_ref().map(|shared| &*shared.0),
            ahead: self.ahead,
        }
    }
}

pub(crate) fn same_length(what: &str, found: Option<usize>, expected: usize) -> Result<()> {
    match found {
        Some(n) if n != expected => {
            Err(Error::invalid(format!("{n} {what}, but the in-neighbor lists have {expected}")))
        }
        _ => Ok(()),
    }
}
