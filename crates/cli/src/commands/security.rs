//! Arguments about who may connect to a server.

use std::path::PathBuf;

use clap::Args;

/// The token and the encryption of a server.
#[derive(Debug, Args)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "read by servers only"))]
pub struct SecurityArgs {
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
}
