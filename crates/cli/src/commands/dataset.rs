//! The dataset of a run file: opened, or imported by its section `[dataset.import]`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use gnarl_common::{Context, Error, Result};
use gnarl_config::RunConfig;
use gnarl_config::{ImportSection, home_of};
use gnarl_graph::{MANIFEST, Manifest};
use gnarl_objects::is_uri;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{import, objects};
use crate::output::json;

/// The import request of a run file; stored with the dataset, so that another run file with the
/// same place and a different request does not get it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Request {
    importer: String,
    /// Values of each option, with full paths.
    options: BTreeMap<String, Vec<String>>,
    /// Stamps of the files among them.
    sources: BTreeMap<PathBuf, Stamp>,
    /// The folder to which relative names refer.
    #[serde(skip)]
    base: PathBuf,
}

/// File metadata that reveals most changes without reading the file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// Seconds since 1970.
    modified: u64,
    /// CRC-32 of a file, read once when it is imported: a copy or a checkout changes times alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<u32>,
}

/// Imports the dataset if the run file says how and it does not exist. Where another import has
/// taken the place, it goes beside it, and `dataset.path` follows.
///
/// # Errors
/// Those of the import; [`gnarl_common::Kind::Usage`] if files changed since they were imported.
pub fn prepare(config: &mut RunConfig, run_file: &Path) -> Result<()> {
    let given = config.dataset.path.clone();
    if find(config, run_file)? {
        return Ok(());
    }
    let Some(section) = &config.dataset.import else { return Ok(()) };
    let out = &config.dataset.path;
    if *out != given {
        tracing::warn!(
            "{} was imported from other files or with other options; this run's dataset goes to {}",
            given.display(),
            out.display()
        );
    }
    tracing::info!("importing {} ({})", out.display(), section.format);
    let request = Request::of(section, base(run_file))?.with_checksums();
    let words = request.words(out);
    import::run_words(&words, json(&request)).while_doing(|| "dataset.import").map(drop)
}

/// Sets `dataset.path` to the dataset that the section asks for, or to where it is to be made;
/// `true` if it is there, or not needed. A dataset in an object store is fetched into the cache.
///
/// # Errors
/// If it cannot be fetched; [`gnarl_common::Kind::Usage`] if files changed since they were imported.
pub fn find(config: &mut RunConfig, run_file: &Path) -> Result<bool> {
    // A run on parts reads nothing else.
    if config.partition.servers.is_some() && config.partition.path.is_some() {
        return Ok(true);
    }
    let Some(section) = &config.dataset.import else {
        objects::local(&config.dataset.path)?;
        return Ok(true);
    };
    let given = config.dataset.path.clone();
    if is_uri(&given) {
        return Err(Error::usage(format!("{}: imports are made on this host", given.display()))
            .hint("set dataset.path to a folder, or leave out [dataset.import]"));
    }
    let request = Request::of(section, base(run_file))?;
    for number in 1.. {
        let place = numbered(&given, number);
        let there = place.join(MANIFEST).exists();
        if !there || request.is_of(&place)? {
            config.dataset.path = place;
            return Ok(there);
        }
    }
    Ok(false)
}

/// The folder to which relative names in the section refer.
fn base(run_file: &Path) -> &Path {
    run_file.parent().unwrap_or(Path::new("."))
}

/// `path`, with a number appended to its name from 2 on.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.into();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

impl Request {
    fn of(section: &ImportSection, base: &Path) -> Result<Self> {
        let mut options = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for (name, value) in &section.options {
            let values = match value {
                toml::Value::Boolean(true) => vec![],
                toml::Value::Boolean(false) => continue,
                toml::Value::Array(values) => values.iter().map(plain).collect::<Result<_>>()?,
                value => vec![plain(value)?],
            };
            let mut full = Vec::new();
            for value in values {
                let (value, source) = relocate(&expand(&value)?, base)?;
                full.push(value);
                sources.extend(source.and_then(|path| Some((path.clone(), stamp(&path)?))));
            }
            options.insert(name.replace('_', "-"), full);
        }
        Ok(Self { importer: section.format.clone(), options, sources, base: base.into() })
    }

    /// The request with the checksum of each file, by which later runs know it again.
    fn with_checksums(mut self) -> Self {
        for (path, stamp) in &mut self.sources {
            stamp.checksum = checksum(path);
        }
        self
    }

    /// The words of the equivalent `gnarl import` command.
    fn words(&self, out: &Path) -> Vec<String> {
        let mut words = vec![self.importer.clone()];
        for (name, values) in &self.options {
            let flag = format!("--{name}");
            if values.is_empty() {
                words.push(flag.clone());
            }
            words.extend(values.iter().flat_map(|value| [flag.clone(), value.clone()]));
        }
        words.extend(["--out".into(), out.display().to_string()]);
        words
    }

    /// Returns whether two requests give the same dataset, regardless of their memory limits.
    fn same(&self, kept: &Self) -> bool {
        let decisive = |request: &Self| {
            let options = request.options.clone().into_iter();
            options.filter(|(name, _)| name != "memory").collect::<BTreeMap<_, _>>()
        };
        let now = decisive(self);
        let before = decisive(kept);
        self.importer == kept.importer
            && now.keys().eq(before.keys())
            && now.values().flatten().count() == before.values().flatten().count()
            && now.values().flatten().zip(before.values().flatten()).all(|(now, before)| {
                now == before || kept.was_file(before) && self.full(now) == *before
            })
    }

    /// Returns whether a value named a file when the import was made. The file may be gone by now,
    /// and then looks like any other value.
    fn was_file(&self, value: &str) -> bool {
        let (_, file) = split(value);
        self.sources.contains_key(Path::new(file))
    }

    /// A value as a full path.
    fn full(&self, value: &str) -> String {
        let (prefix, file) = split(value);
        let moved = self.base.join(file);
        format!("{prefix}{}", std::path::absolute(&moved).unwrap_or(moved).display())
    }

    /// Returns whether the dataset at `place` satisfies this request.
    ///
    /// # Errors
    /// If it does, but from files that have changed since.
    fn is_of(&self, place: &Path) -> Result<bool> {
        let kept = Manifest::read(place)?.request;
        if kept == Value::Null {
            tracing::info!(
                "{} was not made by a run file; dataset.import is not used",
                place.display()
            );
            return Ok(true);
        }
        // Another version may have stored another format, which counts as another import.
        let Ok(kept) = serde_json::from_value::<Self>(kept) else { return Ok(false) };
        if !self.same(&kept) {
            return Ok(false);
        }
        let changed = self.sources.iter().find(|(path, now)| {
            kept.sources.get(*path).is_none_or(|before| !now.is_of_same(path, before))
        });
        match changed {
            None => Ok(true),
            Some((path, _)) => Err(Error::usage(format!(
                "{}: changed since {} was imported from it",
                path.display(),
                place.display()
            ))
            .hint("to import it again remove the dataset, or name another dataset.path")),
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(Stamp { bytes: metadata.len(), modified, checksum: None })
}

impl Stamp {
    /// Returns whether the file at `path`, whose stamp this is, has the content it had `before`. It is read only where
    /// its time alone differs.
    fn is_of_same(&self, path: &Path, before: &Self) -> bool {
        if self.bytes != before.bytes {
            return false;
        }
        self.modified == before.modified
            || before.checksum.is_some() && checksum(path) == before.checksum
    }
}

/// The CRC-32 of a file; none of a folder, or of what cannot be read.
fn checksum(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok().filter(|_| path.is_file())?;
    let mut hasher = crc32fast::Hasher::new();
    let mut block = vec![0; 1 << 18];
    loop {
        match file.read(&mut block).ok()? {
            0 => return Some(hasher.finalize()),
            read => hasher.update(&block[..read]),
        }
    }
}

fn plain(value: &toml::Value) -> Result<String> {
    match value {
        toml::Value::String(s) => Ok(s.clone()),
        toml::Value::Integer(_) | toml::Value::Float(_) => Ok(value.to_string()),
        other => Err(Error::usage(format!("invalid dataset.import.options '{other}'"))),
    }
}

/// Replaces `${NAME}` by the environment variable.
fn expand(value: &str) -> Result<String> {
    let Some((before, rest)) = value.split_once("${") else { return Ok(value.into()) };
    let Some((name, after)) = rest.split_once('}') else {
        return Err(Error::usage(format!(
            "dataset.import.options: '{value}' has no closing brace"
        )));
    };
    let found = std::env::var(name).map_err(|_| {
        Error::usage(format!("dataset.import.options: {name} is not set in the environment"))
            .hint(format!("export {name}=…, or import the dataset by hand"))
    })?;
    Ok(format!("{before}{found}{}", expand(after)?))
}

/// Resolves relative file names against the run file's folder, also behind `name=`; returns the
/// file if it exists.
fn relocate(value: &str, base: &Path) -> Result<(String, Option<PathBuf>)> {
    let (prefix, file) = split(value);
    let moved = base.join(home_of(Path::new(file))?);
    if file.is_empty() || !moved.exists() {
        return Ok((value.into(), None));
    }
    let full = std::path::absolute(&moved).unwrap_or(moved);
    Ok((format!("{prefix}{}", full.display()), Some(full)))
}

/// Splits a value into `name=`, or nothing, and the rest.
fn split(value: &str) -> (&str, &str) {
    value.split_at(value.rfind('=').map_or(0, |place| place + 1))
}
