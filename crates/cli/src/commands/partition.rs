//! `gnarl partition`

use std::path::PathBuf;

use clap::Args;
use gnarl_common::staging::Claim;
use gnarl_common::{Error, Result};
use gnarl_config::load;
use gnarl_graph::Dataset;
use gnarl_partition::{
    Chunk, Constraint, PartLayout, PartitionConfig, Parts, Workers, assess, assess_edges, by_name,
    edge_partitioner, partition_dataset,
};
use gnarl_train::{Registry, partition_for_task};
use serde_json::Value;

use super::parse::size;
use crate::allocator::{AMPLE, hold_little};
use crate::output::{json, while_busy};

/// `gnarl partition`
#[derive(Debug, Args)]
pub struct PartitionArgs {
    /// The dataset directory
    pub dataset: PathBuf,
    /// The partitioner
    #[arg(long, default_value = "knot")]
    pub algorithm: String,
    /// Number of parts; machines and workers on each, such as 2x4; or 'auto' to follow --workers
    /// and --worker-memory
    #[arg(long)]
    pub parts: String,
    /// The directory of the parts
    #[arg(long, required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// Replace an existing partition
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Partition and measure, but write nothing
    #[arg(long, conflicts_with = "out")]
    pub dry_run: bool,
    /// Hops of halo nodes around each part; 0 keeps cut edges on one side only
    #[arg(long, default_value_t = 1)]
    pub hops: u32,
    /// Maximum size of a part over the mean
    #[arg(long, default_value_t = 1.05)]
    pub balance: f64,
    /// SPRING: clusters above this volume stop growing
    #[arg(long)]
    pub tau_vol: Option<u64>,
    /// GREM: edges per chunk, such as 10% or 5000000
    #[arg(long, default_value = "10%")]
    pub chunk: Chunk,
    /// GREM: passes over the edges at each level; 1 is Armada's algorithm, more cut less
    #[arg(long, default_value_t = 4)]
    pub passes: u32,
    /// GREM: keep nodes where they were first placed
    #[arg(long)]
    pub freeze: bool,
    /// Balanced quantities, of nodes, edges, train, valid, test, types, for knot, grem, metis,
    /// spring, ldg and fennel; each has a default of its own
    #[arg(long, value_delimiter = ',')]
    pub constraints: Option<Vec<Constraint>>,
    /// Layout of the parts: edge-cut (own nodes, their full neighbor lists, halo copies of other
    /// parts' nodes), vertex-cut (each edge in one part, for edge partitioners) or storage (own
    /// nodes once, edges in buckets; for strategy 'disaggregated')
    #[arg(long, default_value_t, value_name = "LAYOUT")]
    pub layout: PartLayout,
    /// Also group the edges by the parts of their endpoints
    #[arg(long, conflicts_with = "dry_run")]
    pub buckets: bool,
    /// Parts for the link or edge prediction of this run file: those of its message graph, with the edges that it
    /// predicts beside them
    #[arg(long, value_name = "RUN", conflicts_with = "dry_run")]
    pub task: Option<PathBuf>,
    /// With --task: override a setting of the run file, such as task.split_seed=1
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "task")]
    pub settings: Vec<String>,
    /// Seed of the partitioner
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Memory limit, such as 512MiB
    #[arg(long, default_value = "4GiB", value_parser = size)]
    pub memory: u64,
    /// For --parts auto: number of workers
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// For --parts auto: memory of each worker
    #[arg(long, default_value = "8GiB", value_parser = size)]
    pub worker_memory: u64,
}

/// Number of nodes above which slow random access outweighs some MiB of memory, if the budget is ample.
const LARGE: u64 = 1 << 20;

pub fn run(args: &PartitionArgs) -> Result<Value> {
    let parts = parts(args)?;
    // Held to the end, the report included.
    let claim = args.out.as_deref().map(|out| Claim::new(out, "partition.json", args.force));
    let _claim = claim.transpose()?;
    let dataset = Dataset::open(&args.dataset)?;
    hold_little(dataset.manifest().num_nodes() > LARGE && args.memory >= AMPLE);
    let config = PartitionConfig {
        algorithm: args.algorithm.clone(),
        parts,
        hops: args.hops,
        seed: args.seed,
        balance: args.balance,
        tau_vol: args.tau_vol,
        chunk: args.chunk,
        passes: args.passes,
        freeze: args.freeze,
        constraints: args.constraints.clone(),
        layout: args.layout,
        buckets: args.buckets,
        memory: args.memory,
    };
    let report = match &args.out {
        Some(out) => {
            let run = args.task.as_ref().map(|path| load(path, &args.settings)).transpose()?;
            let work = || match &run {
                None => partition_dataset(&dataset, &config, out),
                Some(run) => {
                    partition_for_task((run, &Registry::default()), &dataset, &config, out)
                }
            };
            let (parts, report) = while_busy("partitioning to", out, work)?;
            gnarl_report::write_partition_report(out, parts.manifest())?;
            report
        }
        None => {
            let name = &config.algorithm;
            let work = || match config.layout {
                PartLayout::EdgeCut | PartLayout::Storage => {
                    assess(&dataset, &*by_name(name)?, &config)
                }
                PartLayout::VertexCut => assess_edges(&dataset, &*edge_partitioner(name)?, &config),
            };
            while_busy("partitioning", &args.dataset, work)?.1
        }
    };
    tracing::info!(
        "{} parts by {} in {:.2} s: edge cut {:.2} %, replication factor {:.3}, balance of nodes \
         {:.3}, edges {:.3}, training nodes {:.3}",
        report.parts,
        report.algorithm,
        report.seconds,
        100.0 * report.edge_cut,
        report.replication_factor,
        report.node_balance,
        report.edge_balance,
        report.train_balance
    );
    if let Some(cut) = &report.vertex_cut {
        tracing::info!(
            "as a vertex cut: replication factor {:.3}, balance of replicas {:.3}, of edges {:.3}, \
             {:.2} bytes an edge",
            cut.replication_factor,
            cut.vertex_balance,
            cut.edge_balance,
            cut.bytes_per_edge
        );
    }
    Ok(json(&report))
}

fn parts(args: &PartitionArgs) -> Result<Parts> {
    if args.parts == "auto" {
        let (count, memory) = (args.workers, args.worker_memory);
        return Ok(Parts::Auto(Workers { count, memory, reserved: None }));
    }
    let number = |text: &str| {
        text.parse().map_err(|_| {
            Error::usage(format!("invalid --parts '{}'", args.parts))
                .hint("expected a number, 'auto', or machines and workers as in 2x4")
        })
    };
    match args.parts.split_once('x') {
        Some((machines, workers)) => {
            Ok(Parts::Levels { machines: number(machines)?, workers: number(workers)? })
        }
        None => Ok(Parts::Count(number(&args.parts)?)),
    }
}
