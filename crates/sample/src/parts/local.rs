//! A local part with memory-mapped files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Context, Error, Result};
use gnarl_partition::{PartLayout, PartitionedDataset};

use super::hop::{AsOf, HopReply, HopRequest, Rule};
use super::lists::{Lists, Owned, Shared};
use super::service::{Answer, NeighborService};
use super::spare::with_scratch;
use crate::bottom_k::{Numbered, Numbers, Smallest};
use crate::edge_features::mapped;
use crate::exact::Exact;
use crate::labor::Labor;
use crate::neighbors::{Choose, Draw, sample_from};
use crate::scratch::Hop;
use crate::share::Share;
use crate::temporal::{ByTime, TemporalDraw, TimedHop, TimedLists};
use crate::uniform::Uniform;
use crate::view::View;
use crate::weighted::Weighted;
use crate::weights::Weights;
use crate::{SampleGraph, Scratch};

/// Samples from a part's mapped files, over one edge type.
#[derive(Clone)]
pub struct LocalPart(Arc<Inner>);

struct Inner {
    /// Name in error messages.
    name: String,
    /// Number of the part.
    number: u64,
    lists: Box<dyn Lists>,
    /// The lists in the order of time, made for the first request as of times.
    timed: Mutex<Option<Arc<Timed>>>,
    load: LoadCounters,
}

/// Load counters of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests served.
    pub requests: u64,
    /// Nodes requested.
    pub nodes: u64,
    /// Edges of their lists in the part.
    pub edges_listed: u64,
    /// Edges sent.
    pub edges_sent: u64,
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            requests: a.requests + b.requests,
            nodes: a.nodes + b.nodes,
            edges_listed: a.edges_listed + b.edges_listed,
            edges_sent: a.edges_sent + b.edges_sent,
        })
    }
}

/// Lists with times, and their order; none if neither edges nor sources have times.
struct Timed {
    lists: Box<dyn Lists>,
    order: Option<ByTime>,
}

#[derive(Default)]
struct LoadCounters([AtomicU64; 4]);

impl LoadCounters {
    fn add(&self, more: [u64; 4]) {
        for (counter, more) in self.0.iter().zip(more) {
            counter.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl LocalPart {
    /// Opens part `part` of a partitioned homogeneous graph.
    ///
    /// # Errors
    /// If it is damaged, or has several types of nodes or edges.
    pub fn open(parts: &PartitionedDataset, part: usize) -> Result<Self> {
        let open = || match parts.manifest().layout {
            PartLayout::EdgeCut => owned(parts, part),
            PartLayout::VertexCut => shared(parts, part),
            PartLayout::Storage => Err(parts.without_lists()),
        };
        let lists = open().while_doing(|| format!("opening part {part} to sample from"))?;
        Ok(Self::of(format!("part {part}"), part, lists))
    }

    /// A part with `lists`; errors say `name`.
    pub(crate) fn of(name: String, part: usize, lists: Box<dyn Lists>) -> Self {
        Self(Arc::new(Inner {
            name,
            number: part as u64,
            lists,
            timed: Mutex::default(),
            load: LoadCounters::default(),
        }))
    }

    /// The load so far.
    pub fn load(&self) -> Load {
        let [requests, nodes, edges_listed, edges_sent] =
            [0, 1, 2, 3].map(|i| self.0.load.0[i].load(Ordering::Relaxed));
        Load { requests, nodes, edges_listed, edges_sent }
    }

    /// Values of the features of an edge; 0 without features.
    pub fn edge_feature_width(&self) -> usize {
        let mut width = 0;
        let read = self.0.lists.read(&[], &mut |view, _| {
            width = view.edge_features.map_or(0, |features| features.width());
            Ok(HopReply::default())
        });
        read.map_or(0, |_| width)
    }

    /// The number of nodes from the first on of which draws of at most `fanout` neighbors have no more than `edges`
    /// together.
    ///
    /// # Errors
    /// If a node is not the part's.
    pub fn nodes_within(&self, nodes: &[u64], fanout: u32, edges: u64) -> Result<usize> {
        if (nodes.len() as u64).saturating_mul(fanout.into()) <= edges {
            return Ok(nodes.len());
        }
        let locals = nodes.iter().map(|&id| self.0.lists.local(id));
        let locals: Vec<Option<u32>> = locals.collect::<Result<_>>()?;
        let held: Vec<u32> = locals.iter().flatten().copied().collect();
        let mut within = 0;
        self.0.lists.read(&held, &mut |view, held| {
            let mut held = held.iter();
            let mut left = edges;
            for local in &locals {
                let node = local.and_then(|_| held.next());
                let drawn = node.map_or(Ok(0), |&node| view.list(node).map(|list| list.1))?;
                let Some(rest) = left.checked_sub(drawn.min(fanout).into()) else { break };
                left = rest;
                within += 1;
            }
            Ok(HopReply::default())
        })?;
        Ok(within)
    }

    /// Draws a hop.
    ///
    /// # Errors
    /// If a node is not the part's, or the rule needs what the part lacks.
    pub fn draw(&self, request: &HopRequest) -> Result<HopReply> {
        let drawn = with_scratch(|scratch| match &request.as_of {
            None => self.0.draw(request, scratch),
            Some(as_of) => self.0.draw_as_of(request, as_of, scratch),
        });
        drawn.while_doing(|| format!("sampling from {}", self.0.name))
    }
}

impl NeighborService for LocalPart {
    fn ask(&self, request: HopRequest) -> Answer {
        let part = self.clone();
        Box::new(move || part.draw(&request))
    }
}

fn owned(parts: &PartitionedDataset, part: usize) -> Result<Box<dyn Lists>> {
    let dataset = parts.part(part)?;
    let (node, edge) = dataset.plain()?;
    let graph = SampleGraph::open(&dataset)?.with_edge_features_of(&dataset, &edge.triple)?;
    let ids = parts.id_map(&node.name)?;
    let of = (dataset.clone(), edge.triple.clone());
    Ok(Box::new(Owned { graph, sources: None, ids, part, of }))
}

fn shared(parts: &PartitionedDataset, part: usize) -> Result<Box<dyn Lists>> {
    let own = parts.part(part)?;
    let part = parts.topology(part)?;
    if part.manifest().edge_types.len() != 1 || part.manifest().node_types.len() != 1 {
        return Err(Error::invalid("the part has several types of nodes or edges"));
    }
    let weights = part.edge_column(0, "weight")?.map(|column| Weights::of(&column)).transpose()?;
    let edge_features = part.edge_column(0, "features")?.map(mapped).transpose()?;
    Ok(Box::new(Shared { part, weights, edge_features, own, times: None, source_times: None }))
}

impl Inner {
    fn draw(&self, request: &HopRequest, scratch: &mut Scratch) -> Result<HopReply> {
        let found = request.nodes.iter().map(|&id| self.lists.local(id));
        let locals: Vec<Option<u32>> = found.collect::<Result<_>>()?;
        let held: Vec<u32> = locals.iter().flatten().copied().collect();
        scratch.clear(self.lists.num_nodes());
        scratch.reserve(held.len());
        scratch.insert_all(&mut held.clone());
        if scratch.nodes().len() != held.len() {
            return Err(Error::invalid("invalid request: duplicate node"));
        }
        self.lists.read(&held, &mut |view, nodes| {
            let (hop, numbers) = self.hop(view, nodes, request, scratch)?;
            let listed = scratch.lists.iter().map(|&(_, degree)| u64::from(degree)).sum();
            let sent = hop.indices.len() as u64;
            self.load.add([1, request.nodes.len() as u64, listed, sent]);
            let covered = self.lists.cover_sources();
            Ok(reply((view, covered), (&locals, nodes), hop, numbers, scratch))
        })
    }

    /// The lists in the order of time. Takes eight bytes an edge, twelve if times span more than 32 bits; four more, and
    /// eight a destination, in a vertex-cut part of several types.
    fn timed(&self) -> Result<Arc<Timed>> {
        let mut timed = self.timed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*timed {
            return Ok(known.clone());
        }
        let lists = self.lists.with_times()?;
        let mut order = None;
        lists.read(&[], &mut |view, _| {
            if view.is_timed() {
                order = Some(ByTime::new(view)?);
            }
            Ok(HopReply::default())
        })?;
        Ok(timed.insert(Arc::new(Timed { lists, order })).clone())
    }

    /// Draws a hop as of times.
    fn draw_as_of(
        &self,
        request: &HopRequest,
        as_of: &AsOf,
        scratch: &mut Scratch,
    ) -> Result<HopReply> {
        let (asked, times) = (request.nodes.len(), as_of.times.len());
        if asked != times {
            let text = format!("invalid request: {times} times of {asked} nodes");
            return Err(Error::invalid(text));
        }
        let timed = self.timed()?;
        let locals = request.nodes.iter().map(|&id| timed.lists.local(id));
        let locals: Vec<Option<u32>> = locals.collect::<Result<_>>()?;
        let held: Vec<u32> = locals.iter().flatten().copied().collect();
        let at = locals.iter().zip(&as_of.times).filter(|(local, _)| local.is_some());
        let times: Vec<i64> = at.map(|(_, &time)| time).collect();
        let shares = self.lists.are_shares();
        let draw = TemporalDraw { rule: as_of.rule, exact: request.rule == Rule::Exact };
        if shares && !draw.exact {
            return Err(Error::usage(
                "edges are sampled by time from whole lists, of which the part has shares",
            )
            .hint("ask for the rule 'exact', or partition the graph by an edge cut"));
        }
        timed.lists.read(&held, &mut |view, nodes| {
            if request.edge_features && view.edge_features.is_none() {
                return Err(no_edge_features());
            }
            let edge_features = view.edge_features.filter(|_| request.edge_features);
            let view = View { edge_features, ..view };
            let lists = TimedLists { view, by_time: timed.order.as_ref(), draw };
            let Scratch { pairs, seen, .. } = &mut *scratch;
            pairs.clear();
            let drawn = (nodes, &*times);
            let found = lists.hop(drawn, request.fanout, request.key, pairs, seen)?;
            let listed = found.degrees.iter().map(|&degree| u64::from(degree)).sum();
            self.load.add([1, asked as u64, listed, found.hop.indices.len() as u64]);
            let TimedHop { hop, degrees, numbers, times } = found;
            let (asked_degrees, indptr) = with_absent(&locals, &degrees, &hop.indptr);
            Ok(HopReply {
                asked_degrees,
                indptr,
                indices: hop.indices,
                nodes: pairs.nodes.iter().map(|&source| view.source_id(source)).collect(),
                degrees: None,
                weights: hop.weights,
                numbers: shares.then_some(numbers),
                times: shares.then_some(times),
                edge_features: hop.edge_features.map(|rows| rows.values),
            })
        })
    }

    fn hop(
        &self,
        view: View<'_>,
        nodes: &[u32],
        request: &HopRequest,
        scratch: &mut Scratch,
    ) -> Result<Drawn> {
        scratch.clear(view.num_sources);
        if request.edge_features && view.edge_features.is_none() {
            return Err(no_edge_features());
        }
        let edge_features = view.edge_features.filter(|_| request.edge_features);
        let asked = (View { edge_features, ..view }, nodes, request);
        match (self.lists.are_shares(), request.rule) {
            (true, Rule::Uniform) => {
                let mut chooser = Share::new(request.key, self.number);
                Ok((sample_from(view, nodes, request.fanout, &mut chooser, scratch)?, None))
            }
            (true, Rule::Labor) => numbered::<Labor, _>(asked, scratch),
            (true, Rule::Exact) => numbered::<Exact, _>(asked, scratch),
            (true, Rule::Weighted) => numbered::<Weighted, _>(asked, scratch),
            (false, Rule::Uniform) => plain::<Uniform>(asked, scratch),
            (false, Rule::Labor) => plain::<Labor>(asked, scratch),
            (false, Rule::Exact) => plain::<Exact>(asked, scratch),
            (false, Rule::Weighted) => plain::<Weighted>(asked, scratch),
        }
    }
}

/// Degrees and offsets of nodes of which some have `locals`: these have the given ones, others no edges.
fn with_absent(locals: &[Option<u32>], degrees: &[u32], indptr: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut all = (Vec::with_capacity(locals.len()), vec![0]);
    let mut held = degrees.iter().zip(&indptr[1..]);
    let mut end = 0;
    for local in locals {
        let found = local.and_then(|_| held.next());
        all.0.push(found.map_or(0, |(&degree, _)| degree));
        end = found.map_or(end, |(_, &end)| end);
        all.1.push(end);
    }
    all
}

fn no_edge_features() -> Error {
    Error::usage("edges have no features").hint("partition a dataset whose edges have them")
}

type Drawn = (Hop, Option<Vec<u32>>);
/// The lists, the nodes in them, and the request.
type Asked<'a> = (View<'a>, &'a [u32], &'a HopRequest);

fn plain<D: Draw>((view, nodes, request): Asked<'_>, scratch: &mut Scratch) -> Result<Drawn> {
    let mut chooser = D::chooser(view, request.key)?;
    Ok((sample_from(view, nodes, request.fanout, &mut chooser, scratch)?, None))
}

fn numbered<D, N>((view, nodes, request): Asked<'_>, scratch: &mut Scratch) -> Result<Drawn>
where
    N: Numbers,
    D: Draw<Chooser = Smallest<N>>,
    Numbered<N>: Choose,
{
    let mut chooser = Numbered::new(D::chooser(view, request.key)?);
    let hop = sample_from(view, nodes, request.fanout, &mut chooser, scratch)?;
    Ok((hop, Some(chooser.numbers)))
}

/// The reply for nodes of which some have `locals`: these have the hop's lists, and are `nodes` in the view. `covered`
/// if it also has the degrees of sources.
fn reply(
    (view, covered): (View<'_>, bool),
    (locals, nodes): (&[Option<u32>], &[u32]),
    hop: Hop,
    numbers: Option<Vec<u32>>,
    scratch: &Scratch,
) -> HopReply {
    let mut indptr = vec![0];
    let mut asked_degrees = Vec::with_capacity(locals.len());
    let mut held = hop.indptr[1..].iter().zip(nodes);
    for local in locals {
        match local.and_then(|_| held.next()) {
            Some((&end, &node)) => {
                indptr.push(end);
                asked_degrees.push(view.degree(node));
            }
            None => {
                indptr.push(indptr[indptr.len() - 1]);
                asked_degrees.push(0);
            }
        }
    }
    let sources = scratch.nodes();
    HopReply {
        asked_degrees,
        indptr,
        indices: hop.indices,
        nodes: sources.iter().map(|&source| view.source_id(source)).collect(),
        degrees: covered.then(|| sources.iter().map(|&source| view.degree(source)).collect()),
        weights: hop.weights,
        numbers,
        times: None,
        edge_features: hop.edge_features.map(|rows| rows.values),
    }
}
