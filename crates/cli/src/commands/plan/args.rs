//! Arguments of `gnarl plan`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::parse::size;

/// `gnarl plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The dataset directory; or a run file, to compare strategies instead of partitioners
    #[arg(value_name = "DATASET|RUN.toml")]
    pub path: PathBuf,
    /// For a run file: override a key, such as train.lr=0.01
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// For a run file: numbers of workers, by default train.workers
    #[arg(long, value_delimiter = ',')]
    pub workers: Vec<usize>,
    /// For a run file: measure this machine's matrix products and memory first, instead of using
    /// the rates of [plan], by which train.strategy = 'auto' chooses
    #[arg(long)]
    pub measure: bool,
    /// For a run file of strategy disaggregated: a run with train.pipeline = 'off', whose stages are taken instead of
    /// predicted ones
    #[arg(long, value_name = "RUN_DIR")]
    pub from: Option<PathBuf>,
    /// Numbers of parts
    #[arg(long, value_delimiter = ',', default_value = "4,8,16")]
    pub parts: Vec<usize>,
    /// Only these partitioners
    #[arg(long, value_delimiter = ',')]
    pub algorithms: Vec<String>,
    /// Neighbors drawn per node at each hop in training
    #[arg(long, value_delimiter = ',', default_value = "25,10")]
    pub fanouts: Vec<u32>,
    /// Seeds of a training step over all workers; 0 takes all training nodes at once
    #[arg(long, default_value_t = 1024)]
    pub batch_size: u64,
    /// Memory limit of a partitioner
    #[arg(long, default_value = "4GiB", value_parser = size)]
    pub memory: u64,
    /// Maximum size of a part over the mean
    #[arg(long, default_value_t = 1.05)]
    pub balance: f64,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Nodes of the sample on which partitioners are measured
    #[arg(long, default_value_t = 50_000)]
    pub sample: u64,
    /// Run the partitioners too, each in a process of its own, and compare
    #[arg(long)]
    pub check: bool,
    /// With --check: seconds after which a partitioner is stopped
    #[arg(long, default_value_t = 600)]
    pub timeout: u64,
}
