//! Balance of sampling load over parts (GLISP, section IV-D and its Figure 10).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result, ResultExt};
use gnarl_partition::PartitionedDataset;
use gnarl_sample::parts::{Load, LocalPart, NeighborService, PartsSampler, Routes, Rule};
use gnarl_sample::{
    EdgeServices, HeteroFanouts, HeteroPartsSampler, HeteroScratch, Sampler, Scratch, local_parts,
};
use serde::Serialize;
use serde_json::Value;

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
fn loads(args: &LoadBench, parts: &PartitionedDataset, from: Option<usize>) -> Result<Vec<Load>> {
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
    let local: Vec<Vec<LocalPart>> =
        (0..parts.num_parts()).map(|part| lists(parts, part)).collect::<Result<_>>()?;
    let mut sample = sampler(args, parts, of, &local)?;
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
    Ok(local.iter().map(|part| part.iter().map(LocalPart::load).sum()).collect())
}

/// Returns whether a graph has one type of nodes and one of edges.
fn is_homogeneous(parts: &PartitionedDataset) -> Result<bool> {
    Ok(parts.manifest().node_types.len() == 1 && parts.edge_types()?.len() == 1)
}

/// The lists of a part, by edge type.
fn lists(parts: &PartitionedDataset, part: usize) -> Result<Vec<LocalPart>> {
    match is_homogeneous(parts)? {
        true => Ok(vec![LocalPart::open(parts, part)?]),
        false => Ok(local_parts(parts, part)?.into_iter().map(|(_, lists)| lists).collect()),
    }
}

/// Samples a batch and drops it.
type SampleBatch = Box<dyn FnMut(&[u32], Key) -> Result<()>>;

/// A sampler of seeds of type number `of`.
fn sampler(
    args: &LoadBench,
    parts: &PartitionedDataset,
    of: usize,
    local: &[Vec<LocalPart>],
) -> Result<SampleBatch> {
    let service = |part: &LocalPart| Arc::new(part.clone()) as Arc<dyn NeighborService>;
    let services = |number: usize| local.iter().map(|part| service(&part[number])).collect();
    if is_homogeneous(parts)? {
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

fn row(dir: &Path, parts: &PartitionedDataset, seeds: &'static str, loads: &[Load]) -> Row {
    let ratio = |of: fn(&Load) -> u64| {
        let most = loads.iter().map(of).max().unwrap_or(0);
        let least = loads.iter().map(of).min().unwrap_or(0);
        if least == 0 { f64::INFINITY } else { most as f64 / least as f64 }
    };
    Row {
        partition: dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
        algorithm: parts.manifest().algorithm.clone(),
        layout: parts.manifest().layout.to_string(),
        seeds,
        edges: ratio(|load| load.edges_sent),
        nodes: ratio(|load| load.nodes),
        listed: ratio(|load| load.edges_listed),
        sent: loads.iter().map(|load| load.edges_sent).collect(),
    }
}

fn table(args: &LoadBench, rows: &[Row]) -> String {
    let mut text = String::new();
    let LoadBench { fanouts, batch_size, batches, rule, .. } = args;
    _ = writeln!(
        text,
        "Load of the busiest part over that of the idlest; fan-outs {fanouts:?}, {batches} batches of \
         {batch_size} seeds, rule '{}'.\n\n\
         | partition | algorithm | layout | seeds | edges sent | nodes asked for | edges listed |\n\
         |---|---|---|---|---:|---:|---:|",
        rule.name()
    );
    for row in rows {
        let Row { partition, algorithm, layout, seeds, edges, nodes, listed, .. } = row;
        _ = writeln!(
            text,
            "| {partition} | {algorithm} | {layout} | {seeds} | {edges:.2} | {nodes:.2} | {listed:.2} |"
        );
    }
    text
}
