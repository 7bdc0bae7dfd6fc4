//! `gnarl plan`

mod args;
mod batch_workers;
mod measured;
mod run_file;

use std::time::Duration;

use gnarl_common::{Error, Result};
use gnarl_graph::Dataset;
use gnarl_partition::{
    PartitionOptions, PartitionReport, Plan, PlanOptions, Prediction, names, plan,
};
use indicatif::HumanBytes;
use serde_json::{Value, json};

use super::child;
use crate::output::json;
pub use args::PlanArgs;

pub fn run(args: &PlanArgs) -> Result<Value> {
    if args.path.is_file() {
        return run_file::run(args);
    }
    let of_runs = args.measure || args.from.is_some();
    if !args.settings.is_empty() || !args.workers.is_empty() || of_runs {
        return Err(Error::usage("--set, --workers, --measure and --from are for run files")
            .hint("gnarl plan RUN.toml compares strategies, gnarl plan DATASET partitioners"));
    }
    let dataset = Dataset::open(&args.path)?;
    let all = || names().into_iter().map(String::from).collect();
    let options = PlanOptions {
        algorithms: if args.algorithms.is_empty() { all() } else { args.algorithms.clone() },
        parts: args.parts.clone(),
        fanouts: args.fanouts.clone(),
        batch: args.batch_size,
        sample: args.sample,
        partition: PartitionOptions {
            seed: args.seed,
            balance: args.balance,
            memory: args.memory,
            ..PartitionOptions::default()
        },
    };
    let plan = plan(&dataset, &options)?;
    print!("{}", table(&plan));
    let mut result = json(&plan);
    if args.check {
        println!("\nmeasured, and measured over predicted:");
        for (i, prediction) in plan.predictions.iter().enumerate() {
            let measured = measure(args, prediction);
            println!("{}", compared(prediction, &measured));
            result["predictions"][i]["measured"] = match measured {
                Ok(report) => json(&report),
                Err(why) => json!({ "failure": why }),
            };
        }
    }
    Ok(result)
}

fn table(plan: &Plan) -> String {
    let counts = &plan.counts;
    let mut text = format!(
        "{} nodes, {} edges, {} training nodes, {:.0} bytes of features a node\n\
         replication and cut by a model: a random partition's expectation times what each makes of \
         {} nodes\n{:>10} {:>5} {:>11} {:>7} {:>10} {:>11} {:>11}\n",
        counts.nodes,
        counts.edges,
        counts.train,
        counts.row_bytes,
        plan.sample_nodes,
        "algorithm",
        "parts",
        "replication",
        "cut",
        "seconds",
        "memory",
        "bytes/epoch"
    );
    for p in &plan.predictions {
        let memory = p.memory_bytes.map_or("–".into(), |bytes| HumanBytes(bytes).to_string());
        text += &format!(
            "{:>10} {:>5} {:>11.3} {:>5.1} % {:>10.2} {memory:>11} {:>11}{}\n",
            p.algorithm,
            p.parts,
            p.replication_factor,
            100.0 * p.edge_cut,
            p.seconds,
            HumanBytes(p.epoch_bytes as u64).to_string(),
            if p.fits { "" } else { "  over the memory limit" }
        );
    }
    text
}

fn measure(args: &PlanArgs, p: &Prediction) -> Result<PartitionReport, String> {
    let text = format!(
        "--algorithm {} --parts {} --memory {} --balance {} --seed {}",
        p.algorithm, p.parts, args.memory, args.balance, args.seed
    );
    let words: Vec<String> = text.split_whitespace().map(String::from).collect();
    child::dry_run(&args.path, &words, Duration::from_secs(args.timeout))
}

fn compared(p: &Prediction, measured: &Result<PartitionReport, String>) -> String {
    let r = match measured {
        Ok(report) => report,
        Err(why) => return format!("{:>10} {:>5} {why}", p.algorithm, p.parts),
    };
    let over = |measured: f64, predicted: f64| match predicted > 0.0 {
        true => format!("×{:.2}", measured / predicted),
        false => "–".into(),
    };
    let memory = p.memory_bytes.map_or(0.0, |bytes| bytes as f64);
    format!(
        "{:>10} {:>5} {:>7.3} {:>6} {:>5.1} % {:>6} {:>8.2} s {:>6} {:>11} {:>6}",
        p.algorithm,
        p.parts,
        r.replication_factor,
        over(r.replication_factor, p.replication_factor),
        100.0 * r.edge_cut,
        over(r.edge_cut, p.edge_cut),
        r.seconds,
        over(r.seconds, p.seconds),
        HumanBytes(r.peak_rss_bytes).to_string(),
        over(r.peak_rss_bytes as f64, memory)
    )
}
