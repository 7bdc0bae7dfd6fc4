//! The reader of prepared batches.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result, ResultExt};

use super::manifest::{Manifest, StoredSpec};
use crate::data::batch::BatchSpec;
use crate::data::packed::{Columns, columns};
use crate::session::Keys;

/// Bytes after the footer of an Arrow file: its length, and the mark.
const TRAILER: usize = 10;

/// The prepared batches of a rank.
pub(crate) struct PreparedBatches {
    dir: PathBuf,
    rank: usize,
    keys: Keys,
    /// The schedule of each epoch.
    epochs: Vec<Vec<StoredSpec>>,
    /// Number of the first batch of each epoch among those of all, and of all.
    first: Vec<usize>,
    /// The file of the epoch that was read last.
    open: Mutex<Option<(usize, Arc<BatchFile>)>>,
}

impl PreparedBatches {
    /// The batches of `manifest`, in the folder `dir`, of one `rank`; an epoch beyond those prepared has the steps of an earlier
    /// one in an order by `seed`.
    ///
    /// # Errors
    /// If a file is missing or has another length.
    pub fn open(dir: &Path, manifest: &Manifest, (rank, seed): (usize, u64)) -> Result<Self> {
        let mut first = vec![0];
        let mut epochs = Vec::with_capacity(manifest.epochs.len());
        for (epoch, of_ranks) in manifest.epochs.iter().enumerate() {
            let found = of_ranks.get(rank);
            let found = found.ok_or_else(|| Error::invalid(format!("there is no rank {rank}")))?;
            let path = dir.join(Manifest::file(epoch, rank));
            if found.bytes > 0 {
                let bytes = std::fs::metadata(&path).at(&path)?.len();
                if bytes != found.bytes {
                    return Err(Error::invalid(format!(
                        "{}: {bytes} bytes, expected {}",
                        path.display(),
                        found.bytes
                    )));
                }
            }
            first.push(first[epoch] + found.batches.len());
            epochs.push(found.batches.clone());
        }
        if epochs.is_empty() {
            return Err(Error::invalid(format!("{}: no epochs", dir.display())));
        }
        let keys = Keys::new(seed);
        Ok(Self { dir: dir.into(), rank, keys, epochs, first, open: Mutex::default() })
    }

    /// The schedule of an epoch (from 1); the graph of a batch is its number.
    pub fn schedule(&self, epoch: usize) -> Vec<BatchSpec> {
        let written = (epoch - 1) % self.epochs.len();
        let specs = &self.epochs[written];
        let numbers: Vec<usize> = (0..specs.len()).collect();
        let mut steps: Vec<&[usize]> =
            numbers.chunk_by(|&before, _| !specs[before].last_of_step).collect();
        if epoch > self.epochs.len() {
            // All ranks have as many steps.
            self.keys.order(epoch, 0).shuffle(&mut steps);
        }
        let spec = |&number: &usize| {
            let StoredSpec { examples, last_of_step, .. } = specs[number];
            BatchSpec {
                graph: self.first[written] + number,
                batch: Vec::new().into(),
                share: 0..examples as usize,
                key: Key::new(0),
                uses: None,
                fixed: false,
                last_of_step,
                last_of_epoch: false,
            }
        };
        let mut specs: Vec<BatchSpec> = steps.into_iter().flatten().map(spec).collect();
        if let Some(last) = specs.last_mut() {
            last.last_of_epoch = true;
        }
        specs
    }

    /// Reads batch `number` of all epochs.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read(&self, number: usize) -> Result<Columns> {
        let epoch = self.first.partition_point(|&first| first <= number) - 1;
        let specs = self.epochs.get(epoch);
        let specs = specs.ok_or_else(|| Error::invalid(format!("there is no batch {number}")))?;
        let at = number - self.first[epoch];
        let row = specs[..at].iter().filter(|spec| spec.examples > 0).count();
        self.file(epoch)?.read(row, specs[at].checksum)
    }

    fn file(&self, epoch: usize) -> Result<Arc<BatchFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, file)) = &*open
            && *of == epoch
        {
            return Ok(file.clone());
        }
        let file = Arc::new(BatchFile::open(&self.dir.join(Manifest::file(epoch, self.rank)))?);
        *open = Some((epoch, file.clone()));
        Ok(file)
    }
}

/// An Arrow file of batches.
struct BatchFile {
    path: PathBuf,
    file: File,
    blocks: Vec<Block>,
    decoder: FileDecoder,
}

impl BatchFile {
    fn open(path: &Path) -> Result<Self> {
        let wrong = |e: String| Error::invalid(format!("{}: {e}", path.display()));
        let mut file = File::open(path).at(path)?;
        let end = file.seek(SeekFrom::End(0)).at(path)?;
        let mut trailer = [0; TRAILER];
        let at = end.checked_sub(TRAILER as u64).ok_or_else(|| wrong("too short".into()))?;
        file.read_exact_at(&mut trailer, at).at(path)?;
        let length = read_footer_length(trailer).map_err(|e| wrong(e.to_string()))?;
        let at = at.checked_sub(length as u64).ok_or_else(|| wrong("too short".into()))?;
        file.seek(SeekFrom::Start(at)).at(path)?;
        let mut footer = vec![0; length];
        file.read_exact(&mut footer).at(path)?;
        let footer = root_as_footer(&footer).map_err(|e| wrong(format!("its footer: {e}")))?;
        let schema = footer.schema().ok_or_else(|| wrong("its footer has no columns".into()))?;
        let schema = try_fb_to_schema(schema).map_err(|e| wrong(format!("its columns: {e}")))?;
        let decoder = FileDecoder::new(Arc::new(schema), footer.version());
        let blocks: Vec<Block> = footer.recordBatches().iter().flatten().copied().collect();
        let fits = |block: &Block| {
            let lengths = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
            let mut sum = Some(0_u64);
            for length in lengths {
                let length = u64::try_from(length).ok();
                sum = sum.zip(length).and_then(|(sum, length)| sum.checked_add(length));
            }
            sum.is_some_and(|last| last <= end)
        };
        if !blocks.iter().all(fits) {
            return Err(wrong("its footer is damaged".into()));
        }
        Ok(Self { path: path.into(), file, blocks, decoder })
    }

    fn read(&self, row: usize, checksum: u32) -> Result<Columns> {
        let read = || {
            let block = self.blocks.get(row).ok_or_else(|| Error::invalid("it is missing"))?;
            let length = block.metaDataLength() as usize + block.bodyLength() as usize;
            // Memory of Arrow's alignment, so that columns are used where they are.
            let mut bytes = MutableBuffer::from_len_zeroed(length);
            self.file.read_exact_at(bytes.as_slice_mut(), block.offset() as u64).at(&self.path)?;
            if crc32fast::hash(&bytes) != checksum {
                return Err(Error::invalid("the checksum does not match"));
            }
            let found = self.decoder.read_record_batch(block, &Buffer::from(bytes));
            let found = found.map_err(|e| Error::invalid(e.to_string()))?;
            columns(&found.ok_or_else(|| Error::invalid("it is empty"))?)
        };
        read().while_doing(|| format!("reading batch {row} of {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::RankBatches;
    use super::*;

    /// The batches of a rank: three steps of an epoch, the first of two batches, and one of another epoch.
    fn prepared(rank: usize) -> PreparedBatches {
        let spec = |examples, last_of_step| StoredSpec { examples, checksum: 0, last_of_step };
        let steps = vec![spec(4, false), spec(rank as u32, true), spec(3, true), spec(2, true)];
        let first = RankBatches { bytes: 0, batches: steps };
        let second = RankBatches { bytes: 0, batches: vec![spec(1, true)] };
        let epochs = vec![vec![first.clone(), first], vec![second.clone(), second]];
        let manifest = Manifest::new("", 2, epochs);
        PreparedBatches::open(Path::new(""), &manifest, (rank, 7)).unwrap()
    }

    fn numbers(rank: usize, epoch: usize) -> Vec<usize> {
        prepared(rank).schedule(epoch).iter().map(|spec| spec.graph).collect()
    }

    #[test]
    fn epochs_beyond_those_prepared_have_their_steps_in_another_order() {
        assert_eq!((numbers(0, 1), numbers(0, 2)), (vec![0, 1, 2, 3], vec![4]));
        let later = || (3..23).step_by(2);
        let orders: Vec<Vec<usize>> = later().map(|epoch| numbers(0, epoch)).collect();
        assert!(orders.iter().any(|order| *order != [0, 1, 2, 3]), "{orders:?}");
        for (epoch, order) in later().zip(&orders) {
            assert_eq!(numbers(1, epoch), *order);
            let mut all = order.clone();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3]);
            // A step of two batches stays one.
            let first = order.iter().position(|&number| number == 0).unwrap();
            assert_eq!(order[first + 1], 1, "{order:?}");
        }
        let last = prepared(0).schedule(3);
        assert!(last.iter().rev().skip(1).all(|spec| !spec.last_of_epoch));
        assert!(last.last().unwrap().last_of_epoch);
    }
}
