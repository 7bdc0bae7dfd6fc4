//! A sample of the graph on which partitioners are measured.

use std::collections::VecDeque;
use std::time::Instant;

use gnarl_common::error::Result;
use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Dataset, EdgeStream, MemoryEdges};

use super::counted::Counted;
use super::counts::Degrees;
use super::model::{random_cut, random_replication};
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::write::halo::Halo;

/// Maximum neighbors followed from a node: balls around hubs would look like stars otherwise.
const FOLLOWED: usize = 10;
/// Balls grown at once.
const BALLS: u64 = 8;

/// The subgraph induced by some nodes, in the order of their ids.
pub(super) struct Sample {
    edges: MemoryEdges,
    train: Vec<u64>,
    out_degrees: Degrees,
}

/// The measurements of a partitioner on a sample.
pub(super) struct Trial {
    /// Copies of nodes over those of a random partition.
    pub copies: f64,
    /// Edge cut over that of a random partition.
    pub cut: f64,
    /// Seconds of the run.
    pub seconds: f64,
    /// Number of passes over the edges.
    pub passes: f64,
}

/// In-neighbor lists of one edge type, with the graph-wide ids its node types start at.
struct Lists {
    csc: Csc,
    src: u64,
    dst: u64,
}

impl Sample {
    /// Balls around random nodes, of `size` nodes together at most; `size` nodes of the graph's
    /// own number are all of it.
    pub fn draw(dataset: &Dataset, size: u64, seed: u64) -> Result<Self> {
        let manifest = dataset.manifest();
        let offsets = manifest.node_offsets();
        let mut lists = Vec::new();
        for t in &manifest.edge_types {
            let (src, dst) = (offsets[&t.triple.src], offsets[&t.triple.dst]);
            lists.push(Lists { csc: dataset.csc(&t.triple)?, src, dst });
        }
        let nodes = manifest.num_nodes();
        let mut local = grow(&lists, nodes, size.min(nodes), seed);
        let mut count = 0;
        for id in local.iter_mut().filter(|id| **id != OUTSIDE) {
            *id = count;
            count += 1;
        }
        let mut train = Vec::new();
        for t in &manifest.node_types {
            let first = offsets[&t.name];
            for v in dataset.split(&t.name, "train")?.unwrap_or_default().iter() {
                train.push(local[(first + v) as usize]);
            }
        }
        train.retain(|&v| v != OUTSIDE);
        train.sort_unstable();
        let edges = induced(&lists, &local);
        let mut degrees = vec![0u64; count as usize];
        edges.iter().for_each(|e| degrees[e.0 as usize] += 1);
        let train = train.into_iter().map(u64::from).collect();
        let edges = MemoryEdges::new(count.into(), edges)?;
        Ok(Self { edges, train, out_degrees: degrees.into_iter().collect() })
    }

    pub fn num_nodes(&self) -> u64 {
        self.edges.num_nodes()
    }

    pub fn num_edges(&self) -> u64 {
        self.edges.num_edges()
    }

    /// Partitions the sample, which is small enough for any partitioner: its training nodes and no
    /// limit of memory replace those of `options`.
    pub fn try_out(
        &self,
        algorithm: &dyn VertexPartitioner,
        options: &PartitionOptions,
    ) -> Result<Trial> {
        let train = self.train.clone();
        let options = PartitionOptions { train, memory: 1 << 40, ..options.clone() };
        let (parts, nodes) = (options.parts, self.num_nodes());
        let run = || -> Result<(Assignment, f64, f64)> {
            let mut edges = Counted::new(self.edges.clone());
            let start = Instant::now();
            let assignment = algorithm.partition(&mut edges, &options)?;
            Ok((assignment, start.elapsed().as_secs_f64(), edges.passes()))
        };
        let (assignment, mut seconds, passes) = run()?;
        // The first run also warms up, which would distort short measurements.
        if seconds < 0.05 {
            seconds = seconds.min(run()?.1);
        }
        let mut edges = self.edges.clone();
        let halo = Halo::expand(&mut edges, &assignment, 1, options.seed)?;
        let copies: u64 = halo.nodes.iter().map(|held| held.rank(nodes)).sum();
        let inside: u64 = (0..parts).map(|p| halo.cut[p][p]).sum();
        let all = edges.num_edges().max(1) as f64;
        let ratio = |value: f64, random: f64| if random > 0.0 { value / random } else { 0.0 };
        let expected = random_replication(&self.out_degrees, nodes, parts) - 1.0;
        Ok(Trial {
            copies: ratio(copies as f64 / nodes as f64, expected),
            cut: ratio((edges.num_edges() - inside) as f64 / all, random_cut(parts)),
            seconds,
            passes,
        })
    }
}

/// Not in the sample.
const OUTSIDE: u32 = u32::MAX;

/// Marks the nodes of the sample by anything but [`OUTSIDE`].
fn grow(lists: &[Lists], nodes: u64, size: u64, seed: u64) -> Vec<u32> {
    let key = Key::new(seed).with(u64::from_le_bytes(*b"plan-cut"));
    let mut marks = vec![OUTSIDE; nodes as usize];
    if size == nodes {
        return vec![0; nodes as usize];
    }
    let mut queue = VecDeque::new();
    let mut taken = 0;
    let mut draws = 0;
    let mut take = |v: u64, queue: &mut VecDeque<u64>| {
        if taken < size && marks[v as usize] == OUTSIDE {
            marks[v as usize] = 0;
            queue.push_back(v);
            taken += 1;
        }
        taken < size
    };
    loop {
        if draws < BALLS || queue.is_empty() {
            draws += 1;
            if !take(key.below(draws, nodes), &mut queue) {
                return marks;
            }
            continue;
        }
        let Some(v) = queue.pop_front() else { continue };
        for list in lists {
            for &u in list.of(v).iter().step_by(list.of(v).len().div_ceil(FOLLOWED).max(1)) {
                if !take(list.src + u64::from(u), &mut queue) {
                    return marks;
                }
            }
        }
    }
}

impl Lists {
    fn of(&self, v: u64) -> &[u32] {
        let row = v.checked_sub(self.dst).filter(|&row| row < self.csc.num_dst() as u64);
        row.map_or(&[], |row| self.csc.sources(row as u32))
    }
}

/// The edges between nodes of the sample, in its ids.
fn induced(lists: &[Lists], local: &[u32]) -> Vec<(u64, u64)> {
    let mut edges = Vec::new();
    for list in lists {
        let ends = list.dst..list.dst + list.csc.num_dst() as u64;
        for v in ends.filter(|&v| local[v as usize] != OUTSIDE) {
            let sources = list.of(v).iter().map(|&u| local[(list.src + u64::from(u)) as usize]);
            let inside = sources.filter(|&u| u != OUTSIDE);
            edges.extend(inside.map(|u| (u64::from(u), u64::from(local[v as usize]))));
        }
    }
    edges
}
