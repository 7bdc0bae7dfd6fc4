//! Heterogeneous blocks, arranged so that products by type are one operation.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::{Block, FusedBatch, FusedBlock, NodeInfo, Schema, Segment};

use crate::lists::{EdgeLists, Lists};
use crate::mixing::Mixing;

/// Successive rows with a common weight matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The rows.
    pub rows: Range<usize>,
    /// Index of the weight.
    pub weight: usize,
}

/// A layer of heterogeneous message passing.
///
/// The in-edges of a destination over one edge type are a *group*. A group's rows are summed first
/// and the sums multiplied by the weight of the type: products are as many as groups, not as edges.
/// Groups are in the order of edge types, so that those of one type are successive rows and all
/// products are one operation ([`Tape::span_linear`]); within a type they are in the order of
/// destinations.
///
/// [`Tape::span_linear`]: crate::Tape::span_linear
#[derive(Debug)]
pub struct RelBlock {
    block: Arc<Block>,
    schema: Arc<Schema>,
    /// The sources' rows of each node type.
    sources: Vec<Span>,
    /// The destinations' rows of each node type.
    own: Vec<Span>,
    /// The sources of each group's edges.
    groups: EdgeLists,
    /// The groups of each destination.
    destinations: EdgeLists,
    /// The groups of each edge type that has any.
    spans: Vec<Span>,
    relation: Vec<u32>,
    degrees: Vec<u32>,
    /// The destination of each group, as lists of one.
    ends: EdgeLists,
    /// Position in the block of each edge in the order of groups.
    position: Vec<u32>,
    /// Inverse of `position`.
    place: Vec<u32>,
    weights: Option<Arc<[f32]>>,
    homogeneous: OnceLock<Vec<Homogeneous>>,
    mixing: OnceLock<Mixing>,
}

/// The edges of one type as a homogeneous block.
#[derive(Debug)]
pub struct Homogeneous {
    /// Index of the edge type.
    pub relation: usize,
    /// The block: its destinations are all of the edge type's destination type.
    pub block: Block,
    /// Row of each of its sources.
    pub rows: Vec<u32>,
}

impl RelBlock {
    /// Arranges a layer of a batch from a graph with the types of `schema`.
    ///
    /// # Errors
    /// If the layer's edge types or rows are not those of `schema` and `segments`.
    pub fn new(fused: &FusedBlock, segments: &[Segment], schema: &Arc<Schema>) -> Result<Self> {
        let block = fused.block.clone();
        let sources = clip(segments, block.num_src());
        let covered = sources.last().map_or(0, |span| span.rows.end);
        let known = |t: &u16| usize::from(*t) < schema.edge_types().len();
        if covered != block.num_src() || !fused.edge_types.iter().all(known) {
            return Err(Error::usage("the block belongs to a graph with other node or edge types"));
        }
        let runs = runs(&block, &fused.edge_types);
        if runs.len() != fused.group_degrees.len() {
            return Err(Error::usage(
                "invalid block: expected edges in ascending order of their types",
            ));
        }
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|&i| runs[i].relation);
        let mut groups = (vec![0u32], Vec::with_capacity(block.num_edges()));
        let mut position = Vec::with_capacity(block.num_edges());
        let mut number = vec![0u32; runs.len()];
        for (group, &run) in order.iter().enumerate() {
            let edges = runs[run].edges.clone();
            groups.1.extend(&block.indices()[edges.start as usize..edges.end as usize]);
            position.extend(edges);
            groups.0.push(groups.1.len() as u32);
            number[run] = group as u32;
        }
        let mut offsets = vec![0u32; block.num_dst() + 1];
        runs.iter().for_each(|run| offsets[run.destination as usize + 1] += 1);
        for d in 0..block.num_dst() {
            offsets[d + 1] += offsets[d];
        }
        let destinations = EdgeLists::new(runs.len(), offsets, number);
        let relation: Vec<u32> = order.iter().map(|&run| runs[run].relation).collect();
        let groups = EdgeLists::new(block.num_src(), groups.0, groups.1);
        let mut place = vec![0u32; position.len()];
        position.iter().enumerate().for_each(|(i, &e): (usize, &u32)| place[e as usize] = i as u32);
        let ends = order.iter().map(|&run| runs[run].destination).collect();
        let ends = EdgeLists::new(block.num_dst(), (0..=runs.len() as u32).collect(), ends);
        let weights = block.weights().map(|w| normalised(w, &position, &groups));
        Ok(Self {
            own: clip(segments, block.num_dst()),
            sources,
            groups,
            destinations,
            spans: spans(&relation),
            relation,
            degrees: order.iter().map(|&run| fused.group_degrees[run]).collect(),
            ends,
            position,
            place,
            weights,
            schema: schema.clone(),
            block,
            homogeneous: OnceLock::new(),
            mixing: OnceLock::new(),
        })
    }

    /// All layers of a batch.
    ///
    /// # Errors
    /// As [`RelBlock::new`].
    pub fn all(batch: &FusedBatch, schema: &Arc<Schema>) -> Result<Vec<Self>> {
        batch.blocks.iter().map(|block| Self::new(block, &batch.segments, schema)).collect()
    }

    /// Builds the transposes for backward passes, so that the compute stage finds them ready.
    pub fn prepare(&self) {
        self.groups.transpose();
        self.destinations.transpose();
    }

    /// All edges, regardless of type.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of destinations of all types.
    pub fn num_dst(&self) -> usize {
        self.block.num_dst()
    }

    /// Number of sources of all types, destinations included.
    pub fn num_src(&self) -> usize {
        self.block.num_src()
    }

    /// The sources' rows by node type; the weight of a span is the index of the type.
    pub fn sources(&self) -> &[Span] {
        &self.sources
    }

    /// The destinations' rows by node type.
    pub fn own(&self) -> &[Span] {
        &self.own
    }

    /// Groups, as lists of rows of sources.
    pub fn groups(&self) -> &EdgeLists {
        &self.groups
    }

    /// The groups of each destination, by edge type.
    pub fn destinations(&self) -> &EdgeLists {
        &self.destinations
    }

    /// The groups by edge type; the weight of a span is the index of the edge type.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Edge type of each group.
    pub fn relation(&self) -> &[u32] {
        &self.relation
    }

    /// Number of edges that each group has in the whole graph.
    pub(crate) fn degrees(&self) -> &[u32] {
        &self.degrees
    }

    /// The destination of each group, as lists of one.
    pub fn ends(&self) -> &EdgeLists {
        &self.ends
    }

    /// Position among those of [`RelBlock::block`] of each edge in the order of groups.
    pub fn position(&self) -> &[u32] {
        &self.position
    }

    /// Place in the order of groups of each edge of [`RelBlock::block`].
    pub fn place(&self) -> &[u32] {
        &self.place
    }

    /// Edge type of each edge in the order of groups.
    pub fn edge_relation(&self) -> Vec<u32> {
        let of = |(ends, &relation): (&[u32], &u32)| {
            std::iter::repeat_n(relation, (ends[1] - ends[0]) as usize)
        };
        self.groups.indptr().windows(2).zip(&self.relation).flat_map(of).collect()
    }

    /// Edge weights in the order of groups, normalized over each group; none if edges have no
    /// weights.
    pub fn weights(&self) -> Option<&Arc<[f32]>> {
        self.weights.as_ref()
    }

    /// The edges of each edge type that ends in a node type with destinations, as a homogeneous
    /// block. Built on first use and cached.
    pub fn homogeneous(&self) -> &[Homogeneous] {
        self.homogeneous.get_or_init(|| {
            let rows = self.rows_by_type();
            let numbers = 0..self.schema.edge_types().len();
            let made = numbers.map(|relation| self.of_type(relation, &rows));
            made.filter(|made| made.block.num_dst() > 0).collect()
        })
    }

    /// The edges with their mixing parts. Built on first use and cached.
    pub(crate) fn mixing(&self) -> &Mixing {
        self.mixing.get_or_init(|| {
            let types = (&self.relation[..], self.schema.edge_types().len() as u32);
            Mixing::new(&self.groups, &self.destinations, types, self.weights.as_deref())
        })
    }

    /// The destinations' rows of each node type.
    pub fn rows_by_type(&self) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.schema.node_types().len()];
        for span in &self.own {
            rows[span.weight].extend(span.rows.start as u32..span.rows.end as u32);
        }
        rows
    }

    fn of_type(&self, relation: usize, destinations: &[Vec<u32>]) -> Homogeneous {
        let mut rows = destinations[self.schema.ends(relation).1].clone();
        let num_dst = rows.len();
        let mut place = vec![u32::MAX; self.num_src()];
        rows.iter().enumerate().for_each(|(i, &row)| place[row as usize] = i as u32);
        let span = self.spans.iter().find(|span| span.weight == relation);
        let mut lists = vec![None; num_dst];
        for group in span.map_or(0..0, |span| span.rows.clone()) {
            lists[place[self.ends.indices()[group] as usize] as usize] = Some(group);
        }
        let own = self.block.weights();
        let (mut indptr, mut indices) = (vec![0u32], Vec::new());
        let (mut weights, mut degrees) = (own.map(|_| Vec::new()), Vec::with_capacity(num_dst));
        for group in lists {
            degrees.push(group.map_or(0, |group| self.degrees[group]));
            for &source in group.map_or(&[][..], |group| self.groups.sources(group)) {
                let at = &mut place[source as usize];
                if *at == u32::MAX {
                    *at = rows.len() as u32;
                    rows.push(source);
                }
                indices.push(*at);
            }
            if let (Some(out), Some(own), Some(group)) = (&mut weights, own, group) {
                let edges = self.groups.indptr()[group]..self.groups.indptr()[group + 1];
                out.extend(edges.map(|e| own[self.position[e as usize] as usize]));
            }
            indptr.push(indices.len() as u32);
        }
        degrees.resize(rows.len(), 0);
        let ids = rows.iter().map(|&row| self.block.ids()[row as usize]).collect();
        let nodes = Arc::new(NodeInfo { ids, degrees });
        let block = Block::new(rows.len(), indptr, indices, weights, nodes);
        Homogeneous { relation, block, rows }
    }
}

/// Successive edges of one destination and type.
struct Run {
    destination: u32,
    relation: u32,
    edges: Range<u32>,
}

fn runs(block: &Block, types: &[u16]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for d in 0..block.num_dst() {
        let first = runs.len();
        for e in block.indptr()[d]..block.indptr()[d + 1] {
            let relation = u32::from(types[e as usize]);
            match runs[first..].last_mut() {
                Some(run) if run.relation == relation => run.edges.end = e + 1,
                _ => runs.push(Run { destination: d as u32, relation, edges: e..e + 1 }),
            }
        }
    }
    runs
}

/// The segments of the first `rows` rows.
fn clip(segments: &[Segment], rows: usize) -> Vec<Span> {
    let mut start = 0;
    let mut spans = Vec::new();
    for segment in segments {
        let end = (start + segment.nodes.len()).min(rows);
        if start < end {
            spans.push(Span { rows: start..end, weight: segment.node_type });
        }
        start = end;
    }
    spans
}

/// Successive equal values.
fn spans(values: &[u32]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        match spans.last_mut() {
            Some(span) if span.weight == value as usize => span.rows.end = i + 1,
            _ => spans.push(Span { rows: i..i + 1, weight: value as usize }),
        }
    }
    spans
}

/// Weights in the order of groups, normalized over each.
fn normalised(weights: &[f32], position: &[u32], groups: &EdgeLists) -> Arc<[f32]> {
    let mut out: Vec<f32> = position.iter().map(|&e| weights[e as usize]).collect();
    for ends in groups.indptr().windows(2) {
        let group = &mut out[ends[0] as usize..ends[1] as usize];
        let total: f32 = group.iter().sum();
        if total != 0.0 {
            group.iter_mut().for_each(|w| *w /= total);
        }
    }
    out.into()
}
