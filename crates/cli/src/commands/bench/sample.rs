//! Sampling speed of one thread, and memory of the graph.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::Dataset;
use gnarl_graph::import::WeightType;
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    ExactSampler, LaborSampler, SampleGraph, Sampler, Scratch, UniformSampler, WeightedSampler,
};
use half::{bf16, f16};
use serde_json::{Value, json};

/// `gnarl bench sample`
#[derive(Debug, Args)]
pub struct SampleBench {
    /// The dataset
    pub dataset: PathBuf,
    /// Neighbors of each hop
    #[arg(long, value_delimiter = ',', default_value = "15,10,5", allow_negative_numbers = true)]
    pub fanouts: Vec<i64>,
    /// Sampling rule: uniform, exact, labor or weighted; weights are drawn if there are
    /// none
    #[arg(long, default_value = "uniform")]
    pub rule: Rule,
    /// Storage type of drawn weights: f32, f16 or bf16
    #[arg(long, default_value_t)]
    pub weight_type: WeightType,
    /// Seeds of a batch
    #[arg(long, default_value_t = 1024)]
    pub batch_size: usize,
    /// Batches
    #[arg(long, default_value_t = 50)]
    pub batches: usize,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

pub fn run(args: &SampleBench) -> Result<Value> {
    let dataset = Dataset::open(&args.dataset)?;
    let graph = SampleGraph::open(&dataset)?;
    let graph = match (args.rule, graph.is_weighted()) {
        (Rule::Weighted, false) => with_weights(graph, Key::new(args.seed), args.weight_type)?,
        _ => graph,
    };
    let sampler = sampler(args, &graph)?;
    let nodes: Vec<u32> = (0..graph.num_nodes() as u32).collect();
    let key = Key::new(args.seed).with(1);
    let batches = sampler.epoch(&nodes, args.batch_size, key);
    if args.batches == 0 || batches.is_empty() {
        return Err(Error::usage("invalid --batches '0': expected at least 1"));
    }
    let mut scratch = Scratch::new();
    // Two batches to warm up.
    for seeds in batches.iter().cycle().skip(args.batches).take(2) {
        sampler.sample(seeds, key, &mut scratch)?;
    }
    let (mut edges, start) = (0, Instant::now());
    for seeds in batches.iter().cycle().take(args.batches) {
        edges += sampler.sample(seeds, key, &mut scratch)?.num_edges();
    }
    let seconds = start.elapsed().as_secs_f64();
    let bytes = graph.num_bytes();
    Ok(json!({
        "rule": args.rule.name(),
        "fanouts": args.fanouts,
        "batches": args.batches,
        "edges": edges,
        "seconds": seconds,
        "edges_per_second": edges as f64 / seconds,
        "graph_bytes": bytes,
        "bytes_per_edge": bytes as f64 / graph.num_edges().max(1) as f64,
    }))
}

fn sampler(args: &SampleBench, graph: &SampleGraph) -> Result<Box<dyn Sampler>> {
    let fanouts = &args.fanouts;
    Ok(match args.rule {
        Rule::Uniform => Box::new(UniformSampler::new(graph, fanouts)?),
        Rule::Labor => Box::new(LaborSampler::new(graph, fanouts)?),
        Rule::Exact => Box::new(ExactSampler::new(graph, fanouts)?),
        Rule::Weighted => Box::new(WeightedSampler::new(graph, fanouts)?),
    })
}

/// Adds a random weight between 0 and 1 to each edge.
fn with_weights(graph: SampleGraph, key: Key, stored: WeightType) -> Result<SampleGraph> {
    let drawn = (0..graph.num_edges() as u64).map(|e| key.unit(e) as f32);
    graph.with_list_weights(match stored {
        WeightType::F32 => drawn.collect::<Vec<_>>().into(),
        WeightType::F16 => drawn.map(f16::from_f32).collect::<Vec<_>>().into(),
        WeightType::BF16 => drawn.map(bf16::from_f32).collect::<Vec<_>>().into(),
    })
}
