//! Two-level partitions: machines first, then the workers of each.

use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::{EdgeChunk, EdgeStream};

use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};

/// Partitions the graph into machines by any partitioner, then each machine's nodes into workers by
/// the same one (DistDGLv2 §5.3): edges within a machine are cheaper to cut than edges between two.
/// Parts of a machine are contiguous: worker `w` of machine `m` has part `m · workers + w`.
///
/// Each level gets the square root of the balance, so that their product keeps it. A machine with
/// fewer nodes than workers leaves workers without any. Memory beside the partitioner's: 6 bytes a
/// node. Passes over the edges: those of the partitioner for the whole and for each machine, and
/// one that counts.
#[derive(Clone, Copy)]
pub struct TwoLevel<'a> {
    /// The partitioner of both levels.
    pub algorithm: &'a dyn VertexPartitioner,
    /// Number of machines.
    pub machines: usize,
    /// Workers on each.
    pub workers: usize,
}

impl VertexPartitioner for TwoLevel<'_> {
    fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// `options.parts` is machines times workers.
    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        let Self { machines, workers, .. } = *self;
        if machines.checked_mul(workers) != Some(options.parts) {
            let parts = options.parts;
            return Err(Error::usage(format!(
                "expected {machines} × {workers} parts, found {parts}"
            )));
        }
        if nodes > u64::from(u32::MAX) {
            return Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32 bits")));
        }
        let level = PartitionOptions {
            parts: machines,
            balance: options.balance.sqrt(),
            memory: options.memory.saturating_sub(6 * nodes),
            ..options.clone()
        };
        let machine = self.algorithm.partition(edges, &level)?;
        let (ranks, sizes) = ranks(&machine);
        let inside = count_inside(edges, &machine)?;
        let mut of = vec![0u16; nodes as usize];
        for m in 0..machines {
            let mine = |v: u64| usize::from(machine.of[v as usize]) == m;
            let count = sizes[m];
            if count == 0 {
                continue;
            }
            let train = options.train.iter().filter(|&&v| mine(v));
            let level = PartitionOptions {
                parts: workers.min(count as usize),
                train: train.map(|&v| ranks[v as usize].into()).collect(),
                ..level.clone()
            };
            let buffer = EdgeChunk::default();
            let mut induced = Induced {
                edges,
                machine: &machine,
                ranks: &ranks,
                m,
                count,
                inside: inside[m],
                buffer,
            };
            let worker = self.algorithm.partition(&mut induced, &level)?;
            for v in (0..nodes).filter(|&v| mine(v)) {
                let local = worker.of[ranks[v as usize] as usize];
                of[v as usize] = (m * workers) as u16 + local;
            }
        }
        Ok(Assignment { parts: options.parts, of })
    }
}

/// The position of each node within its machine, and the sizes of the machines.
fn ranks(machine: &Assignment) -> (Vec<u32>, Vec<u64>) {
    let mut sizes = vec![0u64; machine.parts];
    let rank = |&m: &u16| {
        let size = &mut sizes[usize::from(m)];
        *size += 1;
        (*size - 1) as u32
    };
    let ranks = machine.of.iter().map(rank).collect();
    (ranks, sizes)
}

/// Edges within each machine.
fn count_inside(edges: &mut dyn EdgeStream, machine: &Assignment) -> Result<Vec<u64>> {
    let mut inside = vec![0; machine.parts];
    gnarl_graph::for_each_edge(edges, &mut |u, v| {
        let m = machine.of[u as usize];
        if m == machine.of[v as usize] {
            inside[usize::from(m)] += 1;
        }
    })?;
    Ok(inside)
}

/// The edges within one machine, in the ids of its nodes.
struct Induced<'a> {
    edges: &'a mut dyn EdgeStream,
    machine: &'a Assignment,
    ranks: &'a [u32],
    m: usize,
    count: u64,
    inside: u64,
    buffer: EdgeChunk,
}

impl EdgeStream for Induced<'_> {
    fn num_nodes(&self) -> u64 {
        self.count
    }

    fn num_edges(&self) -> u64 {
        self.inside
    }

    fn reset(&mut self) -> Result<()> {
        self.edges.reset()
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        chunk.src.clear();
        chunk.dst.clear();
        while chunk.src.is_empty() {
            if !self.edges.next_chunk(&mut self.buffer)? {
                return Ok(false);
            }
            for (u, v) in self.buffer.iter() {
                let mine = |v: u64| usize::from(self.machine.of[v as usize]) == self.m;
                if mine(u) && mine(v) {
                    chunk.src.push(self.ranks[u as usize].into());
                    chunk.dst.push(self.ranks[v as usize].into());
                }
            }
        }
        Ok(true)
    }
}
