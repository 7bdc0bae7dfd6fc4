//! Balance of sampling load over parts (GLISP, section IV-D and its Figure 10).

mod opened;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result, ResultExt};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::{PartsSampler, Routes, Rule};
use gnarl_sample::{
    EdgeServices, HeteroFanouts, HeteroPartsSampler, HeteroScratch, Sampler, Scratch,
};
use serde::Serialize;
use serde_json::Value;

use self::opened::{Opened, PartLoad};
use crate::output::json;

/// `gnarl bench load`
#[derive(Debug, Args)]
pub struct LoadBench {
    /// Partition directories to compare
    #[arg(required = true)]
    pub parts: Vec<PathBuf>,
    /// Neighbors of each hop
    #[arg(long, value_delimiter = ',', default_value = "15,10,5", allow_negative_numbers = true)]
    pub fanouts: Vec<i64>,
    /// Sampling rule: exact, weighted, labor or uniform
    #[arg(long, default_value = "exact")]
    pub rule: Rule,
    /// Type of the seeds, in graphs of several types
    #[arg(long)]
    pub node_type: Option<String>,
    /// Seeds of a batch
    #[arg(long, default_value_t = 1024)]
    pub batch_size: usize,
    /// Batches
    #[arg(long, default_value_t = 50)]
    pub batches: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Ask the parts through servers on this machine, and count the bytes of calls and replies
    #[cfg(feature = "serve")]
    #[arg(long)]
    pub served: bool,
    /// The table, in Markdown
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Sampling load of the parts of one partition.
#[derive(Debug, Serialize)]
struct Row {
    /// Name of its directory.
    partition: String,
    algorithm: String,
    layout: String,
    /// Origin of the seeds.
    seeds: &'static str,
    /// Edges sent by the most loaded part over those by the least loaded.
    edges: f64,
    /// Nodes requested, most over least.
    nodes: f64,
    /// Edges of the requested lists in the part, most over least.
    listed: f64,
    /// Edges sent by each part.
    sent: Vec<u64>,
    /// Bytes of the calls to each part, and of its replies, if it is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_received: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_sent: Option<Vec<u64>>,
}

pub fn run(args: &LoadBench) -> Result<Value> {
    let mut rows = Vec::new();
    for dir in &args.parts {
        let parts = PartitionedDataset::open(dir)?;
        for (seeds, from) in [("equal", None), ("all of part 0", Some(0))] {
            tracing::info!("{}: seeds {seeds}", dir.display());
            let loads = loads(args, &parts, from)
                .while_doing(|| format!("sampling from {}", dir.display()))?;
            rows.push(row(dir, &parts, seeds, &loads));
        }
    }
    if let Some(out) = &args.out {
        std::fs::write(out, table(args, &rows)).at(out)?;
    }
    Ok(json(&rows))
}

/// Samples batches with seeds from all parts evenly, or from one.
fn loads(
    args: &LoadBench,
    parts: &PartitionedDataset,
    from: Option<usize>,
) -> Result<Vec<PartLoad>> {
    let names = parts.manifest().node_types.iter().map(|of| of.name.as_str());
    let names: Vec<&str> = names.collect();
    let of = match (&args.node_type, &names[..]) {
        (None, [_]) => 0,
        (Some(name), _) => parts.schema()?.node_type(name)?,
        (None, _) => {
            return Err(Error::usage("--node-type is required: the graph has several types")
                .hint(format!("the type of the seeds, one of: {}", names.join(", "))));
        }
    };
    let routes = Routes::of_type(parts, names[of])?;
    let mut own = vec![Vec::new(); parts.num_parts()];
    (0..routes.num_nodes() as u32).for_each(|node| own[routes.owner(node)].push(node));
    let key = Key::new(args.seed);
    own.iter_mut().enumerate().for_each(|(part, own)| key.with(part as u64).shuffle(own));
    let sources: Vec<&[u32]> = match from {
        Some(part) => vec![&own[part]],
        None => own.iter().map(Vec::as_slice).collect(),
    };
    if sources.iter().any(|own| own.is_empty()) {
        return Err(Error::invalid("the part owns no nodes, so that it has no seeds"));
    }
    let opened = (0..parts.num_parts()).map(|part| open(args, parts, part));
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let mut sample = sampler(args, parts, of, &opened)?;
    for batch in 0..args.batches {
        let place = |i: usize| batch * args.batch_size + i;
        let seed = |i: usize| {
            let own = sources[i % sources.len()];
            own[place(i) / sources.len() % own.len()]
        };
        let mut seeds: Vec<u32> = (0..args.batch_size).map(seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        sample(&seeds, key.with(batch as u64))?;
    }
    Ok(opened.iter().map(Opened::load).collect())
}

#[cfg(feature = "serve")]
fn open(args: &LoadBench, parts: &PartitionedDataset, part: usize) -> Result<Opened> {
    if args.served { Opened::served(parts, part) } else { Opened::local(parts, part) }
}

#[cfg(not(feature = "serve"))]
fn open(_: &LoadBench, parts: &PartitionedDataset, part: usize) -> Result<Opened> {
    Opened::local(parts, part)
}

/// Samples a batch and drops it.
type SampleBatch = Box<dyn FnMut(&[u32], Key) -> Result<()>>;

/// A sampler of seeds of type number `of`.
fn sampler(
    args: &LoadBench,
    parts: &PartitionedDataset,
    of: usize,
    opened: &[Opened],
) -> Result<SampleBatch> {
    let services =
        |number: usize| opened.iter().map(|part| part.services[number].clone()).collect();
    if opened::is_homogeneous(parts)? {
        let routes = Routes::of(parts)?;
        let sampler = PartsSampler::new(args.rule, &args.fanouts, routes, services(0))?;
        let mut scratch = Scratch::new();
        return Ok(Box::new(move |seeds, key| sampler.sample(seeds, key, &mut scratch).map(drop)));
    }
    let types = parts.edge_types()?.into_iter().enumerate();
    let edges = types.map(|(number, edges)| EdgeServices {
        parts: services(number),
        weighted: edges.is_weighted(),
    });
    let schema = Arc::new(parts.schema()?);
    let routes = schema.node_types().iter().map(|name| Routes::of_type(parts, name));
    let routes = routes.collect::<Result<_>>()?;
    let how = (args.rule, &HeteroFanouts::new(&args.fanouts));
    let sampler = HeteroPartsSampler::new(schema, how, routes, edges.collect())?;
    let mut scratch = HeteroScratch::new();
    Ok(Box::new(move |seeds, key| {
        sampler.sample_types(&[(of, seeds)], key, &mut scratch).map(drop)
    }))
}

fn row(dir: &Path, parts: &PartitionedDataset, seeds: &'static str, loads: &[PartLoad]) -> Row {
    let ratio = |of: fn(&PartLoad) -> u64| {
        let most = loads.iter().map(of).max().unwrap_or(0);
        let least = loads.iter().map(of).min().unwrap_or(0);
        if least == 0 { f64::INFINITY } else { most as f64 / least as f64 }
    };
    Row {
        partition: dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
        algorithm: parts.manifest().algorithm.clone(),
        layout: parts.manifest().layout.to_string(),
        seeds,
        edges: ratio(|part| part.load.edges_sent),
        nodes: ratio(|part| part.load.nodes),
        listed: ratio(|part| part.load.edges_listed),
        sent: loads.iter().map(|part| part.load.edges_sent).collect(),
        bytes_received: loads.iter().map(|part| Some(part.bytes?.0)).collect(),
        bytes_sent: loads.iter().map(|part| Some(part.bytes?.1)).collect(),
    }
}

fn table(args: &LoadBench, rows: &[Row]) -> String {
    let mut text = String::new();
    let LoadBench { fanouts, batch_size, batches, rule, .. } = args;
    _ = writeln!(
        text,
        "Load of the busiest part over that of the idlest; fan-outs {fanouts:?}, {batches} batches of \
         {batch_size} seeds, rule '{}'.\n\n\
         | partition | algorithm | layout | seeds | edges sent | nodes asked for | edges listed | all edges sent | \
         MB of replies |\n\
         |---|---|---|---|---:|---:|---:|---:|---:|",
        rule.name()
    );
    for row in rows {
        let Row { partition, algorithm, layout, seeds, edges, nodes, listed, sent, .. } = row;
        let all: u64 = sent.iter().sum();
        let bytes = row.bytes_sent.as_ref().map(|sent| sent.iter().sum::<u64>());
        let bytes = bytes.map_or_else(String::new, |all| format!("{:.1}", all as f64 / 1e6));
        _ = writeln!(
            text,
            "| {partition} | {algorithm} | {layout} | {seeds} | {edges:.2} | {nodes:.2} | {listed:.2} | {all} | \
             {bytes} |"
        );
    }
    text
}
