//! A vertex cut in memory, before it is written.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use gnarl_common::error::{Context, Error, Kind, Result, ResultExt};
use gnarl_graph::{Dataset, EdgeChunk};

use crate::auto::Parts;
use crate::config::{PartitionConfig, options};
use crate::edge_cut::partitioner::{Assignment, PartitionOptions};
use crate::read::bitmap::Bitmap;
use crate::report::{PartitionReport, VertexCutReport, cut_degrees};
use crate::vertex_cut::{EdgePartitioner, EdgeSink, PartSets, Replicas, owners};
use crate::write::halo::Halo;
use crate::write::layout::Layout;

/// The owners and holders of all nodes, and the edge counts of parts.
pub(crate) struct Cut {
    /// Owners; HALO nodes of a part are those it holds without owning them.
    pub(crate) layout: Layout,
    /// All nodes of each part: those of its edges and those it owns.
    pub(crate) held: Vec<Bitmap>,
    /// Edges by edge type and part.
    pub(crate) counts: Vec<Vec<u64>>,
}

/// Partitions the edges of `dataset`. The part of every edge goes to `spool`, if there is one, as
/// u16 in the order of the stream.
///
/// Memory beside the partitioner's: 2 bits for each node and part, and 6 bytes a node.
pub(crate) fn cut(
    dataset: &Dataset,
    algorithm: &dyn EdgePartitioner,
    config: &PartitionConfig,
    spool: Option<&Path>,
) -> Result<(Cut, PartitionReport)> {
    check(dataset, config)?;
    let options = options(dataset, config)?;
    let nodes = dataset.manifest().num_nodes();
    options.check(nodes)?;
    let held = 2 * nodes + PartSets::bytes(nodes, options.parts);
    options.check_memory(algorithm.name(), held, "raise --memory")?;
    let start = Instant::now();
    let mut sink = Sink::new(dataset, options.parts, spool)?;
    let memory = options.memory - held;
    let inner = PartitionOptions { memory, train: Vec::new(), ..options.clone() };
    let mut edges = dataset.edges()?;
    let doing = || format!("partitioning the edges beside {} MiB of replicas", held >> 20);
    algorithm.partition(&mut edges, &inner, &mut sink).while_doing(doing)?;
    let (replicas, counts) = sink.finish()?;
    let of = owners(replicas.sets(), &options);
    let seconds = start.elapsed().as_secs_f64();

    let quality = replicas.quality();
    let (held, copies) = holders(replicas.sets(), &of, options.parts)?;
    drop(replicas);
    let assignment = Assignment { parts: options.parts, of };
    let halo = Halo::of_copies(&mut edges, &assignment, copies)?;
    let layout = Layout::new(dataset.manifest(), assignment, halo);
    let mut report = PartitionReport::measure(algorithm.name(), &layout, &options.train);
    report.seconds = seconds;
    report.cut_degrees = cut_degrees(dataset, &layout)?;
    report.edge_balance = quality.edge_balance;
    let part_edges = (0..options.parts).map(|p| counts.iter().map(|of_type| of_type[p]).sum());
    report.vertex_cut = Some(VertexCutReport {
        replication_factor: quality.replication_factor,
        vertex_balance: quality.vertex_balance,
        edge_balance: quality.edge_balance,
        part_edges: part_edges.collect(),
        topology_bytes: vec![0; options.parts],
        bytes_per_edge: 0.0,
    });
    Ok((Cut { layout, held, counts }, report))
}

/// Most edge types of a graph whose edges are cut.
const MOST_TYPES: usize = 1 << 16;

/// Rejects options for edge cuts only, and more edge types than 16 bits can number.
fn check(dataset: &Dataset, config: &PartitionConfig) -> Result<()> {
    let types = dataset.manifest().edge_types.len();
    if types > MOST_TYPES {
        let message = format!("{types} edge types are more than {MOST_TYPES}");
        return Err(Error::new(Kind::Limit, message));
    }
    if matches!(config.parts, Parts::Levels { .. }) {
        return Err(Error::usage("a vertex cut does not support two levels of parts")
            .hint("give the number of all parts, or use --layout edge-cut"));
    }
    if config.hops != PartitionConfig::default().hops {
        return Err(Error::usage("a vertex cut does not support --hops: each edge is in one part")
            .hint("omit --hops, or use --layout edge-cut"));
    }
    Ok(())
}

/// For each part the nodes it holds, owned or not, and those it holds without owning them.
fn holders(sets: &PartSets, of: &[u16], parts: usize) -> Result<(Vec<Bitmap>, Vec<Bitmap>)> {
    let none = Bitmap::new(of.len() as u64);
    let (mut held, mut copies) = (vec![none.clone(); parts], vec![none; parts]);
    for (v, &owner) in (0..).zip(of) {
        held[owner as usize].insert(v);
        for part in sets.parts(v).filter(|&p| p != owner as usize) {
            held[part].insert(v);
            copies[part].insert(v);
        }
    }
    held.iter_mut().for_each(Bitmap::count_ranks);
    match held.iter().map(|h| h.rank(of.len() as u64)).max() {
        Some(most) if most > u32::MAX as u64 => Err(Error::new(
            Kind::Limit,
            format!("a part would hold {most} nodes; ids within a part are 32 bits wide"),
        )
        .hint("ask for more parts")),
        _ => Ok((held, copies)),
    }
}

/// Records the holders of nodes, counts edges, and writes their parts to the spool.
struct Sink {
    replicas: Replicas,
    /// Last row of each edge type in the stream, plus one.
    ends: Vec<u64>,
    counts: Vec<Vec<u64>>,
    row: u64,
    kind: usize,
    spool: Option<(PathBuf, BufWriter<File>)>,
}

impl Sink {
    fn new(dataset: &Dataset, parts: usize, spool: Option<&Path>) -> Result<Self> {
        let types = &dataset.manifest().edge_types;
        let ends = types.iter().scan(0, |end, t| {
            *end += t.count;
            Some(*end)
        });
        let create = |path: &Path| {
            let file = File::create(path).at(path)?;
            Ok((path.to_path_buf(), BufWriter::with_capacity(1 << 18, file)))
        };
        Ok(Self {
            replicas: Replicas::new(dataset.manifest().num_nodes(), parts),
            ends: ends.collect(),
            counts: vec![vec![0; parts]; types.len()],
            row: 0,
            kind: 0,
            spool: spool.map(create).transpose()?,
        })
    }

    fn finish(mut self) -> Result<(Replicas, Vec<Vec<u64>>)> {
        if let Some((path, file)) = &mut self.spool {
            file.flush().at(path)?;
        }
        if self.row < self.ends.last().copied().unwrap_or(0) {
            return Err(Error::invalid(format!("only {} of the edges were assigned", self.row)));
        }
        Ok((self.replicas, self.counts))
    }
}

impl EdgeSink for Sink {
    fn assign(&mut self, edges: &EdgeChunk, parts: &[u16]) -> Result<()> {
        for &part in parts {
            while self.ends.get(self.kind).is_some_and(|&end| self.row >= end) {
                self.kind += 1;
            }
            let counts = self.counts.get_mut(self.kind);
            let counts =
                counts.ok_or_else(|| Error::invalid("more edges were assigned than there are"))?;
            counts[part as usize] += 1;
            self.row += 1;
        }
        if let Some((path, file)) = &mut self.spool {
            let bytes: &[u8] = bytemuck::cast_slice(parts);
            file.write_all(bytes).at(path)?;
        }
        self.replicas.assign(edges, parts)
    }
}
