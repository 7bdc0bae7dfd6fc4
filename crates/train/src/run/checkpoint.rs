//! Checkpoints: the complete state from which a killed run continues to the same results.
//!
//! One safetensors file holds weights, best weights and optimizer state, including embeddings; its
//! metadata holds the position. The epochs so far are in `metrics.jsonl`, so that a checkpoint is
//! no larger late in a run. It is written beside the old one and renamed over it, so a crash leaves
//! the old or the new. Embeddings larger than memory are in files of their owners, which the metadata names.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Buf, Context, Error, Result, ResultExt};
use gnarl_nn::state::sealed;
use gnarl_nn::state::stream::Named;
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use crate::embeddings::{OwnedFiles, Table, Whole};
use crate::faults;
use crate::state::{OptimizerState, Progress, TrainState};

/// File name within the run's folder.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// Metadata key of the checksum of `metrics.jsonl`.
const LINES: &str = "metrics";

/// Prefix of the arrays of the outer optimizer.
const OUTER: &str = "outer.";

/// Metadata key of the files of owners.
const OWNED: &str = "embeddings";

/// Number and CRC-32 of the lines of `metrics.jsonl` that a checkpoint includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// Number of lines.
    pub count: usize,
    /// CRC-32 of them, with their ends.
    pub crc32: u32,
}

/// Writes the state to `dir`, with all rows of each table, so that a run can continue with any
/// number of ranks. Rows in files were written by their owners before, and `lines` are those of the epochs so far.
///
/// # Errors
/// If the disk is full or the folder not writable; the previous checkpoint stays.
pub fn save(
    dir: &Path,
    state: &TrainState,
    tables: &[Whole<'_>],
    lines: Option<Lines>,
) -> Result<()> {
    faults::reached("checkpoint");
    let floats = |name: String, values| flat(name, Dtype::F32, bytemuck::cast_slice(values));
    let mut tensors = vec![
        floats("weights".to_string(), state.params.flat()),
        floats("best".to_string(), &state.best),
    ];
    for (owner, entries) in &state.optimizers {
        for (name, values) in entries {
            tensors.push(floats(format!("optimizer.{owner}.{name}"), values));
        }
    }
    for (name, values) in &state.outer {
        tensors.push(floats(format!("{OUTER}{name}"), values));
    }
    for table in tables {
        for (part, values) in
            [("rows", &table.rows), ("best", &table.best), ("state", &table.state)]
        {
            tensors.push(floats(entry(table.name, part), values));
        }
        let steps = bytemuck::cast_slice(&table.steps);
        tensors.push(flat(entry(table.name, "steps"), Dtype::U32, steps));
    }
    let progress = serde_json::to_string(&state.progress).map_err(corrupt)?;
    let mut metadata = BTreeMap::from([("progress".to_string(), progress)]);
    if let Some(lines) = lines {
        let lines = serde_json::to_string(&lines).map_err(corrupt)?;
        metadata.insert(LINES.to_string(), lines);
    }
    if let Some(files) = owned_files(state) {
        let files = serde_json::to_string(&files).map_err(corrupt)?;
        metadata.insert(OWNED.to_string(), files);
    }
    let written = write(&dir.join(CHECKPOINT), &tensors, metadata);
    let advised =
        written.map_err(|e| e.hint("the previous checkpoint can be resumed with --resume"));
    advised.while_doing(|| "writing the checkpoint")
}

/// The files with the rows of `state`, if rows are in files.
pub fn owned_files(state: &TrainState) -> Option<OwnedFiles> {
    let table = state.tables.first().filter(|table| table.is_in_files())?;
    let evaluated = state.progress.unevaluated.is_empty();
    Some(OwnedFiles { epoch: state.progress.epoch, ranks: table.owners.ranks(), evaluated })
}

/// The name of an array of a table.
fn entry(table: &str, part: &str) -> String {
    format!("table.{table}.{part}")
}

/// A flat array of four-byte values.
fn flat(name: String, dtype: Dtype, bytes: &[u8]) -> Named<'_> {
    Named { name, dtype, shape: vec![bytes.len() / 4], bytes }
}

/// Writes arrays atomically.
fn write(path: &Path, tensors: &[Named<'_>], metadata: BTreeMap<String, String>) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    sealed::write(&mut file, tensors, metadata)?.at(path)?;
    faults::reached("replace");
    file.commit()
}

/// Replaces `path` by `bytes`, entirely or not at all.
///
/// # Errors
/// If the bytes cannot be written; nothing is left behind then.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).at(path)?;
    faults::reached("replace");
    file.commit()
}

/// The bytes of the checkpoint in `dir`, whose checksum is compared.
///
/// # Errors
/// If there is none, or it is damaged.
pub fn read(dir: &Path) -> Result<Buf<u8>> {
    let path = dir.join(CHECKPOINT);
    let checked = sealed::check(&path);
    let hint = "start anew with --restart, or copy the run's folder from elsewhere";
    checked.map_err(|e| e.hint(hint)).while_doing(|| "reading the checkpoint")?;
    Buf::map(&path)
}

/// The number and checksum of the lines of `metrics.jsonl` that a checkpoint includes; none in those of earlier versions.
///
/// # Errors
/// If the bytes are no checkpoint.
pub fn lines(bytes: &[u8]) -> Result<Option<Lines>> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
    let lines = metadata.metadata().as_ref().and_then(|named| named.get(LINES));
    lines.map(|lines| serde_json::from_str(lines).map_err(corrupt)).transpose()
}

/// Decodes the bytes of a checkpoint in `dir` to the state of a rank; `start` is its initial state.
///
/// # Errors
/// If they are damaged, or of another model.
pub fn decode(bytes: &[u8], dir: &Path, start: TrainState) -> Result<TrainState> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
    let named = |name: &str| metadata.metadata().as_ref().and_then(|m| m.get(name));
    let owned = named(OWNED).map(|files| serde_json::from_str(files).map_err(corrupt));
    let owned: Option<OwnedFiles> = owned.transpose()?;
    let progress = named("progress");
    let progress = progress.ok_or_else(|| Error::invalid("the file has no training progress"))?;
    let progress: Progress = serde_json::from_str(progress).map_err(corrupt)?;
    if progress.unevaluated.len() > progress.epoch {
        let (records, epoch) = (progress.unevaluated.len(), progress.epoch);
        return Err(corrupt(format!("records of {records} epochs after epoch {epoch}")));
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(corrupt)?;
    let mut state = start;
    state.progress = progress;
    fill(state.params.flat_mut(), &floats(&tensors, "weights")?)?;
    fill(&mut state.best, &floats(&tensors, "best")?)?;
    match owned {
        Some(files) => {
            if !files.read(dir, &mut state.tables)? && state.progress.best_epoch > 0 {
                state.tables.iter_mut().for_each(Table::keep_latest);
            }
        }
        None => state.tables.iter_mut().try_for_each(|table| restore(table, &tensors))?,
    }
    let mut optimizers: BTreeMap<usize, OptimizerState> = BTreeMap::new();
    let mut names = tensors.names();
    names.sort_unstable();
    let mut outer = OptimizerState::new();
    for name in names {
        if let Some(entry) = name.strip_prefix(OUTER) {
            outer.push((entry.into(), floats(&tensors, name)?));
        }
        let Some(rest) = name.strip_prefix("optimizer.") else { continue };
        let (owner, entry) = rest.split_once('.').ok_or_else(|| corrupt(name))?;
        let owner = owner.parse().map_err(corrupt)?;
        optimizers.entry(owner).or_default().push((entry.into(), floats(&tensors, name)?));
    }
    state.optimizers = optimizers;
    state.outer = outer;
    Ok(state)
}

/// Restores a rank's rows from the arrays of all ranks.
fn restore(table: &mut Table, tensors: &SafeTensors<'_>) -> Result<()> {
    let part = |part: &str| {
        let name = entry(&table.name, part);
        table.own(&floats(tensors, &name)?, &name)
    };
    let (rows, best, kept) = (part("rows")?, part("best")?, part("state")?);
    let name = entry(&table.name, "steps");
    let steps = table.own(&words(tensors, &name)?.collect::<Vec<_>>(), &name)?;
    table.rows_mut()?.restore(&rows, &kept, &steps)?;
    table.restore_best(&best)
}

/// The values of a tensor.
fn floats(tensors: &SafeTensors<'_>, name: &str) -> Result<Vec<f32>> {
    Ok(words(tensors, name)?.map(f32::from_bits).collect())
}

/// A tensor as words of four bytes.
fn words<'a>(tensors: &SafeTensors<'a>, name: &str) -> Result<impl Iterator<Item = u32> + use<'a>> {
    let data = tensors.tensor(name).map_err(corrupt)?.data();
    Ok(data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)))
}

fn fill(target: &mut [f32], values: &[f32]) -> Result<()> {
    if target.len() != values.len() {
        return Err(Error::invalid(format!(
            "expected {1} weights, found {0}",
            values.len(),
            target.len()
        ))
        .hint("the checkpoint belongs to another model configuration"));
    }
    target.copy_from_slice(values);
    Ok(())
}

fn corrupt(e: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the checkpoint is damaged: {e}"))
}

#[cfg(test)]
mod tests;
