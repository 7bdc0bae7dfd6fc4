//! Arguments about who may connect to a server.

#[cfg(feature = "serve")]
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
#[cfg(feature = "serve")]
use gnarl_common::Result;
#[cfg(feature = "serve")]
use gnarl_serve::{ServerConfig, Tls, read_token};

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

#[cfg(feature = "serve")]
impl SecurityArgs {
    /// The settings of a server at `listen`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn server(&self, listen: SocketAddr) -> Result<ServerConfig> {
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::read(certificate, key)?),
            _ => None,
        };
        Ok(ServerConfig {
            listen,
            token: self.token_file.as_deref().map(read_token).transpose()?,
            tls,
            open_to_everyone: self.open_to_everyone,
            ..ServerConfig::default()
        })
    }
}
