//! Checkpoints: the complete state from which a killed run continues to the same results.
//!
//! One safetensors file holds weights, best weights and optimizer state, including embeddings; its
//! metadata holds the position. The epochs so far are in `metrics.jsonl`, so that a checkpoint is
//! no larger late in a run. It is written beside the old one and renamed over it, so a crash leaves
//! the old or the new. Embeddings larger than memory are in files of their owners, which the metadata names.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Buf, Context, Error, Result, ResultExt};
use gnarl_nn::state::stream::{self, Named};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use crate::embeddings::{OwnedFiles, Table, Whole};
use crate::faults;
use crate::state::{OptimizerState, Progress, TrainState};

/// File name within the run's folder.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// Prefix of the arrays of the outer optimizer.
const OUTER: &str = "outer.";

/// Metadata key of the files of owners.
const OWNED: &str = "embeddings";

/// Metadata key of the checksum of all other metadata and of the arrays; checkpoints of earlier versions have none.
const CHECKSUM: &str = "crc32";

/// Writes the state to `dir`, with all rows of each table, so that a run can continue with any
/// number of ranks. Rows in files were written by their owners before.
///
/// # Errors
/// If the disk is full or the folder not writable; the previous checkpoint stays.
pub fn save(dir: &Path, state: &TrainState, tables: &[Whole<'_>]) -> Result<()> {
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
    let mut metadata = HashMap::from([("progress".to_string(), progress)]);
    if let Some(files) = owned_files(state) {
        let files = serde_json::to_string(&files).map_err(corrupt)?;
        metadata.insert(OWNED.to_string(), files);
    }
    let arrays = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.bytes));
    let checksum = checksum(&metadata, arrays.collect());
    metadata.insert(CHECKSUM.to_string(), format!("{checksum:08x}"));
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
fn write(path: &Path, tensors: &[Named<'_>], metadata: HashMap<String, String>) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    stream::write(&mut file, tensors, Some(metadata))?.at(path)?;
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

/// The checksum of metadata and arrays, but for the one among the metadata: CRC-32 of names, lengths and contents.
fn checksum(metadata: &HashMap<String, String>, mut arrays: Vec<(&str, &[u8])>) -> u32 {
    let texts = metadata.iter().filter(|(name, _)| *name != CHECKSUM);
    let mut texts: Vec<_> = texts.map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    texts.sort_unstable();
    arrays.sort_unstable_by_key(|(name, _)| *name);
    let mut crc = crc32fast::Hasher::new();
    for (name, bytes) in texts.into_iter().chain(arrays) {
        crc.update(format!("{name} {} ", bytes.len()).as_bytes());
        crc.update(bytes);
    }
    crc.finalize()
}

/// The bytes of the checkpoint in `dir`, whose checksum is compared.
///
/// # Errors
/// If there is none, or it is damaged.
pub fn read(dir: &Path) -> Result<Buf<u8>> {
    let path = dir.join(CHECKPOINT);
    let bytes = Buf::map(&path)?;
    verify(&bytes).map_err(|e| e.context(format!("reading {}", path.display())))?;
    Ok(bytes)
}

/// Compares the checksum of a checkpoint, if it has one.
///
/// # Errors
/// If it differs, or the file has another form.
fn verify(bytes: &[u8]) -> Result<()> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
    let none = HashMap::new();
    let metadata = metadata.metadata().as_ref().unwrap_or(&none);
    let Some(expected) = metadata.get(CHECKSUM) else { return Ok(()) };
    let tensors = SafeTensors::deserialize(bytes).map_err(corrupt)?;
    let arrays: Vec<_> = tensors.iter().map(|(name, tensor)| (name, tensor.data())).collect();
    match format!("{:08x}", checksum(metadata, arrays)) == *expected {
        true => Ok(()),
        false => Err(corrupt("its checksum differs")
            .hint("start anew with --restart, or copy the run's folder from elsewhere")),
    }
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
mod tests {
    use std::time::Duration;

    use super::*;
    use gnarl_common::Home;
    use gnarl_common::rng::Key;
    use gnarl_engine::{Communicator, local};
    use gnarl_nn::{Init, ParamsBuilder};

    use crate::embeddings::TableSpec;
    use crate::state::Start;

    /// A state with weights and a table of `rows` rows.
    fn start(rows: u64) -> Start {
        let mut builder = ParamsBuilder::new(Key::new(3));
        builder.add("w", 4, 5, Init::XavierUniform);
        let table = TableSpec::of_entities(rows, 2);
        Start { params: builder.build(), tables: vec![table] }
    }

    fn write(dir: &Path, state: &TrainState) {
        let deadline = Duration::from_secs(60);
        let alone = local::run(1, deadline, |rank| {
            let tables = state.tables.iter().map(|table| table.whole(rank));
            save(dir, state, &tables.collect::<Result<Vec<_>>>()?)
        });
        alone.unwrap();
    }

    #[test]
    fn ranks_go_on_from_what_others_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = start(5).share(&[], (0, 1), &Home::Memory).unwrap();
        state.tables[0].rows_mut().unwrap().update(&[2, 4], &[1.0, -1.0, 0.5, 0.0], 0.1).unwrap();
        write(dir.path(), &state);
        let bytes = read(dir.path()).unwrap();
        let all = local::run(3, Duration::from_secs(60), |rank| {
            let own =
                decode(&bytes, dir.path(), start(5).share(&[], (rank.rank(), 3), &Home::Memory)?)?;
            assert!(own.tables[0].rows().ids().len() < 3, "a share");
            Ok(own.tables[0].fetch(rank, &[0, 1, 2, 3, 4])?.data().to_vec())
        });
        for values in all.unwrap() {
            assert_eq!(values, **state.tables[0].rows().values());
        }
    }

    #[test]
    fn state_survives_a_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = start(3).share(&[], (0, 1), &Home::Memory).unwrap();
        state.progress.epoch = 7;
        state.tables[0].rows_mut().unwrap().update(&[2, 0], &[1.0, -1.0, 0.5, 0.0], 0.1).unwrap();
        state.tables[0].set_best(vec![4.0; 6].into());
        state.progress.best_valid.insert("accuracy".into(), 0.8123456789);
        state.best[3] = -2.5;
        state.optimizers.insert(0, vec![("m".into(), vec![1.0; 20]), ("step".into(), vec![7.0])]);
        state.optimizers.insert(3, vec![("m".into(), vec![0.5; 20])]);
        state.outer = vec![("velocity".into(), vec![0.25; 20])];
        write(dir.path(), &state);
        let bytes = read(dir.path()).unwrap();
        let decode = |rows| {
            decode(&bytes, dir.path(), start(rows).share(&[], (0, 1), &Home::Memory).unwrap())
        };
        let back = decode(3).unwrap();
        assert_eq!(back.params.flat(), state.params.flat());
        assert_eq!(back.best, state.best);
        assert_eq!(back.progress, state.progress);
        assert_eq!(back.optimizers, state.optimizers);
        assert_eq!(back.outer, state.outer);
        let (table, kept) = (&back.tables[0], &state.tables[0]);
        assert_eq!(**table.rows().values(), **kept.rows().values());
        assert_eq!(**table.best(), [4.0; 6]);
        let states = [table, kept]
            .map(|table| (table.rows().state().0.to_vec(), table.rows().state().1.to_vec()));
        assert_eq!(states[0], states[1]);
        let error = decode(4).unwrap_err().to_string();
        assert!(
            error.contains("invalid 'table.entity.rows': expected 4 rows, found 6 values"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let state = || start(3).share(&[], (0, 1), &Home::Memory).unwrap();
        write(dir.path(), &state());
        let path = dir.path().join(CHECKPOINT);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let told = || {
            let decoded = read(dir.path()).and_then(|read| decode(&read, dir.path(), state()));
            decoded.unwrap_err().to_string()
        };
        assert!(told().contains("damaged"), "{}", told());
        // R15: every flip is found, in the metadata, the names and the values.
        for place in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << (place % 8);
            std::fs::write(&path, &flipped).unwrap();
            let found = read(dir.path()).and_then(|read| decode(&read, dir.path(), state()));
            if let Ok(found) = found {
                // Padding of the header, which says nothing.
                assert_eq!(found.progress, state().progress, "byte {place}");
                assert_eq!(found.params.flat(), state().params.flat(), "byte {place}");
            }
        }
        let mut impossible = state();
        impossible.progress.unevaluated = vec![Default::default()];
        write(dir.path(), &impossible);
        assert!(told().contains("damaged: records of 1 epochs after epoch 0"), "{}", told());
    }
}
