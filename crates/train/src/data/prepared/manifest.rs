//! The manifest of prepared batches, `batches.json`.

use std::path::Path;

use gnarl_common::{Error, Result, ResultExt};
use gnarl_config::{BatchSource, RunConfig};
use serde::{Deserialize, Serialize};

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "batches.json";

const FORMAT: &str = "gnarl-batches";
const VERSION: u32 = 1;

/// Prepared batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: String,
    version: u32,
    /// The run that they were prepared for: what batches depend on, as lines of text.
    pub run: Vec<String>,
    /// Ranks that they are shared out to.
    pub ranks: usize,
    /// The batches of each rank in each epoch.
    pub epochs: Vec<Vec<RankBatches>>,
}

/// The batches of a rank in an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankBatches {
    /// Bytes of the file; 0 if there is none, as there are no batches.
    pub bytes: u64,
    /// The batches in their order, those without examples included.
    pub batches: Vec<StoredSpec>,
}

/// A batch in the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredSpec {
    /// Examples of this rank; a batch without any is not in the file.
    pub examples: u32,
    /// CRC-32 of its record batch in the file.
    pub checksum: u32,
    /// True if the optimizer steps after it.
    pub last_of_step: bool,
}

impl Manifest {
    /// The manifest of batches of `run`, lines of text, for so many `ranks`.
    pub fn new(run: &str, ranks: usize, epochs: Vec<Vec<RankBatches>>) -> Self {
        let run = run.lines().map(String::from).collect();
        Self { format: FORMAT.into(), version: VERSION, run, ranks, epochs }
    }

    /// Reads the manifest of the folder `dir`.
    ///
    /// # Errors
    /// If it is missing, or of another format or version.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        let text = std::fs::read_to_string(&path)
            .at(&path)
            .map_err(|e| e.hint("prepare batches by 'gnarl sample RUN.toml --out FOLDER'"))?;
        let wrong = |what: String| Error::invalid(format!("{}: {what}", path.display()));
        let found: Self = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        match (found.format.as_str(), found.version) {
            (FORMAT, VERSION) => Ok(found),
            (format, version) => Err(wrong(format!(
                "{format} of version {version} is not {FORMAT} of version {VERSION}"
            ))),
        }
    }

    /// The file of a rank in an epoch (from 0), in the folder of the manifest.
    pub fn file(epoch: usize, rank: usize) -> String {
        format!("epoch-{}/rank-{rank}.arrow", epoch + 1)
    }
}

/// A digest of the manifest, and with it of all batches, that `config` trains on; none if it draws its batches.
///
/// # Errors
/// If the manifest cannot be read.
pub(crate) fn digest(config: &RunConfig) -> Result<Option<String>> {
    let (BatchSource::Batches, Some(dir)) = (config.sample.source, &config.sample.batches) else {
        return Ok(None);
    };
    let path = dir.join(MANIFEST);
    Ok(Some(format!("{:08x}", crc32fast::hash(&std::fs::read(&path).at(&path)?))))
}
