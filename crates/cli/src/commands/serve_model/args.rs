//! Arguments of `gnarl serve-model`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::commands::parse::size;
use crate::commands::security::SecurityArgs;

/// `gnarl serve-model`
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "read by the server only"))]
pub struct ServeModelArgs {
    /// The run's folder, or its address in an object store
    pub run_dir: PathBuf,
    /// Address and port to listen at; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Another dataset with the same types and features: its directory, or its address in an object store
    #[arg(long)]
    pub dataset: Option<PathBuf>,
    /// Memory of the inference of a batch, such as 2GiB; by default evaluate.memory of the run
    #[arg(long, value_parser = size)]
    pub memory: Option<u64>,
    /// Neighbors sampled per node, the nodes' own first, such as 10,10; all by default, and for -1
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_name = "FANOUTS")]
    pub fanouts: Vec<i64>,
    /// Most ids, or edges, of a request
    #[arg(long, default_value = "4096", value_name = "IDS")]
    pub max_ids: NonZeroUsize,
    /// Ids, or edges, with which a batch of waiting requests is full
    #[arg(long, default_value = "4096", value_name = "IDS")]
    pub batch_ids: NonZeroUsize,
    /// Milliseconds that a request waits for others to be computed with
    #[arg(long, default_value_t = 2, value_name = "MS")]
    pub batch_ms: u64,
    /// Most requests that wait; others are refused with status 503
    #[arg(long, default_value = "64", value_name = "REQUESTS")]
    pub queue: NonZeroUsize,
    /// Milliseconds within which a request is answered, or else refused with status 504
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub deadline_ms: u64,
    /// Who may connect.
    #[command(flatten)]
    pub security: SecurityArgs,
}
