//! The writer of prepared batches.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use crc32fast::Hasher;
use gnarl_common::{Error, Result, ResultExt};

use super::manifest::{MANIFEST, Manifest, RankBatches, StoredSpec};

/// A file that sums up what is written between two looks at it.
struct Summed {
    file: BufWriter<File>,
    sum: Hasher,
    bytes: u64,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The file of a rank in an epoch, begun with its first batch.
#[derive(Default)]
struct RankFile {
    writer: Option<FileWriter<Summed>>,
    found: RankBatches,
}

/// Writes the batches of one epoch after the other, those of all ranks side by side.
pub(crate) struct BatchWriter {
    dir: PathBuf,
    /// The epoch being written, by rank.
    now: Vec<RankFile>,
    epochs: Vec<Vec<RankBatches>>,
}

impl BatchWriter {
    /// Batches of so many `ranks`, to the folder `dir`.
    pub fn new(dir: &Path, ranks: usize) -> Self {
        let mut now = Vec::new();
        now.resize_with(ranks, RankFile::default);
        Self { dir: dir.into(), now, epochs: Vec::new() }
    }

    fn path(&self, rank: usize) -> PathBuf {
        self.dir.join(Manifest::file(self.epochs.len(), rank))
    }

    /// Adds a batch of `examples` examples to those of `rank`; none if it has no examples.
    ///
    /// # Errors
    /// If the disk is full, or its columns are others than those before.
    pub fn add(
        &mut self,
        rank: usize,
        batch: Option<&RecordBatch>,
        (examples, last_of_step): (usize, bool),
    ) -> Result<()> {
        let path = self.path(rank);
        let file = &mut self.now[rank];
        let mut checksum = 0;
        if let Some(batch) = batch {
            let writer = match &mut file.writer {
                Some(writer) => writer,
                none => none.insert(begin(&path, batch)?),
            };
            if writer.schema() != batch.schema_ref() {
                return Err(Error::invalid(format!(
                    "{}: a batch has other columns than those before it",
                    path.display()
                )));
            }
            writer.get_mut().sum = Hasher::new();
            writer.write(batch).map_err(|e| failed(&path, e))?;
            checksum = writer.get_ref().sum.clone().finalize();
        }
        file.found.batches.push(StoredSpec { examples: examples as u32, checksum, last_of_step });
        Ok(())
    }

    /// Ends an epoch.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn end_epoch(&mut self) -> Result<()> {
        let mut epoch = Vec::with_capacity(self.now.len());
        for rank in 0..self.now.len() {
            let path = self.path(rank);
            let RankFile { writer, mut found } = std::mem::take(&mut self.now[rank]);
            if let Some(mut writer) = writer {
                writer.finish().map_err(|e| failed(&path, e))?;
                let mut summed = writer.into_inner().map_err(|e| failed(&path, e))?;
                summed.flush().at(&path)?;
                found.bytes = summed.bytes;
            }
            epoch.push(found);
        }
        self.epochs.push(epoch);
        Ok(())
    }

    /// Writes the manifest of the batches of `run`, and returns it.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn finish(self, run: &str) -> Result<Manifest> {
        let manifest = Manifest::new(run, self.now.len(), self.epochs);
        let path = self.dir.join(MANIFEST);
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        std::fs::write(&path, text).at(&path)?;
        Ok(manifest)
    }
}

fn begin(path: &Path, first: &RecordBatch) -> Result<FileWriter<Summed>> {
    let dir = path.parent().unwrap_or(path);
    std::fs::create_dir_all(dir).at(dir)?;
    let file = BufWriter::with_capacity(1 << 20, File::create(path).at(path)?);
    let summed = Summed { file, sum: Hasher::new(), bytes: 0 };
    FileWriter::try_new(summed, first.schema_ref()).map_err(|e| failed(path, e))
}

fn failed(path: &Path, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, e) => Error::io(path, e),
        e => Error::invalid(format!("{}: {e}", path.display())),
    }
}
