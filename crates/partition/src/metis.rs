//! `metis`: multilevel k-way partitioning in memory (Karypis and Kumar), as DistDGLv2 §5.3 uses
//! it: the training nodes are a second constraint to balance.

use std::sync::{Mutex, PoisonError};

use gnarl_graph::error::{Error, Result};
use gnarl_graph::{EdgeStream, Kind, for_each_edge};
use metis::option::Seed;
use metis::{Graph, Idx};

use crate::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::range::Range;

/// METIS draws from the C library's `rand`, which all threads share: two runs at once would mix
/// their draws and both lose their seed.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The METIS library, on the undirected simple graph under the edges: both directions, no self
/// loops, no duplicates.
///
/// Memory: about 48 bytes an edge and 40 a node, METIS's coarser graphs included; it is refused
/// beyond the budget rather than tried. One run at a time in a process; others wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metis;

impl VertexPartitioner for Metis {
    fn name(&self) -> &'static str {
        "metis"
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let needed = 48 * edges.num_edges() + 40 * nodes;
        options.check_memory("metis", needed, "raise --memory or use spring")?;
        let graph = Adjacency::read(edges)?;
        if options.parts == 1 || graph.neighbours.is_empty() {
            return Range.partition(edges, options);
        }
        let of = graph.cut(options)?;
        Ok(Assignment { parts: options.parts, of })
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        Some(48 * edges + 40 * nodes)
    }
}

/// The undirected simple graph in METIS's form.
struct Adjacency {
    offsets: Vec<Idx>,
    neighbours: Vec<Idx>,
}

impl Adjacency {
    fn read(edges: &mut dyn EdgeStream) -> Result<Self> {
        let nodes = edges.num_nodes() as usize;
        too_large(nodes as u64)?;
        let mut start = vec![0u64; nodes + 1];
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                start[u as usize + 1] += 1;
                start[v as usize + 1] += 1;
            }
        })?;
        for v in 0..nodes {
            start[v + 1] += start[v];
        }
        let mut next = start[..nodes].to_vec();
        let mut neighbours = vec![0 as Idx; start[nodes] as usize];
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                for (from, to) in [(u, v), (v, u)] {
                    neighbours[next[from as usize] as usize] = to as Idx;
                    next[from as usize] += 1;
                }
            }
        })?;
        Self::simple(&start, neighbours)
    }

    /// Drops duplicates, in place.
    fn simple(start: &[u64], mut neighbours: Vec<Idx>) -> Result<Self> {
        let mut offsets = Vec::with_capacity(start.len());
        let mut kept = 0;
        offsets.push(0);
        for w in start.windows(2) {
            let (begin, end) = (w[0] as usize, w[1] as usize);
            neighbours[begin..end].sort_unstable();
            let mut last = None;
            for i in begin..end {
                if last != Some(neighbours[i]) {
                    last = Some(neighbours[i]);
                    neighbours[kept] = neighbours[i];
                    kept += 1;
                }
            }
            offsets.push(too_large(kept as u64)?);
        }
        neighbours.truncate(kept);
        Ok(Self { offsets, neighbours })
    }

    fn cut(&self, options: &PartitionOptions) -> Result<Vec<u16>> {
        let nodes = self.offsets.len() - 1;
        // METIS divides by the total of each constraint: fewer training nodes than parts would
        // have it chase a balance that does not exist.
        let constraints = if options.train.len() >= options.parts { 2 } else { 1 };
        let mut weights = vec![0 as Idx; nodes * constraints];
        weights.iter_mut().step_by(constraints).for_each(|w| *w = 1);
        if constraints == 2 {
            options.train.iter().for_each(|&v| weights[2 * v as usize + 1] = 1);
        }
        let balance = vec![options.balance.max(1.001) as metis::Real; constraints];
        let mut part = vec![0 as Idx; nodes];
        let (constraints, parts) = (constraints as Idx, options.parts as Idx);
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Graph::new(constraints, parts, &self.offsets, &self.neighbours)
            .map_err(|e| Error::invalid(format!("metis refused the graph: {e}")))?
            .set_vwgt(&weights)
            .set_ubvec(&balance)
            .set_option(Seed((options.seed & 0x7fff_ffff) as Idx))
            .part_kway(&mut part)
            .map_err(failed)?;
        Ok(part.into_iter().map(|p| p as u16).collect())
    }
}

fn failed(error: metis::Error) -> Error {
    let kind = match error {
        metis::Error::Memory => Kind::Limit,
        _ => Kind::InvalidInput,
    };
    Error::new(kind, format!("metis: {error}")).hint("spring needs no more than 26 bytes a node")
}

/// `count` as METIS's index type.
fn too_large(count: u64) -> Result<Idx> {
    Idx::try_from(count).map_err(|_| {
        let bits = Idx::BITS as usize;
        Error::new(Kind::Limit, format!("metis counts nodes and edge ends in {bits} bits; {count}"))
            .hint("use spring, which streams")
    })
}
