//! `grem`: greedy streaming in chunks with refinement (Armada §4, Algorithms 1 and 2).

mod clusters;
mod expected;
mod groups;
mod growing;
mod lists;
mod loads;
mod pipeline;
mod seed;
mod shuffle;
mod sides;

pub use expected::{Neighbors, expected_cut, expected_cut_refined};
use gnarl_common::Kind;
use gnarl_common::error::{Error, Result};
use gnarl_graph::EdgeStream;

use crate::balance::level::level;
use crate::edge_cut::partitioner::{Assignment, PartitionOptions, VertexPartitioner};
use crate::edge_cut::range::Range;
use groups::{Group, MOST_SIDES, levels};
use lists::{Lists, Sorter};
use loads::Loads;
use pipeline::pipeline;
use shuffle::Chunks;
use sides::Sides;

/// Bytes per node: 35 for 16 sides, its degree, and its initial side.
const NODE_BYTES: u64 = 40;
/// Bytes per edge of a chunk: 72 in lists of two chunks, their sorter, and some to spare.
const EDGE_BYTES: u64 = 100;
/// Bytes per edge in METIS.
const METIS_BYTES: u64 = 200;
/// Bytes per chunk while edges are distributed to them.
const CHUNK_BYTES: u64 = 1024;
/// Smallest chunk that replaces a larger one that does not fit; METIS gets as many edges.
const LEAST_CHUNK: u64 = 1 << 16;
/// Largest chunk: METIS counts endpoints in 32 bits.
const MOST_CHUNK: u64 = 1 << 29;

/// Reads the edges a chunk at a time, and puts each node in it on the side that has most of its
/// known neighbors, until that side is full. Known are its neighbors in this chunk and a running
/// average of those in earlier ones, so that nodes move as more of their neighbors are seen; with
/// [`PartitionOptions::freeze`] they do not. With 1 pass the graph is halved, and its halves, as in
/// the paper (an odd number of parts unevenly); with more, up to 16 parts are sides at once. A
/// thread sorts a chunk while another decides about the one before.
///
/// Chunks must be samples of the graph, and files are seldom in random order: one pass distributes
/// the edges to chunks at random, in a nameless file in the directory for temporary files
/// (`TMPDIR`; 8 bytes an edge, none below 2 million edges).
///
/// Parts have at most [`PartitionOptions::balance`] times the mean of the nodes, exactly: with 1
/// that is the paper's `P = ⌈|V|/p⌉`. An edge counts once per time it is in the stream.
///
/// With [`PartitionOptions::passes`] at 1 this is the paper's algorithm: METIS on the first chunk,
/// then averages that halve what was known. Sparse graphs and small chunks want more: a chunk of
/// a tenth of the edges then shows a node about one neighbor, METIS sees fragments, and the last
/// few chunks alone decide where a node stays. From 2 passes on
/// * METIS divides a graph of clusters of the whole stream instead of the first chunk, in three
///   passes more;
/// * the weight of what was known rises from pass to pass, and with the number `n` of chunks: it is
///   `1 − 3/(4i·n^¼)` in pass `i`, at least `1 − 1/(2i)`.
///
/// Nodes and edges are balanced, or what [`PartitionOptions::constraints`] names beside nodes; with
/// 1 pass nodes alone unless it names something. Edges count as in-degrees. A node goes where all it
/// takes has room, and if that is nowhere, where it exceeds least; what is then too much swaps of
/// nodes even out in the end, as far as they can.
///
/// Points of the edges cut in excess of METIS that balances nodes and edges within 5 % too, in 8
/// parts with 4 passes, chunks of 10 % and of 1 %: 0.0 and 0.0 on 200 000 nodes in communities, 0.2
/// and −0.2 on DBLP 2010, −0.3 and 0.2 on CNR 2000 (METIS's edges are 14 % off there, ours 5 %), 0.1
/// and 0.1 on a graph the size of ogbn-arxiv, 0.5 and 1.6 on an R-MAT graph of 19 million edges,
/// −4.5 and −4.9 on tolokers. On an R-MAT graph of 38 million edges 0.2 and 1.5 points, in a 14th
/// and a 13th of METIS's time (5.4 and 6.2 s, 78 s) and of its memory a 14th and a 23rd.
///
/// Balanced edges cost: nodes alone, `--constraints nodes`, cut 1.0 and 1.6 points less in the
/// communities and 10 less on CNR 2000, with twice the mean of the edges in one part; on the R-MAT
/// graph 18 and 36 less, with 52 and 71 % of all edges in one of 8 parts.
///
/// On FB15k-237, the paper's example, one pass cuts 14.8, 12.3 and 11.1 % at chunks of 1, 5 and
/// 10 %, METIS 10.6 %; decisions expected by [`expected_cut_refined`] cut 13.4, 11.2 and 10.7 %.
///
/// Nodes that see as many neighbors on several sides go to the emptiest one, as in the paper.
///
/// Memory: 40 bytes a node (of which 4 are its in-degree), a bit a node for each split that is
/// balanced, and 100 an edge of a chunk, or, if that is more, 200 an edge that METIS sees: all of
/// the first chunk with 1 pass, else a 32nd of all, but 0.5 to 4 million. Chunks are made smaller
/// than asked for if that is too much, and larger if there were too many to deal into.
#[derive(Debug, Clone, Copy, Default)]
pub struct Grem;

impl VertexPartitioner for Grem {
    fn name(&self) -> &'static str {
        "grem"
    }

    fn memory(&self, nodes: u64, edges: u64, _parts: usize) -> Option<u64> {
        let chunk = crate::read::chunk::Chunk::default().of(edges);
        let seed = clusters::links(edges, chunk).min(edges);
        Some(NODE_BYTES * nodes + (EDGE_BYTES * chunk).max(METIS_BYTES * seed))
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let nodes = edges.num_nodes();
        options.check(nodes)?;
        if nodes >= u32::MAX as u64 {
            return Err(Error::new(Kind::Limit, format!("grem: {nodes} nodes exceed 32 bits")));
        }
        let chunk = chunk_edges(nodes, edges.num_edges(), options)?;
        if options.parts == 1 || edges.num_edges() == 0 {
            return Range.partition(edges, options);
        }
        let count = edges.num_edges().div_ceil(chunk) as usize;
        let mut loads = Loads::new(edges, options, passes(options) == 1);
        let (seed, memory) = (options.seed, options.memory / 4);
        let mut chunks = Chunks::deal(edges, count, seed, memory, &mut loads.degree)?;
        let (caps, fanout) = (loads.caps(), fanout(options));
        let mut of = vec![0; nodes as usize];
        let totals = loads.totals(of.len());
        let mut groups = vec![Group::new(totals, options.parts as u32, fanout, &caps)];
        while groups.iter().any(|g| g.parts > 1) {
            let mut level = Sides::new(&loads, of, groups);
            divide(&mut level, &mut chunks, chunk, options)?;
            (of, groups) = level.split(fanout, &caps);
        }
        let degree = |v: usize| loads.degree.get(v).copied().unwrap_or(0);
        level(&mut of, options.parts, &loads.quotas, &degree);
        Ok(Assignment { parts: options.parts, of })
    }
}

/// Passes over the edges at each level.
fn passes(options: &PartitionOptions) -> u32 {
    if options.freeze { 1 } else { options.passes }
}

/// Sides of a group: two in the paper's algorithm, else the number with the fewest levels.
fn fanout(options: &PartitionOptions) -> u32 {
    if passes(options) == 1 {
        return 2;
    }
    let parts = options.parts as u32;
    let fewest = levels(parts, MOST_SIDES as u32);
    (2..).find(|&fanout| levels(parts, fanout) <= fewest).expect("the most sides do")
}

/// Algorithm 1 on all groups of a level.
fn divide(
    level: &mut Sides,
    chunks: &mut Chunks,
    chunk_edges: u64,
    options: &PartitionOptions,
) -> Result<()> {
    let passes = passes(options);
    let inside = level.inside();
    let mut sorter = Sorter::new(level.group.len(), chunks.largest());
    let mut edges = Vec::new();
    let mut read = |chunks: &mut Chunks, chunk: usize, lists: &mut Lists| {
        chunks.read(chunk, &mut edges)?;
        sorter.fill(lists, &edges, |u, v| inside.holds(u, v));
        Result::Ok(())
    };
    let mut lists = Lists::default();
    let sides = if passes > 1 {
        let fitting = left(level.group.len() as u64, options) / METIS_BYTES;
        let links = clusters::links(chunks.edges(), chunk_edges).min(fitting.max(LEAST_CHUNK));
        let sides = clusters::by_clusters(level, chunks, links, options.seed)?;
        read(chunks, 0, &mut lists)?;
        sides
    } else {
        read(chunks, 0, &mut lists)?;
        seed::by_chunk(level, &lists, options.seed)?
    };
    level.sow(&sides, &lists);
    drop((sides, lists));
    for pass in 0..passes {
        let keep = 1.0 - newest(chunks.len(), passes) / (pass + 1) as f32;
        let mut numbers = usize::from(pass == 0)..chunks.len();
        let fill = |lists: &mut Lists| match numbers.next() {
            Some(chunk) => read(chunks, chunk, lists).map(|()| true),
            None => Ok(false),
        };
        pipeline(fill, |lists| {
            level.refine(lists, (!options.freeze).then_some(keep));
            Ok(())
        })?;
    }
    level.place_rest();
    Ok(())
}

/// The weight of a chunk's neighbor counts in the first pass beside those of earlier chunks: 1/2 in
/// the paper's single pass. The smaller the chunks, the less each one shows, and the more of them
/// are to be averaged.
fn newest(chunks: usize, passes: u32) -> f32 {
    if passes == 1 { 0.5 } else { (0.75 / (chunks as f32).sqrt().sqrt()).min(0.5) }
}

/// Bytes left for edges.
fn left(nodes: u64, options: &PartitionOptions) -> u64 {
    options.memory.saturating_sub(NODE_BYTES * nodes)
}

/// Edges of a chunk: the requested number, or fewer if memory cannot hold that many, or more if
/// it cannot hold that many chunks.
fn chunk_edges(nodes: u64, edges: u64, options: &PartitionOptions) -> Result<u64> {
    let chunks = (options.memory / 4 / CHUNK_BYTES).max(1);
    let wanted = options.chunk.of(edges).max(edges.div_ceil(chunks));
    let wanted = wanted.min(edges.max(1)).min(MOST_CHUNK);
    let fitting =
        left(nodes, options) / if passes(options) == 1 { METIS_BYTES } else { EDGE_BYTES };
    let needed = NODE_BYTES * nodes + METIS_BYTES * edges.min(LEAST_CHUNK);
    options.check_memory("grem", needed, "raise --memory or use spring")?;
    if fitting < wanted {
        tracing::info!(wanted, fitting, "reducing chunks to the memory limit");
    }
    Ok(wanted.min(fitting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::rng::Key;
    use gnarl_graph::MemoryEdges;

    /// 40 communities of 50 nodes, 12 edges a node of which one in ten leads anywhere; sorted by
    /// node, as files are. The last 100 nodes are isolated.
    fn communities() -> MemoryEdges {
        let key = Key::new(3);
        let edge = |i: u64| {
            let u = i / 12;
            let near = u / 50 * 50 + key.below(2 * i, 50);
            (u, if key.unit(2 * i + 1) < 0.1 { key.with(1).below(i, 2000) } else { near })
        };
        MemoryEdges::new(2100, (0..24_000).map(edge)).unwrap()
    }

    /// The share of edges cut.
    fn cut(options: &PartitionOptions) -> f64 {
        let mut edges = communities();
        let of = Grem.partition(&mut edges.clone(), options).unwrap().of;
        let mut cut = 0;
        edges.for_each(&mut |u, v| cut += (of[u as usize] != of[v as usize]) as u32).unwrap();
        cut as f64 / 24_000.0
    }

    fn options(passes: u32, chunk: f64) -> PartitionOptions {
        let chunk = crate::Chunk::Fraction(chunk);
        PartitionOptions { parts: 4, passes, chunk, ..Default::default() }
    }

    #[test]
    fn refinement_beats_frozen_decisions_and_passes_beat_one() {
        let frozen = cut(&PartitionOptions { freeze: true, ..options(1, 0.05) });
        let refined = cut(&options(1, 0.05));
        let passes = cut(&options(4, 0.05));
        assert!(refined < 0.8 * frozen, "{refined}, frozen {frozen}");
        assert!(passes < refined && passes < 0.15, "{passes}, one pass {refined}");
    }

    #[test]
    fn a_chunk_of_all_edges_is_metis() {
        assert!(cut(&options(1, 1.0)) < 0.12);
    }

    #[test]
    fn parts_are_exact_whatever_their_number() {
        for parts in [3, 5, 6, 7, 12] {
            let options = PartitionOptions { parts, balance: 1.0, ..options(2, 0.1) };
            let sizes = Grem.partition(&mut communities(), &options).unwrap().sizes();
            let most = 2100u64.div_ceil(parts as u64);
            assert!(sizes.iter().all(|&s| s <= most), "{parts}: {sizes:?}");
        }
    }

    #[test]
    fn chunks_shrink_to_the_memory_but_not_to_nothing() {
        let options = |memory| PartitionOptions { memory, ..Default::default() };
        let (nodes, edges) = (1 << 20, 1 << 30);
        let fitting = chunk_edges(nodes, edges, &options(1 << 30)).unwrap();
        assert!((1 << 20..edges / 10).contains(&fitting), "{fitting}");
        assert!(fitting * EDGE_BYTES + nodes * NODE_BYTES <= 1 << 30);
        assert_eq!(chunk_edges(nodes, edges, &options(48 << 20)).unwrap_err().kind(), Kind::Limit);
        assert_eq!(chunk_edges(10, 7, &options(1 << 20)).unwrap(), 1);
        let single = PartitionOptions { chunk: crate::Chunk::Edges(1), ..options(1 << 30) };
        assert_eq!(chunk_edges(nodes, edges, &single).unwrap(), 1 << 12);
    }
}
