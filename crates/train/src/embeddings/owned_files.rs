//! Rows of a checkpoint in files of their owners.
//!
//! Tables larger than memory are not gathered on one rank: each writes its own rows beside the others', in files that
//! name the epoch. The checkpoint refers to them, and is written when all are complete. Ranks that continue read those that
//! have their rows, however many wrote them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gnarl_common::staging::AtomicFile;
use gnarl_common::{Buf, BufMut, Context, Error, Kind, Result, ResultExt, Spool};
use gnarl_nn::state::sealed;
use gnarl_nn::state::stream::Named;
use gnarl_store::RowSource;
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

use super::Table;
use crate::faults;

/// Folder of files of owners, within the run's.
pub const EMBEDDINGS: &str = "embeddings";

/// The files that a checkpoint refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedFiles {
    /// Epochs finished.
    pub epoch: usize,
    /// Number of ranks that wrote a file each.
    pub ranks: usize,
    /// False if the evaluation after the last epoch had not ended.
    #[serde(default = "yes")]
    pub evaluated: bool,
}

fn yes() -> bool {
    true
}

impl OwnedFiles {
    /// The file of a rank's rows of table number `table`.
    fn path(self, dir: &Path, table: usize, rank: usize) -> PathBuf {
        let Self { epoch, ranks, evaluated } = self;
        // The best rows may differ before and after an evaluation, and the checkpoint in force may be either.
        let stage = if evaluated { "" } else { "-unevaluated" };
        let name = format!("table-{table}.epoch-{epoch}{stage}.rank-{rank}-of-{ranks}.safetensors");
        dir.join(EMBEDDINGS).join(name)
    }

    /// Writes this rank's rows of all tables to the run's folder `dir`.
    ///
    /// # Errors
    /// If the disk is full; files of earlier checkpoints stay.
    pub fn write(self, dir: &Path, tables: &[Table]) -> Result<()> {
        for (number, table) in tables.iter().enumerate() {
            faults::reached("embeddings");
            let path = self.path(dir, number, table.owners.rank());
            let written = table.write(&path);
            let advised =
                written.map_err(|e| e.hint("the previous checkpoint can be resumed with --resume"));
            advised.while_doing(|| "writing embeddings of the checkpoint")?;
            faults::reached("embeddings written");
        }
        Ok(())
    }

    /// Removes the files of earlier checkpoints. All ranks have written theirs, and the checkpoint that refers to them.
    ///
    /// # Errors
    /// If the folder cannot be read, or files not removed.
    pub fn remove_others(self, dir: &Path, tables: usize) -> Result<()> {
        let folder = dir.join(EMBEDDINGS);
        let paths = |table| (0..self.ranks).map(move |rank| self.path(dir, table, rank));
        let current: Vec<PathBuf> = (0..tables).flat_map(paths).collect();
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            let ours = path.extension().is_some_and(|extension| extension == "safetensors");
            if ours && !current.contains(&path) {
                match std::fs::remove_file(&path) {
                    // Another rank was faster.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    removed => removed.at(&path)?,
                }
            }
        }
        Ok(())
    }

    /// Restores this rank's rows of all tables; returns whether the files have rows of a best evaluation.
    ///
    /// # Errors
    /// If a file is damaged, of another table, or not on this host.
    pub fn read(self, dir: &Path, tables: &mut [Table]) -> Result<bool> {
        let mut best = false;
        for (number, table) in tables.iter_mut().enumerate() {
            let own = table.owners.rank();
            let mut missing = table.rows.ids().len();
            // Ranks that are as many as before have their own rows in one file.
            let first = (table.owners.ranks() == self.ranks).then_some(own);
            let others = (0..self.ranks).filter(|&rank| Some(rank) != first);
            let mut kept = None;
            for rank in first.into_iter().chain(others) {
                if missing == 0 {
                    break;
                }
                let path = self.path(dir, number, rank);
                let reading = || format!("reading {}", path.display());
                missing -= table.read(&path, rank, &mut kept).while_doing(reading)?;
            }
            if missing > 0 {
                let (name, place) = (&table.name, dir.join(EMBEDDINGS));
                let message = format!("{}: {missing} rows of {name} are missing", place.display());
                return Err(Error::invalid(message)
                    .hint("the checkpoint belongs to another graph or model configuration"));
            }
            if let Some(kept) = kept {
                table.set_best(kept);
                best = true;
            }
        }
        Ok(best)
    }
}

impl Table {
    /// Writes the own rows to a file.
    fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let (state, steps) = self.rows.state();
        let mut ids = Spool::in_folder(ROWS * size_of::<u64>(), folder);
        let mut piece = Vec::with_capacity(ROWS);
        for id in self.rows.ids().iter() {
            piece.push(id);
            if piece.len() == ROWS {
                ids.append(&piece)?;
                piece.clear();
            }
        }
        ids.append(&piece)?;
        let ids = ids.finish()?;
        let named = |name: &str, dtype, each: usize, bytes| Named {
            name: name.into(),
            dtype,
            shape: vec![ids.len(), each],
            bytes,
        };
        let (width, size) = (self.rows.width(), self.rows.state_width());
        let (rows, state, steps) = (self.rows.values().scan(), state.scan(), steps.scan());
        let best = self.kept().map(BufMut::scan);
        let mut tensors = vec![
            named("ids", Dtype::U64, 1, bytemuck::cast_slice(&ids)),
            named("rows", Dtype::F32, width, bytemuck::cast_slice(&rows)),
            named("state", Dtype::F32, size, bytemuck::cast_slice(&state)),
            named("steps", Dtype::U32, 1, bytemuck::cast_slice(&steps)),
        ];
        if let Some(best) = &best {
            tensors.push(named("best", Dtype::F32, width, bytemuck::cast_slice(best)));
        }
        let metadata = BTreeMap::from([("table".to_string(), self.name.clone())]);
        let mut file = AtomicFile::create(path)?;
        sealed::write(&mut file, &tensors, metadata)?.at(path)?;
        file.commit()
    }

    /// Restores the rows that are own ones of the file that `rank` wrote, and those of the best evaluation if it has some;
    /// returns their number.
    fn read(&mut self, path: &Path, rank: usize, kept: &mut Option<BufMut<f32>>) -> Result<usize> {
        if !path.exists() {
            return Err(Error::new(Kind::Io, "no such file").hint(format!(
                "rank {rank} wrote it, perhaps on another host: continue with as many ranks on the same hosts, or put \
                 the run's folder on a file system that all of them share"
            )));
        }
        sealed::check(path).map_err(|e| e.hint(ANEW))?;
        let bytes = Buf::map(path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let (width, size) = (self.rows.width(), self.rows.state_width());
        let count = file.tensor("ids").map_err(damaged)?.shape().first().copied().unwrap_or(0);
        let of = |name: &str, dtype: Dtype, each: usize| -> Result<Range<usize>> {
            let tensor = file.tensor(name).map_err(damaged)?;
            if tensor.dtype() != dtype || tensor.shape() != [count, each] {
                return Err(Error::invalid(format!(
                    "invalid '{name}': expected {dtype:?} of shape [{count}, {each}], found {:?} of shape {:?}",
                    tensor.dtype(),
                    tensor.shape()
                ))
                .hint("the checkpoint belongs to another graph or model configuration"));
            }
            let start = tensor.data().as_ptr().addr() - bytes.as_ptr().addr();
            Ok(start..start + tensor.data().len())
        };
        let cut = || Error::invalid("the file is truncated");
        let floats = |name: &str, each| bytes.values(of(name, Dtype::F32, each)?).ok_or_else(cut);
        let ids: Buf<u64> = bytes.values(of("ids", Dtype::U64, 1)?).ok_or_else(cut)?;
        let steps: Buf<u32> = bytes.values(of("steps", Dtype::U32, 1)?).ok_or_else(cut)?;
        let (rows, state): (Buf<f32>, Buf<f32>) = (floats("rows", width)?, floats("state", size)?);
        let best: Option<Buf<f32>> = match file.names().contains(&"best") {
            true => Some(floats("best", width)?),
            false => None,
        };
        if best.is_some() && kept.is_none() {
            *kept = Some(BufMut::zeros(self.rows.values().len(), &self.home)?);
        }
        let mut found = 0;
        let mut place = 0;
        while place < ids.len() {
            let Some(first) = self.rows.ids().row(ids[place]) else {
                place += 1;
                continue;
            };
            // Rows that follow each other on both sides are copied together.
            let most = ROWS.min(ids.len() - place);
            let same = |&next: &usize| self.rows.ids().row(ids[place + next]) == Some(first + next);
            let together = 1 + (1..most).take_while(same).count();
            let run = place..place + together;
            let of = |each: usize| run.start * each..run.end * each;
            let (rows, state) = (&rows[of(width)], &state[of(size)]);
            self.rows.restore_some(first, rows, state, &steps[run.clone()]);
            if let (Some(best), Some(kept)) = (&best, kept.as_mut()) {
                kept[first * width..(first + together) * width].copy_from_slice(&best[of(width)]);
            }
            found += together;
            place = run.end;
        }
        Ok(found)
    }
}

/// Hint at the remedy of damage.
const ANEW: &str = "start anew with --restart, or copy the run's folder from elsewhere";

/// Most rows copied together.
const ROWS: usize = 1 << 16;

fn damaged(e: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the file is damaged: {e}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_common::Home;
    use gnarl_engine::{Communicator, local};

    use super::super::TableSpec;
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);

    fn folder(dir: &Path) -> Home {
        let home = dir.join(EMBEDDINGS);
        std::fs::create_dir_all(&home).unwrap();
        Home::Folder(home)
    }

    fn table(comm: &dyn Communicator, home: &Home) -> Result<Table> {
        TableSpec::of_entities(11, 2).share(None, (comm.rank(), comm.size()), home)
    }

    /// Writes the rows of `ranks` ranks after an update, with a best evaluation before it if `best`.
    fn written(dir: &Path, ranks: usize, best: bool) -> Vec<Vec<f32>> {
        let home = folder(dir);
        let files = OwnedFiles { epoch: 3, ranks, evaluated: true };
        let all = local::run(ranks, DEADLINE, |comm| {
            let mut own = table(comm, &home)?;
            if best {
                own.keep_latest();
            }
            let ids: Vec<u64> = own.rows().ids().iter().filter(|id| id % 2 == 0).collect();
            let summed = own.rows().sum(&ids, &vec![0.5; 2 * ids.len()])?;
            own.apply(&summed, 0.1)?;
            let best = own.best_on_first(comm)?.values.to_vec();
            let rows = own.gather_to_root(comm)?.values.to_vec();
            files.write(dir, &[own])?;
            Ok([rows, best])
        });
        all.unwrap().swap_remove(0).into()
    }

    #[test]
    fn ranks_go_on_from_the_rows_that_others_wrote() {
        for (before, after, best) in [(1, 3, true), (3, 3, false), (3, 2, true), (4, 1, false)] {
            let dir = tempfile::tempdir().unwrap();
            let expected = written(dir.path(), before, best);
            let home = folder(dir.path());
            let files = OwnedFiles { epoch: 3, ranks: before, evaluated: true };
            let all = local::run(after, DEADLINE, |comm| {
                let mut own = [table(comm, &home)?];
                assert_eq!(files.read(dir.path(), &mut own)?, best);
                let rows = own[0].gather_to_root(comm)?.values.to_vec();
                let steps = own[0].whole(comm)?.steps.to_vec();
                Ok((rows, own[0].best_on_first(comm)?.values.to_vec(), steps))
            });
            let (rows, kept, steps) = all.unwrap().swap_remove(0);
            assert_eq!(rows, expected[0], "{before} to {after}");
            assert_eq!(steps, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
            if best {
                assert_eq!(kept, expected[1]);
                assert_ne!(kept, rows);
            }
        }
    }

    #[test]
    fn earlier_files_go_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), 2, false);
        let old = OwnedFiles { epoch: 1, ranks: 1, evaluated: true }.path(dir.path(), 0, 0);
        let notes = dir.path().join(EMBEDDINGS).join("notes.txt");
        for path in [&old, &notes] {
            std::fs::write(path, "x").unwrap();
        }
        OwnedFiles { epoch: 3, ranks: 2, evaluated: true }.remove_others(dir.path(), 1).unwrap();
        assert!(!old.exists() && notes.exists());
        assert_eq!(std::fs::read_dir(dir.path().join(EMBEDDINGS)).unwrap().count(), 3);
    }

    #[test]
    fn damage_and_absence_are_told() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), 2, false);
        let files = OwnedFiles { epoch: 3, ranks: 2, evaluated: true };
        let home = folder(dir.path());
        let error = |count: u64| {
            let spec = TableSpec::of_entities(count, 2);
            let mut tables = [spec.share(None, (0, 1), &home).unwrap()];
            files.read(dir.path(), &mut tables).unwrap_err().to_string()
        };
        assert!(error(12).contains("1 rows of entity are missing"), "{}", error(12));
        let path = files.path(dir.path(), 0, 1);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        let text = error(11);
        assert!(text.contains("rank-1-of-2") && text.contains("damaged"), "{text}");
        let last = bytes.len() - 1;
        let flipped = [&bytes[..last], &[bytes[last] ^ 1]].concat();
        std::fs::write(&path, flipped).unwrap();
        let text = error(11);
        assert!(text.contains("rank-1-of-2") && text.contains("its checksum differs"), "{text}");
        std::fs::remove_file(&path).unwrap();
        let text = error(11);
        assert!(text.contains("rank-1-of-2") && text.contains("no such file"), "{text}");
        assert!(text.contains("rank 1 wrote it"), "{text}");
        let wide = TableSpec::of_entities(11, 3).share(None, (0, 1), &home).unwrap();
        let text = files.read(dir.path(), &mut [wide]).unwrap_err().to_string();
        assert!(text.contains("invalid 'rows': expected F32 of shape [5, 3]"), "{text}");
    }
}
