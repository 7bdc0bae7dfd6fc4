//! One partitioner on one graph.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gnarl_common::error::{Error, Result};
use gnarl_graph::{Dataset, EdgeStream};
use gnarl_partition::{
    Assignment, PartitionConfig, PartitionOptions, PartitionReport, Parts, VertexPartitioner,
    assess,
};
use serde_json::{Value, json};

use super::args::PartitionBench;
use crate::commands::child;

/// Name of the rows of METIS of PyPI.
pub const PYMETIS: &str = "pymetis";

/// The result of one partitioner on one graph, or a short reason for its failure.
pub struct Cell {
    pub graph: String,
    pub algorithm: String,
    pub parts: usize,
    pub result: Result<PartitionReport, String>,
}

impl Cell {
    pub fn row(&self) -> String {
        let start = format!("| {} | {} |", self.algorithm, self.parts);
        match &self.result {
            Ok(r) => format!(
                "{start} {:.3} | {:.2} % | {:.3} | {:.3} | {:.3} | {:.2} | {} |\n",
                r.replication_factor,
                100.0 * r.edge_cut,
                r.node_balance,
                r.edge_balance,
                r.train_balance,
                r.seconds,
                r.peak_rss_bytes >> 20
            ),
            Err(why) => format!("{start} {why} | | | | | | |\n"),
        }
    }

    pub fn json(&self) -> Value {
        let graph = &self.graph;
        let algorithm = &self.algorithm;
        let parts = self.parts;
        match &self.result {
            Ok(report) => json!({
                "graph": graph, "algorithm": algorithm, "parts": parts, "report": report
            }),
            Err(why) => {
                json!({ "graph": graph, "algorithm": algorithm, "parts": parts, "failure": why })
            }
        }
    }
}

/// Runs `spec`, the name of a partitioner, optionally followed by options.
pub fn partition(
    args: &PartitionBench,
    dataset: &Path,
    spec: &str,
    parts: usize,
) -> Result<PartitionReport, String> {
    let text = format!(
        "--parts {parts} --memory {} --balance {} --seed {} --algorithm {spec}",
        args.memory, args.balance, args.seed
    );
    let words: Vec<String> = text.split_whitespace().map(String::from).collect();
    child::dry_run(dataset, &words, Duration::from_secs(args.timeout))
}

/// Partitions by METIS of PyPI in a Python process, and measures the result like all others.
pub fn pymetis(
    args: &PartitionBench,
    dataset: &Dataset,
    parts: usize,
    work: &Path,
) -> Result<PartitionReport, String> {
    let result = work.join("pymetis.bin");
    let mut command = Command::new(args.python.as_deref().unwrap_or(Path::new("python3")));
    command.args(["-c", include_str!("cut.py")]).arg(dataset.dir());
    command.arg(parts.to_string()).arg((args.balance - 1.0).to_string());
    command.arg((args.seed & 0x7fff_ffff).to_string()).arg(&result);
    let line = child::last_line(&mut command, Duration::from_secs(args.timeout))?;
    let cost: Value = serde_json::from_str(&line).map_err(|e| format!("unreadable: {e}"))?;
    let bytes = std::fs::read(&result).map_err(|e| format!("no assignment: {e}"))?;
    let of = bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    let config = PartitionConfig {
        parts: Parts::Count(parts),
        seed: args.seed,
        balance: args.balance,
        ..PartitionConfig::default()
    };
    let given = Given(Assignment { parts, of });
    let (_, report) = assess(dataset, &given, &config).map_err(|e| e.to_string())?;
    Ok(PartitionReport {
        seconds: cost["seconds"].as_f64().unwrap_or(f64::NAN),
        peak_rss_bytes: cost["peak_rss_bytes"].as_u64().unwrap_or(0),
        ..report
    })
}

/// A partition made elsewhere.
struct Given(Assignment);

impl VertexPartitioner for Given {
    fn name(&self) -> &'static str {
        PYMETIS
    }

    fn partition(
        &self,
        edges: &mut dyn EdgeStream,
        options: &PartitionOptions,
    ) -> Result<Assignment> {
        let fits = self.0.of.len() as u64 == edges.num_nodes();
        if !fits || self.0.of.iter().any(|&part| part as usize >= options.parts) {
            return Err(Error::invalid("the assignment belongs to another graph"));
        }
        Ok(self.0.clone())
    }
}
