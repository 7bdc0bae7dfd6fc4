//! Checkpoints: everything a killed run needs to go on to the same numbers.
//!
//! One safetensors file holds weights, best weights and optimizer state; its metadata holds the
//! position; the epochs so far are in `metrics.jsonl`, so that a checkpoint is no larger late in a run. It is written beside the old one and renamed over it, so a crash leaves
//! the old or the new.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use gnarl_graph::{Context, Error, Result, ResultExt};
use gnarl_nn::Params;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::faults;
use crate::state::{Progress, TrainState};

/// File name within the run's folder.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// Writes the state to `dir`.
///
/// # Errors
/// If the disk is full or the folder not writable; the previous checkpoint stays.
pub fn save(dir: &Path, state: &TrainState) -> Result<()> {
    faults::reached("checkpoint");
    let mut tensors = vec![
        ("weights".to_string(), state.params.flat()),
        ("best".to_string(), state.best.as_slice()),
    ];
    for (owner, entries) in &state.optimizers {
        for (name, values) in entries {
            tensors.push((format!("optimizer.{owner}.{name}"), values));
        }
    }
    let progress = serde_json::to_string(&state.progress).map_err(corrupt)?;
    let metadata = HashMap::from([("progress".to_string(), progress)]);
    let written = write(&dir.join(CHECKPOINT), &tensors, metadata);
    let advised = written.map_err(|e| e.hint("the run can go on from the one before: --resume"));
    advised.while_doing(|| "writing the checkpoint")
}

/// Writes flat arrays atomically.
fn write(
    path: &Path,
    tensors: &[(String, &[f32])],
    metadata: HashMap<String, String>,
) -> Result<()> {
    let mut views = Vec::new();
    for (name, values) in tensors {
        let bytes = bytemuck::cast_slice(values);
        let view = TensorView::new(Dtype::F32, vec![values.len()], bytes).map_err(corrupt)?;
        views.push((name.as_str(), view));
    }
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(corrupt)?;
    atomic_write(path, &bytes)
}

/// Replaces `path` by `bytes`, entirely or not at all.
///
/// # Errors
/// If the bytes cannot be written; nothing is left behind then.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<()> {
    let tmp = path.with_extension(format!("tmp-{}", std::process::id()));
    let written = (|| {
        let mut file = File::create(&tmp).at(&tmp)?;
        file.write_all(bytes).at(&tmp)?;
        file.sync_all().at(&tmp)?;
        faults::reached("replace");
        std::fs::rename(&tmp, path).at(path)
    })();
    if written.is_err() {
        // The error already says what failed; the leftover is only tidied away.
        let _ = std::fs::remove_file(&tmp);
    }
    written
}

/// The bytes of the checkpoint in `dir`.
///
/// # Errors
/// If there is none.
pub fn read(dir: &Path) -> Result<Vec<u8>> {
    let path = dir.join(CHECKPOINT);
    std::fs::read(&path).at(&path)
}

/// The state that the bytes of a checkpoint hold.
///
/// # Errors
/// If they are damaged, or of another model.
pub fn decode(bytes: &[u8], params: Params) -> Result<TrainState> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
    let progress = metadata.metadata().as_ref().and_then(|m| m.get("progress"));
    let progress = progress.ok_or_else(|| Error::invalid("it holds no training progress"))?;
    let progress: Progress = serde_json::from_str(progress).map_err(corrupt)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(corrupt)?;
    let mut state = TrainState::new(params);
    state.progress = progress;
    let mut optimizers: BTreeMap<usize, Vec<(String, Vec<f32>)>> = BTreeMap::new();
    for (name, view) in tensors.tensors() {
        let values: Vec<f32> = view
            .data()
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().expect("four bytes")))
            .collect();
        match name.strip_prefix("optimizer.").and_then(|rest| rest.split_once('.')) {
            Some((owner, entry)) => {
                let owner = owner.parse().map_err(corrupt)?;
                optimizers.entry(owner).or_default().push((entry.into(), values));
            }
            None if name == "weights" => fill(state.params.flat_mut(), &values)?,
            None => fill(&mut state.best, &values)?,
        }
    }
    state.optimizers = optimizers;
    Ok(state)
}

fn fill(target: &mut [f32], values: &[f32]) -> Result<()> {
    if target.len() != values.len() {
        return Err(Error::invalid(format!(
            "it has {} weights, the model {}",
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
mod tests {
    use super::*;
    use gnarl_graph::rng::Key;
    use gnarl_nn::{Init, ParamsBuilder};

    fn params() -> Params {
        let mut builder = ParamsBuilder::new(Key::new(3));
        builder.add("w", 4, 5, Init::XavierUniform);
        builder.build()
    }

    #[test]
    fn state_survives_a_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = TrainState::new(params());
        state.progress.epoch = 7;
        state.progress.best_valid.insert("accuracy".into(), 0.8123456789);
        state.best[3] = -2.5;
        state.optimizers.insert(0, vec![("m".into(), vec![1.0; 20]), ("step".into(), vec![7.0])]);
        state.optimizers.insert(3, vec![("m".into(), vec![0.5; 20])]);
        save(dir.path(), &state).unwrap();
        let back = decode(&read(dir.path()).unwrap(), params()).unwrap();
        assert_eq!(back.params.flat(), state.params.flat());
        assert_eq!(back.best, state.best);
        assert_eq!(back.progress, state.progress);
        assert_eq!(back.optimizers[&3], state.optimizers[&3]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), &TrainState::new(params())).unwrap();
        let path = dir.path().join(CHECKPOINT);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let text = decode(&read(dir.path()).unwrap(), params()).unwrap_err().to_string();
        assert!(text.contains("damaged"), "{text}");
    }
}
