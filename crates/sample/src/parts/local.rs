//! A local part with memory-mapped files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Buf, Context, Error, Result};
use gnarl_partition::{PartLayout, PartitionedDataset, VertexCutPart};
use hashbrown::HashMap;

use super::hop::{HopReply, HopRequest, Rule};
use super::service::{Answer, NeighborService};
use crate::bottom_k::{Numbered, Numbers, Smallest};
use crate::exact::Exact;
use crate::labor::Labor;
use crate::neighbors::{Choose, Draw, sample_hop};
use crate::scratch::Hop;
use crate::uniform::Uniform;
use crate::view::View;
use crate::weighted::Weighted;
use crate::weights::Weights;
use crate::{SampleGraph, Scratch};

/// Samples from a part's mapped files.
#[derive(Clone)]
pub struct LocalPart(Arc<Inner>);

struct Inner {
    /// Name in error messages.
    name: String,
    lists: Lists,
    /// Scratch memory of earlier requests, one per concurrent request.
    spare: Mutex<Vec<Scratch>>,
    load: LoadCounters,
}

/// The adjacency lists of a part.
enum Lists {
    /// Complete lists of its own nodes, whose new ids begin at `first`.
    Owned { graph: Box<SampleGraph>, new_ids: Buf<u64>, first: u64 },
    /// Its share of the lists of its nodes.
    Shared { part: Box<VertexCutPart>, weights: Option<Weights> },
    /// Replicas of the complete lists of some nodes, which come first in the graph.
    Copied { graph: Box<SampleGraph>, local: HashMap<u32, u32> },
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
        };
        let lists = open().while_doing(|| format!("opening part {part} to sample from"))?;
        Ok(Self::of(format!("part {part}"), lists))
    }

    /// Replicas of the lists of the nodes in `local`, by their local ids in `graph`.
    pub(super) fn copied(graph: SampleGraph, local: HashMap<u32, u32>) -> Self {
        Self::of("the lists copied".into(), Lists::Copied { graph: Box::new(graph), local })
    }

    fn of(name: String, lists: Lists) -> Self {
        let (spare, load) = (Mutex::default(), LoadCounters::default());
        Self(Arc::new(Inner { name, lists, spare, load }))
    }

    /// Returns whether the list of `node` is replicated.
    pub(super) fn has_copied(&self, node: u32) -> bool {
        matches!(&self.0.lists, Lists::Copied { local, .. } if local.contains_key(&node))
    }

    /// The load so far.
    pub fn load(&self) -> Load {
        let [requests, nodes, edges_listed, edges_sent] =
            [0, 1, 2, 3].map(|i| self.0.load.0[i].load(Ordering::Relaxed));
        Load { requests, nodes, edges_listed, edges_sent }
    }

    /// Draws a hop.
    ///
    /// # Errors
    /// If a node is not the part's, or the rule needs what the part lacks.
    pub fn draw(&self, request: &HopRequest) -> Result<HopReply> {
        let lock = || self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let reply = self.0.draw(request, &mut scratch);
        lock().push(scratch);
        reply.while_doing(|| format!("sampling from {}", self.0.name))
    }
}

impl NeighborService for LocalPart {
    fn ask(&self, request: HopRequest) -> Answer {
        let part = self.clone();
        Box::new(move || part.draw(&request))
    }
}

fn owned(parts: &PartitionedDataset, part: usize) -> Result<Lists> {
    let dataset = parts.part(part)?;
    let (node, _) = dataset.plain()?;
    let graph = Box::new(SampleGraph::open(&dataset)?);
    let first = parts.node_type(&node.name)?.ranges[part];
    Ok(Lists::Owned { graph, new_ids: parts.new_ids(&node.name)?, first })
}

fn shared(parts: &PartitionedDataset, part: usize) -> Result<Lists> {
    let part = parts.topology(part)?;
    if part.manifest().edge_types.len() != 1 || part.manifest().node_types.len() != 1 {
        return Err(Error::invalid("sampling from parts supports one edge type only"));
    }
    let weights = part.edge_column(0, "weight")?.map(|column| Weights::of(&column)).transpose()?;
    Ok(Lists::Shared { part: Box::new(part), weights })
}

impl Lists {
    fn view(&self) -> View<'_> {
        match self {
            Self::Owned { graph, .. } | Self::Copied { graph, .. } => graph.view(),
            Self::Shared { part, weights } => {
                let lists = part.in_lists();
                let ids = Some(lists.ids);
                View {
                    indptr: lists.indptr,
                    indices: lists.sources,
                    edge: None,
                    weight_rows: None,
                    ids,
                    num_sources: lists.indptr.len() - 1,
                    source_ids: ids,
                    degrees: Some(lists.degrees),
                    weights: weights.as_ref().map(Weights::as_slice),
                    times: None,
                    edge_features: None,
                }
            }
        }
    }

    /// Local id of a node; none if it has no edge in a vertex-cut part.
    fn local(&self, id: u64) -> Result<Option<u32>> {
        match self {
            Self::Shared { part, .. } => Ok(part.local(id)),
            Self::Copied { local, .. } => {
                let found = u32::try_from(id).ok().and_then(|id| local.get(&id));
                let missing = || Error::invalid(format!("the list of node {id} is not replicated"));
                found.copied().map(Some).ok_or_else(missing)
            }
            Self::Owned { graph, new_ids, first } => {
                let new = usize::try_from(id).ok().and_then(|id| new_ids.get(id));
                let local = new.and_then(|new| new.checked_sub(*first));
                let own = local.filter(|&local| local < graph.core() as u64);
                own.map(|local| Some(local as u32))
                    .ok_or_else(|| Error::invalid(format!("node {id} belongs to another part")))
            }
        }
    }
}

impl Inner {
    fn draw(&self, request: &HopRequest, scratch: &mut Scratch) -> Result<HopReply> {
        let view = self.lists.view();
        scratch.clear(view.num_nodes());
        scratch.reserve(request.nodes.len());
        let found = request.nodes.iter().map(|&id| self.lists.local(id));
        let locals: Vec<Option<u32>> = found.collect::<Result<_>>()?;
        let mut held: Vec<u32> = locals.iter().flatten().copied().collect();
        let count = held.len();
        scratch.insert_all(&mut held);
        if scratch.nodes().len() != count {
            return Err(Error::invalid("invalid request: duplicate node"));
        }
        let (hop, numbers) = match (&self.lists, request.rule) {
            (Lists::Shared { .. }, Rule::Uniform) => {
                return Err(Error::usage(
                    "rule 'uniform' requires whole lists, but a vertex cut shares them among parts",
                )
                .hint("sample by rule 'exact', which is as uniform"));
            }
            (Lists::Shared { .. }, Rule::Labor) => numbered::<Labor, _>(view, request, scratch)?,
            (Lists::Shared { .. }, Rule::Exact) => numbered::<Exact, _>(view, request, scratch)?,
            (Lists::Shared { .. }, Rule::Weighted) => {
                numbered::<Weighted, _>(view, request, scratch)?
            }
            (_, Rule::Uniform) => plain::<Uniform>(view, request, scratch)?,
            (_, Rule::Labor) => plain::<Labor>(view, request, scratch)?,
            (_, Rule::Exact) => plain::<Exact>(view, request, scratch)?,
            (_, Rule::Weighted) => plain::<Weighted>(view, request, scratch)?,
        };
        let listed = scratch.lists.iter().map(|&(_, degree)| u64::from(degree)).sum();
        let sent = hop.indices.len() as u64;
        self.load.add([1, request.nodes.len() as u64, listed, sent]);
        Ok(reply(view, &locals, hop, numbers, scratch))
    }
}

type Drawn = (Hop, Option<Vec<u32>>);

fn plain<D: Draw>(view: View<'_>, request: &HopRequest, scratch: &mut Scratch) -> Result<Drawn> {
    let mut chooser = D::chooser(view, request.key)?;
    Ok((sample_hop(view, request.fanout, &mut chooser, scratch)?, None))
}

fn numbered<D, N>(view: View<'_>, request: &HopRequest, scratch: &mut Scratch) -> Result<Drawn>
where
    N: Numbers,
    D: Draw<Chooser = Smallest<N>>,
    Numbered<N>: Choose,
{
    let mut chooser = Numbered::new(D::chooser(view, request.key)?);
    let hop = sample_hop(view, request.fanout, &mut chooser, scratch)?;
    Ok((hop, Some(chooser.numbers)))
}

/// The reply for nodes of which some have `locals`: these have the hop's lists.
fn reply(
    view: View<'_>,
    locals: &[Option<u32>],
    hop: Hop,
    numbers: Option<Vec<u32>>,
    scratch: &Scratch,
) -> HopReply {
    let mut indptr = vec![0];
    let mut ends = hop.indptr[1..].iter();
    for local in locals {
        let last = indptr[indptr.len() - 1];
        indptr.push(local.and_then(|_| ends.next().copied()).unwrap_or(last));
    }
    let info = scratch.node_info(view);
    HopReply {
        asked_degrees: locals.iter().map(|l| l.map_or(0, |l| view.degree(l))).collect(),
        indptr,
        indices: hop.indices,
        nodes: info.ids,
        degrees: info.degrees,
        weights: hop.weights,
        numbers,
    }
}
