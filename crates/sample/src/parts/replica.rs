//! Replicas of other parts' lists, sampled locally.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Context, Error, Kind, Result};
use gnarl_graph::Csc;
use gnarl_graph::blocks::{Block, EdgeRows};
use hashbrown::HashMap;

use super::hop::HopRequest;
use super::lists::Copied;
use super::local::{Load, LocalPart};
use super::service::{Answer, NeighborService};
use crate::{SampleGraph, Sampler, Scratch};

/// In-neighbor lists of hot nodes, replicated from their parts, so that sampling them needs no
/// request: most requests of a power-law graph are about few nodes (GLISP, section I; DistDGLv2,
/// section 5.2, for features). Draws equal those of the parts.
pub struct Replica {
    lists: LocalPart,
    /// Local ids of the replicated nodes.
    local: Arc<HashMap<u32, u32>>,
    nodes: usize,
    edges: usize,
    bytes: u64,
}

/// Bytes per node that is replicated or occurs in a replicated list: its ids, its degree, its list
/// offset, its entry in the map of replicated nodes, and in a batch.
const NODE: u64 = 48;
/// Most lists read at a time, and the size of the first read, when list lengths are not known.
const CHUNK: usize = 4096;
const FIRST: usize = 64;

/// Replicas so far.
#[derive(Default)]
struct Copies {
    /// Dataset ids of replicated nodes, in the order of their lists.
    nodes: Vec<u32>,
    /// End of each list.
    ends: Vec<u64>,
    /// Dataset ids of in-neighbors.
    sources: Vec<u32>,
    weights: Option<Vec<f32>>,
    edge_features: Option<EdgeRows>,
    /// Degrees in the whole graph of all nodes met.
    degrees: HashMap<u32, u32>,
}

impl Replica {
    /// Upper bound of the number of lists that fit in `bytes` of memory.
    pub fn most(bytes: u64) -> usize {
        usize::try_from(bytes / NODE).unwrap_or(usize::MAX)
    }

    /// Replicates the lists of distinct `nodes`, the hottest first, up to `bytes` of memory.
    /// `whole` samples complete lists, one hop of them. Each read is about as large as the room
    /// left; where lists do not fit, shorter ones of the same read still may.
    ///
    /// # Errors
    /// Those of `whole`.
    pub fn read(whole: &dyn Sampler, nodes: &[u32], bytes: u64) -> Result<Self> {
        let mut copies = Copies::default();
        let mut scratch = Scratch::new();
        let mut used = 0;
        let mut rest = nodes;
        let mut full = false;
        while !full && !rest.is_empty() {
            let size = match copies.nodes.len() as u64 {
                0 => FIRST,
                copied => ((bytes - used) / (used / copied)).clamp(1, CHUNK as u64) as usize,
            };
            let chunk = &rest[..size.min(rest.len())];
            rest = &rest[chunk.len()..];
            let batch = whole.sample(chunk, Key::new(0), &mut scratch);
            let batch = batch.while_doing(|| "replicating lists of other parts")?;
            let [block] = &batch.blocks[..] else {
                return Err(Error::usage("lists are replicated one hop at a time"));
            };
            for dst in 0..chunk.len() {
                let cost = copies.cost(&batch.input_nodes, block, dst);
                if used + cost <= bytes {
                    copies.add(&batch.input_nodes, block, dst);
                    used += cost;
                } else {
                    full = true;
                }
            }
        }
        copies.finish(used)
    }

    /// Returns whether the list of `node` is replicated.
    #[inline]
    pub fn has(&self, node: u32) -> bool {
        self.local.contains_key(&node)
    }

    /// Number of replicated lists.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of their edges.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Upper bound of their memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Load counters of the replicas.
    pub fn load(&self) -> Load {
        self.lists.load()
    }
}

impl NeighborService for Replica {
    fn ask(&self, request: HopRequest) -> Answer {
        self.lists.ask(request)
    }
}

impl Copies {
    /// Additional bytes for the list of destination `dst`.
    fn cost(&self, nodes: &[u32], block: &Block, dst: usize) -> u64 {
        let list = block.sources(dst);
        let values = usize::from(block.weights().is_some())
            + block.edge_features().map_or(0, |rows| rows.width);
        let edge = size_of::<u32>() + values * size_of::<f32>();
        let own = std::iter::once(&nodes[dst]);
        // A node that occurs twice in a list is counted twice: the estimate is an upper bound.
        let all = own.chain(list.iter().map(|&at| &nodes[at as usize]));
        let new = all.filter(|node| !self.degrees.contains_key(*node)).count();
        (list.len() * edge) as u64 + new as u64 * NODE
    }

    fn add(&mut self, nodes: &[u32], block: &Block, dst: usize) {
        let list = block.sources(dst);
        let degrees = block.degrees();
        self.degrees.insert(nodes[dst], degrees[dst]);
        for &at in list {
            self.sources.push(nodes[at as usize]);
            self.degrees.insert(nodes[at as usize], degrees[at as usize]);
        }
        if let Some(weights) = block.weights() {
            let range = block.indptr()[dst] as usize..block.indptr()[dst + 1] as usize;
            self.weights.get_or_insert_default().extend_from_slice(&weights[range]);
        }
        if let Some(EdgeRows { width, values }) = block.edge_features() {
            let ends =
                [block.indptr()[dst], block.indptr()[dst + 1]].map(|end| end as usize * width);
            let own = self.edge_features.get_or_insert_with(|| EdgeRows::with_capacity(0, *width));
            own.values.extend_from_slice(&values[ends[0]..ends[1]]);
        }
        self.nodes.push(nodes[dst]);
        self.ends.push(self.sources.len() as u64);
    }

    /// Numbers the replicated nodes first, then the others, and builds a graph of them.
    fn finish(self, bytes: u64) -> Result<Replica> {
        let Self { nodes: mut ids, ends, sources: mut indices, weights, edge_features, degrees } =
            self;
        let (copied, edges) = (ids.len(), indices.len());
        if u32::try_from(degrees.len()).is_err() {
            return Err(Error::new(
                Kind::Limit,
                "replicated lists of more than 4 294 967 295 nodes",
            ));
        }
        let mut local = HashMap::with_capacity(degrees.len());
        local.extend(ids.iter().zip(0..).map(|(&id, at)| (id, at)));
        for source in &mut indices {
            let next = ids.len() as u32;
            *source = *local.entry(*source).or_insert_with_key(|&id| {
                ids.push(id);
                next
            });
        }
        let last = edges as u64;
        let mut indptr = vec![0];
        indptr.extend(ends);
        indptr.resize(ids.len() + 1, last);
        let of_ids: Vec<u32> = ids.iter().map(|id| degrees[id]).collect();
        local.retain(|_, at| (*at as usize) < copied);
        local.shrink_to_fit();
        let csc = Csc { indptr: indptr.into(), indices: indices.into(), edge: None };
        let ids: Buf<u64> = ids.into_iter().map(u64::from).collect::<Vec<_>>().into();
        let graph = SampleGraph::with_part(csc, ids.into(), Some(of_ids.into()), copied)?;
        let graph = match weights {
            Some(weights) => graph.with_weights(weights.into())?,
            None => graph,
        };
        let graph = match edge_features {
            Some(rows) => graph.with_edge_features(Arc::new(rows))?,
            None => graph,
        };
        let local = Arc::new(local);
        let lists = Box::new(Copied { graph, local: local.clone() });
        let lists = LocalPart::of("the lists copied".into(), 0, lists);
        Ok(Replica { lists, local, nodes: copied, edges, bytes })
    }
}
