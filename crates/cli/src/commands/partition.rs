//! `gnarl partition`

use gnarl_graph::{Dataset, Error, Result};
use gnarl_partition::{PartitionConfig, Parts, Workers, partition_dataset};
use serde_json::Value;

use super::json;
use crate::args::PartitionArgs;
use crate::output::while_busy;

pub fn run(args: &PartitionArgs) -> Result<Value> {
    let dataset = Dataset::open(&args.dataset)?;
    let config = PartitionConfig {
        algorithm: args.algorithm.clone(),
        parts: parts(args)?,
        hops: args.hops,
        seed: args.seed,
        balance: args.balance,
        tau_vol: args.tau_vol,
        chunk: args.chunk,
        passes: args.passes,
        freeze: args.freeze,
        constraints: args.constraints.clone(),
        memory: args.memory,
    };
    let (_, report) = while_busy("partitioning to", &args.out, || {
        partition_dataset(&dataset, &config, &args.out)
    })?;
    tracing::info!(
        "{} parts in {}: edge cut {:.2} %, replication factor {:.3}, balance of nodes {:.3}, edges \
         {:.3}, training nodes {:.3}",
        report.parts,
        args.out.display(),
        100.0 * report.edge_cut,
        report.replication_factor,
        report.node_balance,
        report.edge_balance,
        report.train_balance
    );
    Ok(json(&report))
}

fn parts(args: &PartitionArgs) -> Result<Parts> {
    if args.parts == "auto" {
        let (count, memory) = (args.workers, args.worker_memory);
        return Ok(Parts::Auto(Workers { count, memory, reserved: None }));
    }
    let count = args.parts.parse().map_err(|_| {
        Error::usage(format!("--parts {}: not a number", args.parts)).hint("or write --parts auto")
    })?;
    Ok(Parts::Count(count))
}
