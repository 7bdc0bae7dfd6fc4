//! `run.json`: the program, machine and data of a run.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{RunConfig, absolute};
use serde::{Deserialize, Serialize};

use crate::data::prepared::digest;
use crate::run::checkpoint::atomic_write;
use crate::run::handshake::host;

/// File name within the run's folder.
pub const PROVENANCE: &str = "run.json";

/// The origin of a run, as recorded in its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of gnarl.
    pub version: String,
    /// Host of the first rank.
    pub host: String,
    /// Seconds since 1970 at which the run was started.
    pub started: u64,
    /// The dataset, or the partition if no rank has the whole graph.
    pub dataset: PathBuf,
    /// Fingerprint of the data, which changes when it is made anew.
    pub fingerprint: String,
    /// Words of the command that started it; empty if the program did not give them, see
    /// [`Watch::command`](crate::Watch::command).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Digest of the prepared batches that the run trains on, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<String>,
}

impl Provenance {
    /// A run that begins now, by the words `command`.
    ///
    /// # Errors
    /// If prepared batches cannot be read.
    pub fn now(config: &RunConfig, fingerprint: &str, command: Vec<String>) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            host: host(),
            started: since.as_secs(),
            dataset: data(&absolute(config)).into(),
            fingerprint: fingerprint.into(),
            command,
            batches: digest(config)?,
        })
    }

    /// Writes the record to a run's folder.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Error::invalid(format!("{PROVENANCE} cannot be written: {e}")))?;
        atomic_write(&dir.join(PROVENANCE), text.as_bytes())
    }

    /// Reads the record of a run's folder; `None` if an earlier version wrote none.
    pub fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(PROVENANCE);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).at(&path)?;
        let parsed = serde_json::from_str(&text);
        parsed.map(Some).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))
    }

    /// Rejects other data than the run was started with; `hint` names the remedy.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] naming the data.
    pub fn check(&self, config: &RunConfig, fingerprint: &str, hint: &str) -> Result<()> {
        if self.fingerprint == fingerprint {
            return Ok(());
        }
        let place = data(config).display();
        Err(Error::usage(format!(
            "{place}: the data differs from that at the start of the run, whose fingerprint is in {PROVENANCE}"
        ))
        .hint(hint))
    }
}

/// The dataset or partition of a run.
fn data(config: &RunConfig) -> &Path {
    match &config.partition.path {
        Some(path) if config.partition.servers.is_some() => path,
        _ => &config.dataset.path,
    }
}
