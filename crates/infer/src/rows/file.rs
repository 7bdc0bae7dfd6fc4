//! Rows in a file: one without a name, which the system deletes with the process, or one that outlives it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::{Buf, Error, Result};
use memmap2::Mmap;

use super::pieces::{Piece, Pieces};

/// Bytes written or read at a time.
const BUFFER: usize = 1 << 20;

/// Rows of one width, being written.
pub(super) struct Writer {
    /// The file, or the folder of one without a name.
    place: PathBuf,
    file: BufWriter<File>,
    width: usize,
    values: usize,
    /// The rows that were ended, mapped.
    own: Option<Buf<f32>>,
    /// None for a file without a name.
    journal: Option<Pieces>,
}

/// Rows of one width, mapped.
#[derive(Debug)]
pub(super) struct Rows {
    pub width: usize,
    values: Option<Buf<f32>>,
}

/// A file of rows of one width.
#[derive(Debug)]
pub(super) struct Ended {
    pub place: PathBuf,
    pub file: File,
    pub width: usize,
    pub values: usize,
}

impl Writer {
    /// A file without a name in `folder`, for rows of `width` values.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn unnamed(folder: &Path, width: usize) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|e| failed(folder, e))?;
        Ok(Self::of(folder, file, width))
    }

    /// A new file at `path`, whose pieces are noted.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn named(path: &Path, width: usize) -> Result<Self> {
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = options.map_err(|e| failed(path, e))?;
        Ok(Self { journal: Some(Pieces::default()), ..Self::of(path, file, width) })
    }

    /// The file at `path`, behind `pieces` that are checked; what follows them is dropped.
    ///
    /// # Errors
    /// If it does not begin with these pieces.
    pub fn reopened(path: &Path, width: usize, pieces: &[Piece]) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let mut file = file.map_err(|e| failed(path, e))?;
        let damaged = |why: String| {
            Error::invalid(format!("{}: {why}", path.display()))
                .hint("the rows that were kept are damaged: delete their folder to begin anew")
        };
        let mut buffer = vec![0; BUFFER];
        for (number, piece) in pieces.iter().enumerate() {
            let (mut hasher, mut left) = (crc32fast::Hasher::new(), piece.bytes);
            while left > 0 {
                let some = &mut buffer[..left.min(BUFFER as u64) as usize];
                file.read_exact(some).map_err(|_| damaged("is too short".into()))?;
                hasher.update(some);
                left -= some.len() as u64;
            }
            if hasher.finalize() != piece.crc32 {
                return Err(damaged(format!("piece {number} does not have its checksum")));
            }
        }
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        let cut = file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes)));
        cut.map_err(|e| failed(path, e))?;
        let journal = Some(Pieces { done: pieces.to_vec(), ..Pieces::default() });
        Ok(Self { journal, values: bytes as usize / 4, ..Self::of(path, file, width) })
    }

    fn of(place: &Path, file: File, width: usize) -> Self {
        let file = BufWriter::with_capacity(BUFFER, file);
        Self { place: place.into(), file, width, values: 0, own: None, journal: None }
    }

    /// Brings what was written to the disk, as a piece, and returns all pieces.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn sync(&mut self) -> Result<Vec<Piece>> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|e| failed(&self.place, e))?;
        let Some(pieces) = &mut self.journal else { return Ok(Vec::new()) };
        if pieces.bytes > 0 {
            let crc32 = std::mem::take(&mut pieces.hasher).finalize();
            pieces.done.push(Piece { bytes: std::mem::take(&mut pieces.bytes), crc32 });
        }
        Ok(pieces.done.clone())
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        4 * self.values as u64
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If the disk is full, or fails.
    pub fn append(&mut self, rows: &[f32]) -> Result<()> {
        let bytes = bytemuck::cast_slice(rows);
        self.file.write_all(bytes).map_err(|e| failed(&self.place, e))?;
        self.values += rows.len();
        if let Some(pieces) = &mut self.journal {
            pieces.hasher.update(bytes);
            pieces.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// Maps the rows written so far, which are the own ones.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn end_own(&mut self) -> Result<()> {
        self.file.flush().map_err(|e| failed(&self.place, e))?;
        self.own = mapped(self.file.get_ref(), self.values, &self.place)?;
        Ok(())
    }

    /// The own rows, once they are ended.
    pub fn own(&self) -> &[f32] {
        self.own.as_deref().unwrap_or_default()
    }

    /// The finished file.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn end(self) -> Result<Ended> {
        let Self { place, file, width, values, .. } = self;
        let file = file.into_inner().map_err(|e| failed(&place, e.into_error()))?;
        Ok(Ended { place, file, width, values })
    }

    /// The rows, mapped.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn finish(self) -> Result<Rows> {
        let Ended { place, file, width, values } = self.end()?;
        Ok(Rows { width, values: mapped(&file, values, &place)? })
    }
}

impl Rows {
    /// All rows.
    pub fn values(&self) -> &[f32] {
        self.values.as_deref().unwrap_or_default()
    }

    /// Advises the system that some values are read soon.
    pub fn expect_reads(&self, values: Range<usize>) {
        if let Some(all) = &self.values {
            all.expect_reads(values);
        }
    }

    /// Advises the system that some values are not read for a while.
    pub fn forget(&self, values: Range<usize>) {
        if let Some(all) = &self.values {
            all.forget(values);
        }
    }
}

/// The first values of a file.
fn mapped(file: &File, values: usize, place: &Path) -> Result<Option<Buf<f32>>> {
    if values == 0 {
        return Ok(None);
    }
    // SAFETY: a file without a name can be opened by no other process, and one with a name belongs to the process that
    // has its folder's lock; this process only appends to either. Reading rows one by one instead would take a system call
    // for each of a range's inputs.
    let map = unsafe { Mmap::map(file) }.map_err(|e| failed(place, e))?;
    let values = Buf::mapped(Arc::new(map), 0, values);
    values.map(Some).ok_or_else(|| Error::invalid("rows of a layer are incomplete"))
}

/// An error of a file at `place`, or in that folder.
pub(super) fn failed(place: &Path, error: std::io::Error) -> Error {
    Error::io(place, error).context("keeping the rows of a layer").hint(
        "rows beyond the memory of an inference go there: name a folder with more room, by TMPDIR or --layers",
    )
}
