//! Arguments of `gnarl serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::commands::parse::size;
use crate::commands::security::SecurityArgs;

/// `gnarl serve`
#[derive(Debug, Args)]
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
    /// Who may connect.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// Threads that sample and gather; 0 takes one a core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Memory for the calls of clients under way, besides batches
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = size)]
    pub memory: u64,
    /// Most nodes, or edges, of a call
    #[arg(long, default_value_t = 1 << 22, value_name = "IDS")]
    pub max_ids: usize,
    /// Most connections at a time
    #[arg(long, default_value_t = 1024, value_name = "CONNECTIONS")]
    pub connections: usize,
    /// Make whole batches for loaders elsewhere, too
    #[arg(long)]
    pub batches: bool,
    /// Servers of the parts that are not here, which batches need; they have the token of this one
    #[arg(long, value_name = "ADDRESS", requires = "batches")]
    pub servers: Vec<String>,
    /// The certificate of those servers to trust, in PEM
    #[arg(long, value_name = "FILE", requires = "servers")]
    pub certificate: Option<PathBuf>,
    /// Memory for features of those servers [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "servers")]
    pub cache: Option<u64>,
}
