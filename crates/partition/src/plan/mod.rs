//! Predicted cost and quality of partitioners, before any is run on the graph.
//!
//! Counts come from the dataset; the structure that clustering algorithms find is estimated from a
//! sample: each partitioner partitions it into as many parts, and its savings there, relative to a
//! random partition, are extrapolated to the whole.

mod batches;
mod counted;
mod counts;
mod model;
mod probe;
mod sample;

use gnarl_common::error::Result;
use gnarl_graph::Dataset;
use serde::Serialize;

pub use batches::{Batches, Fanouts, Within};
pub use counts::{Counts, Degrees};
use sample::{Sample, Trial};

use crate::edge_cut::partitioner::{PartitionOptions, VertexPartitioner};
use crate::edge_cut::registry::by_name;

/// Random accesses that a partitioner makes for an edge in a pass: both endpoints.
const ACCESSES_PER_EDGE: f64 = 2.0;
/// Bytes of the program itself and the buffers of files.
const PROGRAM: u64 = 18 << 20;

/// The predictions to make.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Names of partitioners.
    pub algorithms: Vec<String>,
    /// Numbers of parts.
    pub parts: Vec<usize>,
    /// Neighbors drawn of a node at each hop in training.
    pub fanouts: Vec<u32>,
    /// Seeds of a training step over all ranks; 0 takes all training nodes at once.
    pub batch: u64,
    /// Nodes of the sample.
    pub sample: u64,
    /// All other options of the partitioners; `parts` and `train` are not used.
    pub partition: PartitionOptions,
}

/// The predictions, and the counts they are based on.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Counts of the dataset.
    pub counts: Counts,
    /// Nodes of the sample.
    pub sample_nodes: u64,
    /// By number of parts, then algorithm.
    pub predictions: Vec<Prediction>,
}

/// The prediction for one partitioner.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// The partitioner.
    pub algorithm: String,
    /// Number of parts.
    pub parts: usize,
    /// Nodes stored over nodes, with full neighbor lists (1 hop).
    pub replication_factor: f64,
    /// Share of edges between parts.
    pub edge_cut: f64,
    /// Seconds of partitioning, without writing the parts.
    pub seconds: f64,
    /// Peak memory of the process in bytes; `None` if the partitioner does not state its memory.
    pub memory_bytes: Option<u64>,
    /// True if that is within the memory limit.
    pub fits: bool,
    /// Bytes of features fetched from other parts in a training epoch.
    pub epoch_bytes: f64,
}

/// Predicts replication, edge cut, time, memory and the bytes moved in a training epoch.
///
/// * Replication and cut: those of a random partition, exact in expectation from the degrees, times
///   what the partitioner makes of a sample of the graph against a random partition of that sample.
///   Where the sample is the whole graph the prediction is the result.
/// * Seconds: those of the sample for each edge (each node, where no edges are read), plus what
///   random accesses to the larger tables of the whole graph cost more on this machine: two an edge
///   in each pass.
/// * Memory: what the partitioner states, or what deciding on copies takes after it, if more.
///
/// # Errors
/// For unknown partitioners, impossible numbers of parts, or ids beyond 32 bits.
pub fn plan(dataset: &Dataset, options: &PlanOptions) -> Result<Plan> {
    let counts = Counts::of(dataset)?;
    let sample = Sample::draw(dataset, options.sample, options.partition.seed)?;
    let mut predictions = Vec::new();
    for &parts in &options.parts {
        let told = PartitionOptions { parts, train: Vec::new(), ..options.partition.clone() };
        told.check(counts.nodes)?;
        for name in &options.algorithms {
            let algorithm = by_name(name)?;
            predictions.push(predict(&counts, &sample, &*algorithm, &told, options)?);
        }
    }
    Ok(Plan { counts, sample_nodes: sample.num_nodes(), predictions })
}

fn predict(
    counts: &Counts,
    sample: &Sample,
    algorithm: &dyn VertexPartitioner,
    told: &PartitionOptions,
    options: &PlanOptions,
) -> Result<Prediction> {
    let nodes = counts.nodes;
    let edges = counts.edges;
    let parts = told.parts;
    let trial = sample.try_out(algorithm, told)?;
    let random = model::random_replication(&counts.out_degrees, nodes, parts);
    let edge_cut = (trial.cut * model::random_cut(parts)).min(1.0);
    let fanouts = Fanouts { each: &options.fanouts, batch: options.batch };
    let stated = algorithm.memory(nodes, edges, parts);
    // The assignment, ranks and a bit for each node and part.
    let tail = 6 * nodes + nodes.div_ceil(8) * (parts as u64 + 1);
    Ok(Prediction {
        algorithm: algorithm.name().into(),
        parts,
        replication_factor: (1.0 + trial.copies * (random - 1.0)).min(parts as f64),
        edge_cut,
        seconds: seconds(counts, sample, algorithm, &trial, parts),
        memory_bytes: stated.map(|bytes| bytes.max(tail) + PROGRAM),
        fits: stated.is_none_or(|bytes| bytes <= told.memory),
        epoch_bytes: counts.row_bytes * model::epoch_rows(counts, parts, edge_cut, fanouts),
    })
}

/// See [`plan`].
fn seconds(
    counts: &Counts,
    sample: &Sample,
    algorithm: &dyn VertexPartitioner,
    trial: &Trial,
    parts: usize,
) -> f64 {
    let (nodes, edges) = (counts.nodes, counts.edges);
    let times = |whole: u64, sampled: u64| whole as f64 / sampled.max(1) as f64;
    if trial.passes == 0.0 {
        return trial.seconds * times(nodes, sample.num_nodes());
    }
    let more = times(edges, sample.num_edges());
    if sample.num_nodes() == nodes {
        return trial.seconds;
    }
    let memory = |nodes, edges| algorithm.memory(nodes, edges, parts).unwrap_or(8 * nodes);
    let access = probe::random_access(memory(nodes, edges));
    let sampled = probe::random_access(memory(sample.num_nodes(), sample.num_edges()));
    let dearer = ACCESSES_PER_EDGE * trial.passes * (access - sampled).max(0.0);
    trial.seconds * more + dearer * edges as f64
}
