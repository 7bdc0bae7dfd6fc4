//! The arguments of `gnarl infer`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::outputs::What;
use crate::commands::parse::size;

/// `gnarl infer`
#[derive(Debug, Args)]
pub struct InferArgs {
    /// The run's folder
    pub run_dir: PathBuf,
    /// The predictions: a file .parquet, .npy or .csv, or a folder .zarr; or such an address in an object store, as in
    /// s3://bucket/nodes.parquet
    #[arg(long)]
    pub out: PathBuf,
    /// Columns to write, of embeddings, logits, classes, probabilities and values; by default the prediction of the
    /// task, or embeddings
    #[arg(long, value_delimiter = ',')]
    pub what: Vec<What>,
    /// Only the nodes of this split: train, valid or test
    #[arg(long, conflicts_with = "ids")]
    pub split: Option<String>,
    /// Only the nodes whose ids are in this file, one per line
    #[arg(long)]
    pub ids: Option<PathBuf>,
    /// Scores of edges in place of predictions of nodes: of all of the dataset, of a split (train, valid or test), or of
    /// a file with a head and a tail, or a head, a relation and a tail, per line
    #[arg(long, value_name = "all|SPLIT|FILE", conflicts_with_all = ["split", "ids", "node_type"])]
    pub edges: Option<String>,
    /// The likeliest endpoints of edges: so many for each node of --heads or --tails
    #[arg(long, value_name = "K", requires = "given", conflicts_with_all = ["edges", "split", "ids", "node_type", "what"])]
    pub top_k: Option<NonZeroUsize>,
    /// The heads whose tails are asked for: a file of ids, one per line
    #[arg(long, value_name = "FILE", group = "given", requires = "top_k")]
    pub heads: Option<PathBuf>,
    /// The tails whose heads are asked for, likewise
    #[arg(long, value_name = "FILE", group = "given", requires = "top_k")]
    pub tails: Option<PathBuf>,
    /// The relation of the edges, by name or number, where there are several
    #[arg(long)]
    pub relation: Option<String>,
    /// Leave out endpoints that complete an edge of the dataset
    #[arg(long, requires = "top_k")]
    pub unknown: bool,
    /// The node type, where predicted edges join several
    #[arg(long)]
    pub node_type: Option<String>,
    /// Another dataset with the same types and features: its directory, or its address in an object store
    #[arg(long)]
    pub dataset: Option<PathBuf>,
    /// Sample so many neighbors per node, the seeds' hop first, such as 10,10, in place of all of them; -1 takes all
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub fanouts: Vec<i64>,
    /// Memory of the inference, such as 2GiB; by default evaluate.memory of the run
    #[arg(long, value_parser = size)]
    pub memory: Option<u64>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
