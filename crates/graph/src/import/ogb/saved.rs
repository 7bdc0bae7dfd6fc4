//! Splits saved by torch: `split_dict.pt`, or `train.pt`, `valid.pt` and `test.pt`.

use std::path::{Path, PathBuf};

use gnarl_common::{Context, Error, Result};

use crate::import::splits::add_split;
use crate::import::torch::{Item, TorchFile};
use crate::manifest::DEFAULT_NODE_TYPE;
use crate::writer::DatasetWriter;

pub(super) const NAMES: [&str; 3] = ["train", "valid", "test"];

/// Keys of edges, of which the training split has one.
const EDGES: [&str; 3] = ["edge", "head", "source_node"];

/// Files of the splits.
pub(super) struct Saved {
    /// One file with all splits, or one per split.
    files: Vec<PathBuf>,
    memory: u64,
}

impl Saved {
    /// Looks for such files in `dir`; reading one takes at most `memory` bytes.
    pub fn find(dir: &Path, memory: u64) -> Option<Self> {
        let files = match dir.join("split_dict.pt") {
            one if one.exists() => vec![one],
            _ => NAMES.map(|name| dir.join(format!("{name}.pt"))).into(),
        };
        files[0].exists().then_some(Self { files, memory })
    }

    /// Passes split number `split` to `f`.
    pub fn with<T>(&self, split: usize, f: impl FnOnce(&Item<'_>) -> Result<T>) -> Result<T> {
        if let Some(path) = self.files.get(split).filter(|_| self.files.len() > 1) {
            return f(&TorchFile::open(path, self.memory)?.root());
        }
        let file = TorchFile::open(&self.files[0], self.memory)?;
        f(&required(&file.root(), NAMES[split])?)
    }

    /// Returns whether the splits are of edges.
    pub fn of_edges(&self) -> Result<bool> {
        self.with(0, |train| Ok(EDGES.iter().any(|key| train.get(key).is_some())))
    }

    /// Writes splits of nodes: of the only type, or below the name of each.
    pub fn write(&self, writer: &mut DatasetWriter) -> Result<()> {
        for (split, name) in NAMES.iter().enumerate() {
            self.with(split, |item| {
                if item.shape().is_some() {
                    return write_type(writer, DEFAULT_NODE_TYPE, name, item);
                }
                for ntype in item.keys() {
                    write_type(writer, ntype, name, &required(item, ntype)?)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The value of `key` in a dict.
pub(super) fn required<'a>(item: &Item<'a>, key: &str) -> Result<Item<'a>> {
    item.get(key).ok_or_else(|| {
        let known = item.keys().join(", ");
        item.error(format!("has no '{key}'")).hint(format!("it has: {known}"))
    })
}

fn write_type(writer: &mut DatasetWriter, ntype: &str, split: &str, item: &Item<'_>) -> Result<()> {
    let ids = item.integers()?;
    if let Some(row) = ids.iter().position(|&id| id < 0) {
        return Err(item.error(format!("row {row}: id {} is negative", ids[row])));
    }
    let ids = ids.into_iter().map(|id| id as u64).collect();
    add_split(writer, ntype, split, ids).while_doing(|| item.name())
}

/// The error of an array of another shape.
pub(super) fn wrong_shape(item: &Item<'_>, needed: &str) -> Error {
    match item.shape() {
        Some(shape) => item.error(format!("has shape {shape:?}, {needed}")),
        None => item.error("is no tensor and no array"),
    }
}
