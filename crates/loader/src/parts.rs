//! Lists in parts, on this machine or behind servers.

use std::sync::Arc;

use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Schema;
use gnarl_sample::parts::{Routes, Rule};
use gnarl_sample::{EdgeServices, FrontierPartsSampler, HeteroFanouts};
use gnarl_serve::Access;

/// Parts that are elsewhere, and memory for rows that were fetched.
#[derive(Debug, Clone, Default)]
pub struct PartsOptions {
    /// Addresses of servers that have the parts whose files are not here, `http://HOST:PORT` or `https://…`.
    pub servers: Vec<String>,
    /// Settings of connections.
    pub access: Access,
    /// Bytes of memory for features of other hosts.
    pub cache: u64,
    /// True if the servers make batches, too (`gnarl serve --batches`), in place of this process.
    pub batches: bool,
}

/// The lists of a partitioned graph.
pub(crate) struct PartLists {
    pub schema: Arc<Schema>,
    pub routes: Vec<Routes>,
    pub edges: Vec<EdgeServices>,
    /// A number of the partition.
    pub key: u64,
    /// The process that has connections to servers, if there are any.
    pub process: Option<u32>,
}

impl PartLists {
    /// A sampler with these fan-outs and rule.
    ///
    /// # Errors
    /// As [`FrontierPartsSampler::new`].
    pub fn sampler(&self, of: (Rule, &HeteroFanouts)) -> Result<FrontierPartsSampler> {
        FrontierPartsSampler::new(self.schema.clone(), of, self.routes.clone(), self.edges.clone())
    }

    pub fn is_remote(&self) -> bool {
        self.process.is_some()
    }

    pub fn check_process(&self) -> Result<()> {
        match self.process {
            Some(process) if process != std::process::id() => {
                Err(Error::usage("parts of servers were opened in another process")
                    .hint("open the graph again in this one"))
            }
            _ => Ok(()),
        }
    }
}
