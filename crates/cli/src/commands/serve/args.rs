//! Arguments of `gnarl serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

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
