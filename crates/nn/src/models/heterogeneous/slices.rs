//! Message passing over feature slices of a whole heterogeneous graph.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::pairs::Pairs;
use crate::exchange::Exchange;
use crate::lists::EdgeLists;
use crate::{Lists, RelBlock, Span};

/// The inputs of heterogeneous message passing over feature slices.
///
/// The matrix of an edge type is applied either to the aggregate of a destination or to the
/// messages of a source. So there are rows for the *groups* of a [`RelBlock`], pairs of a
/// destination and an edge type, and for *senders*, pairs of a source and an edge type; both belong
/// to the rank that owns the node.
pub struct HeteroSlices<'a> {
    /// The whole graph.
    pub graph: &'a WholeRelations,
    /// Dropout ids of this rank's own nodes.
    pub ids: &'a [u64],
    /// The exchange of rows of nodes.
    pub nodes: &'a dyn Exchange,
    /// The exchange of rows of groups.
    pub groups: &'a dyn Exchange,
    /// The exchange of rows of senders.
    pub senders: &'a dyn Exchange,
}

/// A whole heterogeneous graph, and the node range of this rank.
#[derive(Debug)]
pub struct WholeRelations {
    block: RelBlock,
    rows: Range<usize>,
    /// The own rows of each node type, counted from the first own one.
    own: Vec<Span>,
    /// Senders of the nodes before each node.
    senders: Vec<u32>,
    heard: OnceLock<Heard>,
    sent: OnceLock<Sent>,
    heard_senders: OnceLock<EdgeLists>,
    pairs: OnceLock<Pairs>,
}

/// Groups in the order of nodes.
#[derive(Debug)]
pub(super) struct Heard {
    /// The sources of each group's edges.
    pub(super) groups: EdgeLists,
    /// Edge type of each group.
    pub(super) relation: Vec<u32>,
    /// Edge weights, normalized over each group; none if edges have no weights.
    pub(super) weights: Option<Arc<[f32]>>,
    /// The groups of each node.
    pub(super) destinations: EdgeLists,
    /// The own groups by edge type, counted from the first own one.
    pub(super) order: Vec<u32>,
    /// Places in that order, by edge type.
    pub(super) spans: Vec<Span>,
    /// Per own node the places of its groups.
    pub(super) own: EdgeLists,
    /// The own node, counted from the first, of each own group by edge type, as lists of one.
    pub(super) ends: EdgeLists,
}

/// Senders in the order of nodes.
#[derive(Debug)]
pub(super) struct Sent {
    /// The node of each sender, as lists of one.
    pub(super) nodes: EdgeLists,
    /// Edge type of each sender.
    pub(super) relation: Vec<u32>,
    /// The senders that each node receives messages from.
    pub(super) destinations: EdgeLists,
    /// Weights of those, normalized over each group.
    pub(super) weights: Arc<[f32]>,
    /// The own node, counted from the first, of each own sender by edge type, as lists of one.
    pub(super) own: EdgeLists,
    /// Places in that order, by edge type.
    pub(super) spans: Vec<Span>,
    /// The place of each own sender in that order.
    pub(super) places: Vec<u32>,
}

impl WholeRelations {
    /// The graph `block`, whose sources are its destinations, on the rank that owns the nodes
    /// `rows`.
    ///
    /// # Panics
    /// If there are other sources.
    pub fn new(block: RelBlock, rows: Range<usize>) -> Self {
        assert_eq!(block.num_src(), block.num_dst(), "every node is a source and a destination");
        let clip = |span: &Span| {
            let (start, end) = (span.rows.start.max(rows.start), span.rows.end.min(rows.end));
            let own = start.saturating_sub(rows.start)..end.saturating_sub(rows.start);
            (start < end).then_some(Span { rows: own, weight: span.weight })
        };
        let own = block.own().iter().filter_map(clip).collect();
        let senders = senders(&block);
        Self {
            block,
            rows,
            own,
            senders,
            heard: OnceLock::new(),
            sent: OnceLock::new(),
            heard_senders: OnceLock::new(),
            pairs: OnceLock::new(),
        }
    }

    /// The graph.
    pub fn block(&self) -> &RelBlock {
        &self.block
    }

    /// The own rows of each node type, counted from the first own one; the weight of a span is the
    /// index of the type.
    pub fn own(&self) -> &[Span] {
        &self.own
    }

    /// Groups of the nodes before each node, and of all.
    pub fn groups(&self) -> &[u32] {
        self.block.destinations().indptr()
    }

    /// Senders of the nodes before each node, and of all.
    pub fn senders(&self) -> &[u32] {
        &self.senders
    }

    /// Numbers of nodes, groups and senders.
    pub(super) fn counts(&self) -> [usize; 3] {
        let last = |offsets: &[u32]| offsets.last().map_or(0, |&end| end as usize);
        [self.block.num_dst(), last(self.groups()), last(self.senders())]
    }

    pub(super) fn heard(&self) -> &Heard {
        self.heard.get_or_init(|| Heard::new(&self.block, &self.rows))
    }

    pub(super) fn sent(&self) -> &Sent {
        self.sent.get_or_init(|| Sent::new(&self.block, &self.senders, &self.rows))
    }

    pub(super) fn pairs(&self) -> &Pairs {
        self.pairs.get_or_init(|| {
            let Heard { ends, spans, .. } = self.heard();
            Pairs::new(self.block.schema(), &self.own, ends, spans)
        })
    }

    /// The senders of each group's edges, groups in the order of nodes. The edges are in the order
    /// of [`RelBlock::block`], as in all lists of [`Heard`] and [`Sent`].
    pub(super) fn heard_senders(&self) -> &EdgeLists {
        self.heard_senders.get_or_init(|| {
            let (groups, senders) = (&self.heard().groups, &self.sent().destinations);
            let (offsets, indices) = (groups.indptr().to_vec(), senders.indices().to_vec());
            EdgeLists::new(senders.num_src(), offsets, indices)
        })
    }
}

impl Heard {
    /// Edge type of each edge.
    pub(super) fn edge_relation(&self) -> Vec<u32> {
        let groups = self.groups.indptr().windows(2).zip(&self.relation);
        let of = |(ends, &relation): (&[u32], &u32)| {
            std::iter::repeat_n(relation, (ends[1] - ends[0]) as usize)
        };
        groups.flat_map(of).collect()
    }

    fn new(block: &RelBlock, rows: &Range<usize>) -> Self {
        let (by_type, lists) = (block.groups(), block.destinations());
        let mut groups = (vec![0u32], Vec::with_capacity(by_type.num_edges()));
        let mut weights = block.weights().map(|_| Vec::with_capacity(by_type.num_edges()));
        for &group in lists.indices() {
            groups.1.extend(by_type.sources(group as usize));
            groups.0.push(groups.1.len() as u32);
            if let (Some(out), Some(own)) = (&mut weights, block.weights()) {
                out.extend(&own[edges(by_type, group)]);
            }
        }
        let of = |&group: &u32| block.relation()[group as usize];
        let relation: Vec<u32> = lists.indices().iter().map(of).collect();
        let all = (0..relation.len() as u32).collect();
        let first = lists.indptr()[rows.start];
        let own = &relation[first as usize..lists.indptr()[rows.end] as usize];
        let (order, spans, places) = by_relation(own);
        let offsets = lists.indptr()[rows.start..=rows.end].iter().map(|&o| o - first).collect();
        let ends = order.iter().map(|&group| {
            let group = lists.indices()[(first + group) as usize];
            block.ends().indices()[group as usize] - rows.start as u32
        });
        Self {
            ends: lists_of_one(rows.len(), ends.collect()),
            groups: EdgeLists::new(by_type.num_src(), groups.0, groups.1),
            weights: weights.map(Arc::from),
            destinations: EdgeLists::new(relation.len(), lists.indptr().to_vec(), all),
            own: EdgeLists::new(order.len(), offsets, places),
            relation,
            order,
            spans,
        }
    }
}

impl Sent {
    fn new(block: &RelBlock, senders: &[u32], rows: &Range<usize>) -> Self {
        let groups = block.groups();
        let total = senders[block.num_src()] as usize;
        let mut next = senders[..block.num_src()].to_vec();
        let (mut seen, mut now) = (vec![u32::MAX; block.num_src()], vec![0u32; block.num_src()]);
        let (mut nodes, mut relation) = (vec![0u32; total], vec![0u32; total]);
        // The sender of each edge in the order of groups, which is by edge type.
        let mut of_edges = Vec::with_capacity(groups.num_edges());
        for (group, &edge_type) in block.relation().iter().enumerate() {
            for &source in groups.sources(group) {
                let source = source as usize;
                if seen[source] != edge_type {
                    (seen[source], now[source]) = (edge_type, next[source]);
                    nodes[next[source] as usize] = source as u32;
                    relation[next[source] as usize] = edge_type;
                    next[source] += 1;
                }
                of_edges.push(now[source]);
            }
        }
        let (mut offsets, mut indices) = (vec![0u32], Vec::with_capacity(of_edges.len()));
        let mut weights = Vec::with_capacity(of_edges.len());
        for node in 0..block.num_dst() {
            for &group in block.destinations().sources(node) {
                let edges = edges(groups, group);
                indices.extend(&of_edges[edges.clone()]);
                match block.weights() {
                    Some(own) => weights.extend(&own[edges]),
                    None => {
                        weights.extend(std::iter::repeat_n(1.0 / edges.len() as f32, edges.len()))
                    }
                }
            }
            offsets.push(indices.len() as u32);
        }
        let own = senders[rows.start] as usize..senders[rows.end] as usize;
        let (order, spans, places) = by_relation(&relation[own.clone()]);
        let node = |&at: &u32| nodes[own.start + at as usize] - rows.start as u32;
        Self {
            own: lists_of_one(rows.len(), order.iter().map(node).collect()),
            nodes: lists_of_one(block.num_src(), nodes),
            destinations: EdgeLists::new(total, offsets, indices),
            weights: weights.into(),
            relation,
            spans,
            places,
        }
    }
}

/// One list per source in `indices`.
fn lists_of_one(num_src: usize, indices: Vec<u32>) -> EdgeLists {
    EdgeLists::new(num_src, (0..=indices.len() as u32).collect(), indices)
}

/// Positions of a list's edges.
fn edges(lists: &EdgeLists, list: u32) -> Range<usize> {
    lists.indptr()[list as usize] as usize..lists.indptr()[list as usize + 1] as usize
}

/// Senders of the nodes before each node of a graph, and of all.
fn senders(block: &RelBlock) -> Vec<u32> {
    let (mut seen, mut counts) = (vec![u32::MAX; block.num_src()], vec![0u32; block.num_src() + 1]);
    for (group, &edge_type) in block.relation().iter().enumerate() {
        for &source in block.groups().sources(group) {
            let source = source as usize;
            if seen[source] != edge_type {
                seen[source] = edge_type;
                counts[source + 1] += 1;
            }
        }
    }
    for node in 0..block.num_src() {
        counts[node + 1] += counts[node];
    }
    counts
}

/// Rows of the given edge types by edge type, the spans of each, and the place of each row.
fn by_relation(relation: &[u32]) -> (Vec<u32>, Vec<Span>, Vec<u32>) {
    let mut order: Vec<u32> = (0..relation.len() as u32).collect();
    order.sort_by_key(|&row| relation[row as usize]);
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &row)| places[row as usize] = place as u32);
    let mut spans: Vec<Span> = Vec::new();
    for (place, &row) in order.iter().enumerate() {
        let weight = relation[row as usize] as usize;
        match spans.last_mut() {
            Some(span) if span.weight == weight => span.rows.end = place + 1,
            _ => spans.push(Span { rows: place..place + 1, weight }),
        }
    }
    (order, spans, places)
}
