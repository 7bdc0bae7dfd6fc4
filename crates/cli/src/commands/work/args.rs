//! Arguments of `gnarl work`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::commands::security::SecurityArgs;

/// `gnarl work`
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "read by workers only"))]
pub struct WorkArgs {
    /// The run file, the same as that of 'gnarl train'
    pub run: PathBuf,
    /// batch: prepare batches of the parts on this host; coordinator: tell workers of each other
    #[arg(long, value_enum)]
    pub role: Role,
    /// Override a key of the run file, such as partition.path=/mnt/parts
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The coordinator that a batch worker joins, such as http://10.0.0.1:7071
    #[arg(long, value_name = "URI")]
    pub join: Option<String>,
    /// Address and port to listen at, where other hosts reach this one; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Who may connect.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// The certificate, in PEM, of an encrypted coordinator; that of --tls-cert if not given
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, such as 127.0.0.1:9500
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// Threads that prepare batches; 0 takes one a core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

/// A role beside that of compute workers, which 'gnarl train' has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Prepares batches.
    Batch,
    /// Tells workers of each other.
    Coordinator,
}
