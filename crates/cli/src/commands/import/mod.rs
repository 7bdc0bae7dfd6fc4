//! `gnarl import`

mod files;
mod folders;
mod options;
mod table;

use std::path::Path;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use gnarl_common::staging::Claim;
use gnarl_common::{Error, Result};
use gnarl_graph::MANIFEST;
use gnarl_graph::import::Imported;
use serde_json::Value;

use crate::output::{json, while_busy};
use options::Common;

/// `gnarl import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    /// numpy arrays
    Npy(files::Npy),
    /// Comma-separated tables of edges and nodes, plain or compressed with gzip
    Csv(table::Table),
    /// Tab-separated tables of edges and nodes, plain or compressed with gzip
    Tsv(table::Table),
    /// Parquet tables of edges and nodes
    Parquet(table::Table),
    /// Tables of nodes and edges of several types, listed by a JSON file
    Schema(table::Schema),
    /// Head, relation, tail in each line
    Triples(files::Triples),
    /// A folder of the Open Graph Benchmark
    Ogb(folders::Ogb),
    /// A dataset of DGL's GraphBolt
    Graphbolt(folders::Graphbolt),
}

pub fn run(args: &ImportArgs) -> Result<Value> {
    run_as(args, Value::Null)
}

/// Imports, and records the request.
fn run_as(args: &ImportArgs, request: Value) -> Result<Value> {
    let start = Instant::now();
    let common = args.format.common();
    let _claim = Claim::with_request(&common.out, MANIFEST, common.force, request)?;
    let (imported, out) = args.format.import()?;
    Ok(describe(&imported, out, start.elapsed().as_secs_f64()))
}

impl Format {
    fn common(&self) -> &Common {
        match self {
            Self::Npy(args) => &args.common,
            Self::Csv(args) | Self::Tsv(args) | Self::Parquet(args) => &args.common,
            Self::Schema(args) => &args.common,
            Self::Triples(args) => &args.common,
            Self::Ogb(args) => &args.common,
            Self::Graphbolt(args) => &args.common,
        }
    }

    /// Imports; returns the result and the output directory.
    fn import(&self) -> Result<(Imported, &Path)> {
        let busy = |out, work: &dyn Fn() -> Result<Imported>| {
            while_busy("importing", out, work).map(|imported| (imported, out))
        };
        match self {
            Self::Npy(args) => busy(&args.common.out, &|| args.import()),
            Self::Csv(args) => busy(&args.common.out, &|| args.import(Some(b','))),
            Self::Tsv(args) => busy(&args.common.out, &|| args.import(Some(b'\t'))),
            Self::Parquet(args) => busy(&args.common.out, &|| args.import(None)),
            Self::Schema(args) => busy(&args.common.out, &|| args.import()),
            Self::Triples(args) => busy(&args.common.out, &|| args.import()),
            Self::Ogb(args) => busy(&args.common.out, &|| args.import()),
            Self::Graphbolt(args) => busy(&args.common.out, &|| args.import()),
        }
    }
}

/// Logs the report, and returns it as JSON.
fn describe(imported: &Imported, out: &Path, seconds: f64) -> Value {
    let report = &imported.report;
    tracing::info!(
        "{}: {} nodes, {} edges; {} isolated nodes, {} self loops, {} repeated edges{}; {}",
        out.display(),
        report.nodes,
        report.edges,
        report.isolated,
        report.self_loops,
        report.duplicates,
        if report.coalesced { " (dropped)" } else { "" },
        if report.symmetric { "symmetric" } else { "directed" },
    );
    for name in &report.renumbered {
        tracing::info!("{name} nodes were renumbered; the column user_id holds the ids given");
    }
    let mut value = json(report);
    value["tables"] = json(&imported.tables);
    value["dataset"] = json(&out);
    value["seconds"] = json(&seconds);
    value["peak_rss_bytes"] = json(&gnarl_common::memory::peak_rss());
    value
}

/// Runs an import from the words of its command line, and records `request` with the dataset.
pub fn run_words(words: &[String], request: Value) -> Result<Value> {
    #[derive(Parser)]
    #[command(name = "import", no_binary_name = true)]
    struct Words {
        #[command(flatten)]
        args: ImportArgs,
    }
    let words = Words::try_parse_from(words).map_err(|e| {
        let text = e.to_string();
        Error::usage(text.trim_start_matches("error: ").trim_end().to_string())
    })?;
    run_as(&words.args, request)
}
