//! The arguments of `gnarl infer`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use gnarl_config::Engine;
use gnarl_infer::Sweeps;
use gnarl_infer::order::NodeOrder;
use gnarl_infer::rows::Cache;

use super::outputs::What;
use crate::commands::parse::{engine, size};

/// `gnarl infer`
#[derive(Debug, Args)]
pub struct InferArgs {
    /// The run's folder, or its address in an object store
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
    /// Order in which nodes are computed and their rows kept: ns (by number), ds (by degree), ps (by part) or pds (by part
    /// and degree); no result depends on it
    #[arg(long, value_parser = order)]
    pub order: Option<NodeOrder>,
    /// A partition of the dataset: orders ps and pds go by its parts, and each of several ranks computes some of them
    #[arg(long, value_name = "DIR")]
    pub partition: Option<PathBuf>,
    /// Read rows between layers by chunks, behind a cache: a policy (fifo, lru or clockpro) and its memory, as in fifo:10%
    /// of all chunks or lru:256MiB
    #[arg(long, value_name = "POLICY:MEMORY", value_parser = cache)]
    pub cache: Option<Cache>,
    /// Rows of a chunk, 1024 by default
    #[arg(long, value_name = "ROWS", requires = "cache")]
    pub chunk_rows: Option<NonZeroUsize>,
    /// Sums over neighbors from sweeps over all rows of the layer before, in the order of their file: auto (where pages of
    /// that file would be read from anywhere, and more of them), always or never
    #[arg(long, value_name = "auto|always|never", value_parser = sweeps)]
    pub sweep: Option<Sweeps>,
    /// Keep the rows of all layers in this folder until the predictions are complete: after an interruption the same command
    /// goes on from them
    #[arg(long, value_name = "DIR")]
    pub layers: Option<PathBuf>,
    /// Compute with so many ranks, each of which has some of the nodes: threads of this process
    #[arg(long, conflicts_with = "engine")]
    pub ranks: Option<NonZeroUsize>,
    /// Engine of the ranks: local, or mpi under mpirun
    #[arg(long, value_parser = engine)]
    pub engine: Option<Engine>,
    /// A page about the inference: time and reads of each layer, and the nodes with the most inputs
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

impl InferArgs {
    /// The cache of chunks, with chunks as large as they are asked for.
    pub(super) fn cache(&self) -> Option<Cache> {
        let chunk_rows = |cache: Cache| self.chunk_rows.unwrap_or(cache.chunk_rows);
        self.cache.map(|cache| Cache { chunk_rows: chunk_rows(cache), ..cache })
    }

    /// Number of passes over the model.
    pub(super) fn passes(&self) -> usize {
        if self.what.contains(&What::Embeddings) && self.what.len() > 1 { 2 } else { 1 }
    }

    /// Memory of a pass. Rows of a first pass wait for the second, and embeddings for edges.
    pub(super) fn memory_of_pass(&self) -> Option<u64> {
        let shared = self.passes() > 1 || self.edges.is_some() || self.top_k.is_some();
        self.memory.map(|bytes| bytes / if shared { 2 } else { 1 })
    }
}

fn order(text: &str) -> Result<NodeOrder, String> {
    text.parse().map_err(|e: gnarl_common::Error| e.to_string())
}

fn sweeps(text: &str) -> Result<Sweeps, String> {
    text.parse().map_err(|e: gnarl_common::Error| e.to_string())
}

fn cache(text: &str) -> Result<Cache, String> {
    text.parse().map_err(|e: gnarl_common::Error| e.to_string())
}
