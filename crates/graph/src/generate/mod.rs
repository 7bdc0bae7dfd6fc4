//! Generators: graphs of any size in bounded memory, so that every claim about scale can be tested
//! anywhere. Each edge and each row is a pure function of the seed and its index, so that files do
//! not depend on the number of threads.

mod attributes;
mod community;
mod heterogeneous;
mod permute;
mod rmat;
mod stream;

use std::path::Path;
use std::time::Instant;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Result};
use serde::Serialize;

pub use attributes::Attributes;
pub use community::{CommunityEdges, CommunityOptions};
pub use heterogeneous::{HeteroOptions, heterogeneous};
pub use rmat::{RmatEdges, RmatOptions};
pub use stream::{DrawnEdges, EdgeFunction};

use crate::dataset::Dataset;
use crate::edges::{EdgeChunk, EdgeStream};
use crate::manifest::{DEFAULT_NODE_TYPE, EdgeFacts, Triple};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// A generated dataset, and facts about it.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The dataset, opened.
    pub dataset: Dataset,
    /// Edges written before repeated ones were dropped.
    pub drawn: u64,
    /// Facts found while the topology was built.
    pub facts: EdgeFacts,
    /// Time per stage.
    pub seconds: Stages,
}

/// Seconds spent in each stage of a generator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stages {
    /// Drawing and writing edges.
    pub edges: f64,
    /// Drawing and writing features, labels and splits.
    pub attributes: f64,
    /// Building the topology.
    pub topology: f64,
}

/// Writes an R-MAT graph to `out`. Labels, if any, are random: nothing can be learned from them.
///
/// # Errors
/// If the options are invalid, `out` cannot be written, or memory does not suffice for the
/// degrees of the nodes.
pub fn rmat(options: &RmatOptions, out: &Path) -> Result<Generated> {
    let classes = u64::from(options.attributes.classes.max(1));
    let key = Key::new(options.seed).with(0x6c61_6265);
    let job = Job {
        generator: "rmat",
        options: serde_json::to_value(options).expect("plain numbers serialise"),
        seed: options.seed,
        attributes: &options.attributes,
        finish: FinishOptions {
            memory: options.memory,
            coalesce: options.coalesce,
            ..Default::default()
        },
    };
    let make = || write(job, RmatEdges::new(options)?, out, |_, v| key.below(v, classes) as u32);
    make().while_doing(|| "generating an R-MAT graph")
}

/// Writes a graph of planted communities to `out`.
///
/// # Errors
/// As [`rmat`].
pub fn community(options: &CommunityOptions, out: &Path) -> Result<Generated> {
    let classes = u64::from(options.attributes.classes.max(1));
    let job = Job {
        generator: "community",
        options: serde_json::to_value(options).expect("plain numbers serialise"),
        seed: options.seed,
        attributes: &options.attributes,
        finish: FinishOptions {
            memory: options.memory,
            coalesce: options.coalesce,
            ..Default::default()
        },
    };
    let class = |edges: &CommunityEdges, v| (edges.community(v) % classes) as u32;
    let make = || write(job, CommunityEdges::new(options)?, out, class);
    make().while_doing(|| "generating a community graph")
}

struct Job<'a> {
    generator: &'a str,
    options: serde_json::Value,
    seed: u64,
    attributes: &'a Attributes,
    finish: FinishOptions,
}

fn write<F: EdgeFunction>(
    job: Job<'_>,
    function: F,
    out: &Path,
    class: impl Fn(&F, u64) -> u32 + Sync,
) -> Result<Generated> {
    job.attributes.check()?;
    let nodes = function.num_nodes();
    let mut seconds = Stages::default();
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(nodes))?;
    writer.origin(serde_json::json!({ "generator": job.generator, "options": job.options }));
    writer.add_node_type(DEFAULT_NODE_TYPE, nodes);

    let start = Instant::now();
    let triple = Triple::plain();
    let mut column = writer.edge_writer(&triple, Some((nodes, nodes)))?;
    let mut edges = DrawnEdges::new(function);
    let mut chunk = EdgeChunk::default();
    while edges.next_chunk(&mut chunk)? {
        column.push(&chunk.src, &chunk.dst)?;
    }
    let drawn = edges.num_edges();
    writer.add_edge_type(triple, column.finish()?);
    seconds.edges = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let function = edges.into_function();
    let key = Key::new(job.seed).with(0x6e6f_6465);
    job.attributes.write(&mut writer, DEFAULT_NODE_TYPE, nodes, key, &|v| class(&function, v))?;
    seconds.attributes = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let dataset = writer.finish(job.finish)?;
    seconds.topology = start.elapsed().as_secs_f64();
    let facts = dataset.plain()?.1.facts.clone();
    Ok(Generated { dataset, drawn, facts, seconds })
}
