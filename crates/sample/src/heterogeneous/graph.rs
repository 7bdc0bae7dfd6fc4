//! The heterogeneous graph that samplers read: in-neighbor lists per edge type.

use std::sync::Arc;

use gnarl_common::{Buf, Context, Error, Kind, Result};
use gnarl_graph::blocks::Schema;
use gnarl_graph::{Csc, Dataset, Narrow, Triple};
use gnarl_partition::degree_column;

use crate::SampleGraph;
use crate::graph::same_length;
use crate::parts::lists::Sources;
use crate::view::View;
use crate::weights::Weights;

/// A heterogeneous graph, or one part of it, ready for sampling.
///
/// The nodes of each type have local ids and dataset ids of their own, both from 0; in a part its
/// own nodes come first. Each edge type has in-neighbor lists of the nodes of its destination
/// type, ascending by the dataset ids of the sources, as those of a [`SampleGraph`] do.
#[derive(Debug, Clone, Default)]
pub struct HeteroSampleGraph {
    schema: Arc<Schema>,
    nodes: Vec<Nodes>,
    edges: Vec<SampleGraph>,
}

/// The nodes of a type.
#[derive(Debug, Clone)]
struct Nodes {
    count: usize,
    core: usize,
    ids: Option<Narrow>,
}

impl HeteroSampleGraph {
    /// An empty graph: add node types first, then edge types.
    pub fn new() -> Self {
        Self::default()
    }

    /// All types of a dataset or of a part of one, with edge weights if it has some.
    ///
    /// # Errors
    /// That name the edge type whose lists or columns do not fit.
    pub fn open(dataset: &Dataset) -> Result<Self> {
        let manifest = dataset.manifest();
        let mut graph = Self::new();
        for t in &manifest.node_types {
            graph = match dataset.node_column(&t.name, "orig_id")? {
                None => graph.with_nodes(&t.name, t.count as usize)?,
                Some(ids) => {
                    let core = t.core.unwrap_or(t.count) as usize;
                    graph.with_part_nodes(&t.name, ids.ids()?.into(), core)?
                }
            };
        }
        for t in &manifest.edge_types {
            let column = degree_column(manifest.edge_types.len(), &t.triple);
            let degrees = dataset.node_column(&t.triple.dst, &column)?;
            let degrees = degrees.map(|column| column.values()).transpose()?;
            graph = graph.with_part_edges(&t.triple, dataset.csc(&t.triple)?, degrees)?;
            let lists = &mut graph.edges[graph.schema.edge_type(&t.triple)?];
            *lists = lists
                .clone()
                .with_weights_of(dataset, &t.triple)
                .while_doing(|| format!("edge type {}", t.triple))?;
        }
        Ok(graph)
    }

    /// Adds the times of the edges of a dataset and of their sources, where they have some. Reads the row of each edge once.
    ///
    /// # Errors
    /// That name the edge type whose times do not fit.
    pub fn with_times_of(mut self, dataset: &Dataset) -> Result<Self> {
        for (lists, triple) in self.edges.iter_mut().zip(self.schema.edge_types()) {
            let timed = lists.clone().with_times_of(dataset, triple);
            *lists = timed.while_doing(|| format!("edge type {triple}"))?;
        }
        Ok(self)
    }

    /// Adds a type of `count` nodes.
    ///
    /// # Errors
    /// If there is one of that name, or there are more nodes than 32-bit ids.
    pub fn with_nodes(self, name: &str, count: usize) -> Result<Self> {
        self.add_nodes(name, Nodes { count, core: count, ids: None })
    }

    /// Adds a node type of which a part of the graph has the nodes with the dataset ids `ids`; the
    /// first `core` are its own.
    ///
    /// # Errors
    /// As [`HeteroSampleGraph::with_nodes`], or if there are fewer nodes than `core`.
    pub fn with_part_nodes(self, name: &str, ids: Narrow, core: usize) -> Result<Self> {
        self.add_nodes(name, Nodes { count: ids.len(), core, ids: Some(ids) })
    }

    fn add_nodes(mut self, name: &str, nodes: Nodes) -> Result<Self> {
        let Nodes { count, core, .. } = nodes;
        if self.schema.node_type(name).is_ok() {
            return Err(Error::usage(format!("duplicate node type '{name}'")));
        }
        if count >= u32::MAX as usize {
            let message = format!("{count} nodes of type '{name}' exceed 32-bit local ids");
            return Err(Error::new(Kind::Limit, message).hint("partition the graph first"));
        }
        if core > count {
            let message = format!("{core} core nodes of type '{name}' in a part that has {count}");
            return Err(Error::invalid(message));
        }
        Arc::make_mut(&mut self.schema).add_node_type(name);
        self.nodes.push(nodes);
        Ok(self)
    }

    /// Adds an edge type; its node types must have been added.
    ///
    /// # Errors
    /// If there is one of that name, an endpoint's type is unknown, or the lists do not fit the
    /// number of destinations.
    pub fn with_edges(self, triple: &Triple, lists: Csc) -> Result<Self> {
        self.with_part_edges(triple, lists, None)
    }

    /// Adds a type of edges of a part: `degrees` are the in-degrees of the destinations in the
    /// whole graph, halo included; those of the lists if absent.
    ///
    /// # Errors
    /// As [`HeteroSampleGraph::with_edges`].
    pub fn with_part_edges(
        mut self,
        triple: &Triple,
        lists: Csc,
        degrees: Option<Buf<u32>>,
    ) -> Result<Self> {
        let what = || format!("edge type {triple}");
        if self.schema.edge_type(triple).is_ok() {
            return Err(Error::usage(format!("duplicate edge type '{triple}'")));
        }
        if self.edges.len() >= usize::from(u16::MAX) {
            return Err(Error::new(Kind::Limit, "more than 65 535 edge types"));
        }
        let src = self.schema.node_type(&triple.src).while_doing(what)?;
        let dst = self.schema.node_type(&triple.dst).while_doing(what)?;
        let Nodes { count, core, ids } = self.nodes[dst].clone();
        let lists = SampleGraph::new(lists).and_then(|lists| {
            same_length("destination nodes", Some(count), lists.num_nodes())?;
            lists.in_part(ids, degrees, core)
        });
        let lists = lists.while_doing(what)?;
        Arc::make_mut(&mut self.schema).add_edge_type(triple.clone(), src, dst);
        self.edges.push(lists);
        Ok(self)
    }

    /// Adds weights to the edges of a type, as [`SampleGraph::with_weights`].
    ///
    /// # Errors
    /// If there is no such type, or an edge's row has no weight.
    pub fn with_weights(mut self, triple: &Triple, weights: Weights) -> Result<Self> {
        let lists = &mut self.edges[self.schema.edge_type(triple)?];
        *lists =
            (lists.clone().with_weights(weights)).while_doing(|| format!("edge type {triple}"))?;
        Ok(self)
    }

    /// Adds times to the edges of a type, as [`SampleGraph::with_times`].
    ///
    /// # Errors
    /// If there is no such type, or an edge's row has no time.
    pub fn with_times(mut self, triple: &Triple, times: Buf<i64>) -> Result<Self> {
        let lists = &mut self.edges[self.schema.edge_type(triple)?];
        *lists = lists.clone().with_times(times).while_doing(|| format!("edge type {triple}"))?;
        Ok(self)
    }

    /// Adds times to the nodes of a type, as [`SampleGraph::with_node_times`].
    ///
    /// # Errors
    /// If there is no such type, or a node has no time.
    pub fn with_node_times(mut self, node_type: &str, times: &Buf<i64>) -> Result<Self> {
        let of = self.schema.node_type(node_type)?;
        same_length("node times", Some(times.len()), self.num_nodes(of))?;
        for (number, lists) in self.edges.iter_mut().enumerate() {
            if self.schema.ends(number).0 == of {
                *lists = lists.clone().with_source_times(times.clone());
            }
        }
        Ok(self)
    }

    /// The whole graph without the edges of type `edge_type` for which `drop` returns true, by
    /// source and destination. The others of that type lose their weights; in-degrees are those of
    /// the remaining graph.
    ///
    /// # Errors
    /// If this is a part of a graph.
    pub fn without(mut self, edge_type: usize, drop: impl Fn(u32, u32) -> bool) -> Result<Self> {
        let dst = self.schema.ends(edge_type).1;
        if self.nodes[dst].ids.is_some() {
            return Err(Error::usage(
                "edges can only be excluded from whole graphs, not from parts",
            ));
        }
        let (lists, count) = (self.csc(edge_type), self.num_nodes(dst));
        let kept = (0..count as u32).flat_map(|dst| {
            let edges = lists.sources(dst).iter().map(move |&src| (src, dst));
            edges.filter(|&(src, dst)| !drop(src, dst))
        });
        let kept: Vec<(u32, u32)> = kept.collect();
        self.edges[edge_type] = SampleGraph::new(Csc::from_edges(count, &kept))?;
        Ok(self)
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of local nodes of type number `node_type`, halo included.
    pub fn num_nodes(&self, node_type: usize) -> usize {
        self.nodes[node_type].count
    }

    /// Number of nodes of type number `node_type` whose lists are complete; they come first.
    pub fn core(&self, node_type: usize) -> usize {
        self.nodes[node_type].core
    }

    /// Returns whether local ids of type number `node_type` may differ from dataset ids.
    pub fn is_part(&self, node_type: usize) -> bool {
        self.nodes[node_type].ids.is_some()
    }

    /// Dataset id of a local node of type number `node_type`.
    pub fn id(&self, node_type: usize, node: u32) -> u64 {
        self.nodes[node_type].ids.as_ref().map_or(u64::from(node), |ids| ids.get(node.into()))
    }

    /// The in-neighbor lists of edge type number `edge_type`.
    pub fn csc(&self, edge_type: usize) -> &Csc {
        self.edges[edge_type].csc()
    }

    /// Returns whether edges of type number `edge_type` have weights.
    pub fn is_weighted(&self, edge_type: usize) -> bool {
        self.edges[edge_type].is_weighted()
    }

    /// Checks every list: offsets ascend, sources exist, and dataset ids ascend within a list.
    ///
    /// # Errors
    /// Names the first edge type and node whose list is wrong.
    pub fn verify(&self) -> Result<()> {
        for (edge_type, triple) in self.schema.edge_types().iter().enumerate() {
            self.view(edge_type).verify().while_doing(|| format!("edge type {triple}"))?;
        }
        Ok(())
    }

    /// Rejects seeds with incomplete lists.
    pub(crate) fn check_seeds(&self, node_type: usize, seeds: &[u32]) -> Result<()> {
        let core = self.core(node_type);
        match seeds.iter().find(|&&seed| seed as usize >= core) {
            None => Ok(()),
            Some(seed) => Err(Error::invalid(format!(
                "seed {seed} is not one of the {core} nodes of type '{}' with complete \
                 in-neighbor lists",
                self.schema.node_types()[node_type]
            ))),
        }
    }

    /// As [`SampleGraph::read_ahead`], for all edge types.
    pub fn read_ahead(mut self) -> Self {
        self.edges = self.edges.into_iter().map(SampleGraph::read_ahead).collect();
        self
    }

    /// As [`SampleGraph::expect_random_reads`], for all edge types.
    pub fn expect_random_reads(&self) {
        self.edges.iter().for_each(SampleGraph::expect_random_reads);
    }

    /// Bytes of the lists of all edge types, in memory or mapped.
    pub fn num_bytes(&self) -> usize {
        self.edges.iter().map(SampleGraph::num_bytes).sum()
    }

    /// The lists of an edge type, and the nodes that its edges come from.
    pub(super) fn lists_and_sources(&self, edge_type: usize) -> (SampleGraph, Sources) {
        let Nodes { count, ids, .. } = self.nodes[self.schema.ends(edge_type).0].clone();
        (self.edges[edge_type].clone(), Sources { count, ids })
    }

    /// The lists of an edge type, from sources of its source type.
    pub(crate) fn view(&self, edge_type: usize) -> View<'_> {
        let sources = &self.nodes[self.schema.ends(edge_type).0];
        View {
            num_sources: sources.count,
            source_ids: sources.ids.as_ref().map(Narrow::as_slice),
            ..self.edges[edge_type].view()
        }
    }
}
