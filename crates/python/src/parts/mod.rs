//! Partitioned datasets, whose parts may be at servers.

#[cfg(not(feature = "wheel"))]
mod absent;
#[cfg(feature = "wheel")]
mod served;

use std::path::PathBuf;

#[cfg(not(feature = "wheel"))]
pub use absent::{connect, open};
#[cfg(feature = "wheel")]
pub use served::{connect, open};

/// The places of parts, and how they are read.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Addresses of servers; none if all parts are here.
    pub servers: Vec<String>,
    /// The file of the token that servers ask for.
    pub token_file: Option<PathBuf>,
    /// The certificate that servers are trusted by.
    pub certificate: Option<PathBuf>,
    /// Seconds within which a server answers.
    pub deadline: f64,
    /// Bytes of memory for features.
    pub cache: Option<u64>,
}
