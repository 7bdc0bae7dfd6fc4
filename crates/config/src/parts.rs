//! Partitioning, location of the parts, and caching of remote data.

use std::path::PathBuf;

use bytesize::ByteSize;
use gnarl_partition::{Chunk, Constraint, PartitionConfig};
use gnarl_store::cache::CachePolicy;
use gnarl_store::cache::scores::Score;
use serde::{Deserialize, Serialize};

/// `[partition]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartitionSection {
    /// A registered partitioner.
    pub algorithm: String,
    /// Number of parts, machines and workers on each as in `"2x4"`, or `"auto"`.
    pub parts: Parts,
    /// Hops of halo nodes around each part; 0 keeps cut edges on one side only. If absent, see
    /// [`RunConfig::halo_hops`](crate::RunConfig::halo_hops).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<usize>,
    /// Seed of the partitioner.
    pub seed: u64,
    /// Maximum size of a part over the mean.
    pub balance: f64,
    /// SPRING: clusters above this volume stop growing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tau_vol: Option<u64>,
    /// GREM: edges per chunk, such as `"10%"` or `5000000`.
    pub chunk: Chunk,
    /// GREM: passes over the edges at each level.
    pub passes: u32,
    /// GREM: keeps nodes where they were first placed.
    pub freeze: bool,
    /// METIS: balanced quantities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Vec<Constraint>>,
    /// An existing partition made by `gnarl partition`; the keys above are then not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Servers of the parts, if no rank is to have the whole graph; requires `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// File with the token of external servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The certificate, in PEM, of external servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Listening port of peer servers; 0 takes a free port.
    pub port: u16,
}

impl Default for PartitionSection {
    fn default() -> Self {
        let cut = PartitionConfig::default();
        Self {
            algorithm: cut.algorithm,
            parts: Parts::Count(1),
            hops: None,
            seed: cut.seed,
            balance: cut.balance,
            tau_vol: cut.tau_vol,
            chunk: cut.chunk,
            passes: cut.passes,
            freeze: cut.freeze,
            constraints: cut.constraints,
            path: None,
            servers: None,
            token_file: None,
            certificate: None,
            port: 0,
        }
    }
}

/// The servers of a partitioned graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum Servers {
    /// Peer servers: each machine of the run reads its own parts from its files, and serves them to
    /// the others.
    Ranks,
    /// External servers at these addresses, for parts without local files.
    At(Vec<String>),
}

impl TryFrom<toml::Value> for Servers {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let servers = match &value {
            toml::Value::String(s) if s == "ranks" => Some(Self::Ranks),
            toml::Value::Array(all) => {
                let all: Option<Vec<_>> =
                    all.iter().map(|v| v.as_str().map(String::from)).collect();
                all.filter(|all| !all.is_empty()).map(Self::At)
            }
            _ => None,
        };
        let kinds = "\"ranks\", or a list of addresses as in [\"https://10.0.0.1:7070\"]";
        servers.ok_or_else(|| format!("invalid servers {value}: expected {kinds}"))
    }
}

impl From<Servers> for toml::Value {
    fn from(servers: Servers) -> Self {
        match servers {
            Servers::Ranks => Self::String("ranks".into()),
            Servers::At(all) => Self::Array(all.into_iter().map(Self::String).collect()),
        }
    }
}

/// `[cache]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheSection {
    /// Cache policy: `clockpro`, `lru`, `fifo`, or `fixed` for the hottest features.
    pub policy: CachePolicy,
    /// Memory limit of a process for remote features, such as `"256MiB"`; 0 disables the cache.
    pub memory: ByteSize,
    /// Hotness score of remote nodes: `degree`, or the probability of `access`.
    pub score: Score,
    /// Memory limit of a process for replicas of remote in-neighbor lists, those of the
    /// hottest nodes; 0 replicates none.
    pub lists: ByteSize,
}

impl Default for CacheSection {
    fn default() -> Self {
        let none = ByteSize(0);
        Self { policy: CachePolicy::ClockPro, memory: none, score: Score::Access, lists: none }
    }
}

/// The number of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub enum Parts {
    /// From the number of workers and the memory of the machine.
    Auto,
    /// A given number.
    Count(usize),
    /// Some workers on each of some machines.
    Levels {
        /// Number of machines.
        machines: usize,
        /// Workers on each.
        workers: usize,
    },
}

impl TryFrom<toml::Value> for Parts {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let levels = |text: &str| {
            let (machines, workers) = text.split_once('x')?;
            let (machines, workers) = (machines.parse().ok()?, workers.parse().ok()?);
            (machines > 0 && workers > 0).then_some(Self::Levels { machines, workers })
        };
        let parts = match &value {
            toml::Value::Integer(n) if *n >= 1 => Some(Self::Count(*n as usize)),
            toml::Value::String(s) if s == "auto" => Some(Self::Auto),
            toml::Value::String(s) => levels(s),
            _ => None,
        };
        let kinds = "a positive number, machines and workers as in \"2x4\", or \"auto\"";
        parts.ok_or_else(|| format!("invalid parts {value}: expected {kinds}"))
    }
}

impl From<Parts> for toml::Value {
    fn from(parts: Parts) -> Self {
        match parts {
            Parts::Auto => Self::String("auto".into()),
            Parts::Count(n) => Self::Integer(n as i64),
            Parts::Levels { machines, workers } => Self::String(format!("{machines}x{workers}")),
        }
    }
}
