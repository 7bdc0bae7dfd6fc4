//! `gnarl partition`

use gnarl_graph::staging::Claim;
use gnarl_graph::{Dataset, Error, Result};
use gnarl_partition::{
    PartLayout, PartitionConfig, Parts, Workers, assess, assess_edges, by_name, edge_partitioner,
    partition_dataset, picture,
};
use serde_json::Value;

use super::json;
use crate::allocator::hold_little;
use crate::args::PartitionArgs;
use crate::output::while_busy;

/// Nodes above which time spent on reading memory at random outweighs some MiB, if the budget is
/// above the second.
const LARGE: u64 = 1 << 20;
const AMPLE: u64 = 256 << 20;

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
            let work = || partition_dataset(&dataset, &config, out);
            let (parts, report) = while_busy("partitioning to", out, work)?;
            picture::write_report(out, parts.manifest())?;
            report
        }
        None => {
            let name = &config.algorithm;
            let work = || match config.layout {
                PartLayout::EdgeCut => assess(&dataset, &*by_name(name)?, &config),
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
            Error::usage(format!("--parts {}: not a number", args.parts))
                .hint("write a number, --parts auto, or machines and workers as in --parts 2x4")
        })
    };
    match args.parts.split_once('x') {
        Some((machines, workers)) => {
            Ok(Parts::Levels { machines: number(machines)?, workers: number(workers)? })
        }
        None => Ok(Parts::Count(number(&args.parts)?)),
    }
}
