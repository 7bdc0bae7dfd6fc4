//! `gnarl bench`: reproducible measurements.

pub mod accuracy;
mod catgnn;
mod kept;
pub mod load;
pub mod online;
pub mod partition;
pub mod sample;
mod scores;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gnarl_common::Result;
use serde_json::Value;

/// `gnarl bench`
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Bench,
}

/// A benchmark.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The former name of 'gnarl repeat'
    #[command(hide = true)]
    Accuracy(accuracy::RepeatArgs),
    /// CATGNN's Figures 7, 11 and 12: model averaging against training on the whole graph
    Catgnn {
        /// Folder with the graphs pubmed, amazon_photo and coauthor_physics
        #[arg(long, env = "GNARL_DATA")]
        data: PathBuf,
        /// The table, in Markdown; runs are kept beside it, in a folder .work, and not repeated
        /// while that is there
        #[arg(long)]
        out: PathBuf,
        /// Number of seeds averaged
        #[arg(long, default_value_t = 3)]
        seeds: u64,
        /// Epochs of every run, instead of each graph's default
        #[arg(long)]
        epochs: Option<usize>,
        /// Graphs to measure now; the others keep what was measured before
        #[arg(long, value_delimiter = ',')]
        graphs: Vec<String>,
    },
    /// GLISP's Figure 10: how evenly sampling falls on the parts of partitions
    Load(load::LoadBench),
    /// Latencies of gnarl serve-model at a constant rate of requests
    Online(online::OnlineBench),
    /// All partitioners on all graphs: replication, cut, balances, time and memory
    Partition(partition::PartitionBench),
    /// Edges sampled a second by one thread, and memory of the graph
    Sample(sample::SampleBench),
}

pub fn run(what: Bench) -> Result<Value> {
    match what {
        Bench::Accuracy(args) => accuracy::run(&args),
        Bench::Catgnn { data, out, seeds, epochs, graphs } => {
            catgnn::run(&data, &out, seeds, epochs, &graphs)
        }
        Bench::Load(args) => load::run(&args),
        Bench::Online(args) => online::run(&args),
        Bench::Partition(args) => partition::run(&args),
        Bench::Sample(args) => sample::run(&args),
    }
}
