//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use gnarl_partition::{Chunk, Constraint, PartLayout};
use gnarl_train::config::Engine;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::commands::{bench, generate, import, plan};

/// Graph neural networks at really large scale.
#[derive(Debug, Parser)]
#[command(name = "gnarl", version, about, propagate_version = true)]
pub struct Args {
    /// More log lines; twice for all of them
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a dataset from files
    Import(Box<import::ImportArgs>),
    /// Make a synthetic dataset of any size
    Generate(generate::GenerateArgs),
    /// Cut a dataset into parts
    Partition(PartitionArgs),
    /// Predict what partitioners take and give, before running any
    Plan(plan::PlanArgs),
    /// Train a model as a run file says
    Train(TrainArgs),
    /// Judge a trained model on its dataset's splits
    Eval(EvalArgs),
    /// Describe a dataset, a part or a partition
    Inspect(InspectArgs),
    /// Let other machines sample from parts and read their rows, over Arrow Flight
    Serve(ServeArgs),
    /// Measure and compare
    Bench(BenchArgs),
}

/// `gnarl partition`
#[derive(Debug, ClapArgs)]
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
    /// Where the parts go
    #[arg(long, required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,
    /// Replace the partition that is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Partition and measure, but write nothing
    #[arg(long, conflicts_with = "out")]
    pub dry_run: bool,
    /// Hops of neighbours kept around each part; 0 keeps cut edges on one side only
    #[arg(long, default_value_t = 1)]
    pub hops: u32,
    /// How much larger than the mean a part may be
    #[arg(long, default_value_t = 1.05)]
    pub balance: f64,
    /// SPRING: clusters above this volume stop growing
    #[arg(long)]
    pub tau_vol: Option<u64>,
    /// GREM: edges looked at together, such as 10% or 5000000
    #[arg(long, default_value = "10%")]
    pub chunk: Chunk,
    /// GREM: passes over the edges at each level; 1 is Armada's algorithm, more cut less
    #[arg(long, default_value_t = 4)]
    pub passes: u32,
    /// GREM: leave nodes where they were first put
    #[arg(long)]
    pub freeze: bool,
    /// What to balance, of nodes, edges, train, valid, test, types, for knot, grem, metis, spring,
    /// ldg and fennel; each has a default of its own
    #[arg(long, value_delimiter = ',')]
    pub constraints: Option<Vec<Constraint>>,
    /// What a part holds: edge-cut (the nodes it owns, their full neighbour lists, copies of other
    /// parts' nodes) or vertex-cut (each edge in one part, for partitioners of edges)
    #[arg(long, default_value_t, value_name = "LAYOUT")]
    pub layout: PartLayout,
    /// Also group the edges by the parts of their ends
    #[arg(long, conflicts_with = "dry_run")]
    pub buckets: bool,
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Memory that may be held, such as 512MiB
    #[arg(long, default_value = "4GiB", value_parser = size)]
    pub memory: u64,
    /// For --parts auto: number of workers
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// For --parts auto: memory of each worker
    #[arg(long, default_value = "8GiB", value_parser = size)]
    pub worker_memory: u64,
}

/// `gnarl serve`
#[derive(Debug, ClapArgs)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "read by the server only"))]
pub struct ServeArgs {
    /// The partition directory
    pub parts: PathBuf,
    /// A part to serve, several times for more; all if not given
    #[arg(long = "part", value_name = "PART")]
    pub part: Vec<usize>,
    /// Address and port to listen at; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7070", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// A file with the token that clients must bear
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate, in PEM: encrypts connections
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Listen beyond this machine without a token or encryption
    #[arg(long)]
    pub open_to_everyone: bool,
    /// Threads that sample and gather; 0 takes one a core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

/// `gnarl train`
#[derive(Debug, ClapArgs)]
pub struct TrainArgs {
    /// The run file
    pub run: PathBuf,
    /// Override a key of the run file, such as train.lr=0.01
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// What carries the workers, instead of train.engine: local or mpi
    #[arg(long, value_parser = engine)]
    pub engine: Option<Engine>,
    /// Go on from the checkpoint of an interrupted run
    #[arg(long, conflicts_with = "restart")]
    pub resume: bool,
    /// Start over, replacing the run that is there
    #[arg(long)]
    pub restart: bool,
}

/// `gnarl eval`
#[derive(Debug, ClapArgs)]
pub struct EvalArgs {
    /// The run's folder
    pub run_dir: PathBuf,
    /// Judge on this dataset instead of the run's
    #[arg(long)]
    pub dataset: Option<PathBuf>,
}

/// `gnarl inspect`
#[derive(Debug, ClapArgs)]
pub struct InspectArgs {
    /// A dataset, part or partition directory
    pub path: PathBuf,
    /// Read every file and compare checksums
    #[arg(long)]
    pub verify: bool,
}

/// `gnarl bench`
#[derive(Debug, ClapArgs)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Bench,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Train run files with several seeds and average the scores
    Accuracy {
        /// Run files
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// Number of seeds, from train.seed on
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        /// Override a key of every run file
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
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
        /// Epochs of every run, instead of those each graph needs
        #[arg(long)]
        epochs: Option<usize>,
        /// Graphs to measure now; the others keep what was measured before
        #[arg(long, value_delimiter = ',')]
        graphs: Vec<String>,
    },
    /// GLISP's Figure 10: how evenly sampling falls on the parts of partitions
    Load(bench::load::LoadBench),
    /// All partitioners on all graphs: replication, cut, balances, time and memory
    Partition(bench::partition::PartitionBench),
    /// Edges sampled a second by one thread, and memory of the graph
    Sample(bench::sample::SampleBench),
}

/// Reads `512MiB`, `4GiB`, `1000000`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim();
    let number: f64 = digits.parse().map_err(|_| format!("'{text}' is not a size"))?;
    let factor: f64 = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024f64.powi(2),
        "gib" | "g" => 1024f64.powi(3),
        "tib" | "t" => 1024f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        unit => return Err(format!("'{unit}' is not a unit of size; use MiB or GiB")),
    };
    if !(number.is_finite() && number >= 0.0) {
        return Err(format!("'{text}' is not a size"));
    }
    Ok((number * factor) as u64)
}

/// The engine of that name.
fn engine(text: &str) -> Result<Engine, String> {
    let engine = Engine::deserialize(text.into_deserializer());
    engine.map_err(|e: serde::de::value::Error| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        assert_eq!(size("1000"), Ok(1000));
        assert!(size("lots").is_err() && size("3 parsecs").is_err());
    }
}
