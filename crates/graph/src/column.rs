//! Columns: named arrays of one type, one npy file each.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::integrity::{self, Sealed};
use gnarl_common::memory::{Pages, SparePages};
use gnarl_common::npy::{LONGEST_START, NpyHeader};
use gnarl_common::{
    Buf, DType, Element, Error, FileRange, Kind, Place, Result, ResultExt, RowFile,
};
use memmap2::Mmap;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Bytes hashed by one task of [`Column::verify`].
const VERIFY_PIECE: usize = 16 << 20;
/// Values of npy files begin at a multiple of so many bytes.
const ALIGNED: u64 = 16;

/// The manifest entry of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// Name within its node or edge type.
    pub name: String,
    /// File name within the dataset directory.
    pub file: String,
    /// Type of the values.
    pub dtype: DType,
    /// Lengths of the dimensions, rows first.
    pub shape: Vec<u64>,
    /// CRC-32 of the values' bytes.
    pub crc32: u32,
}

impl ColumnSpec {
    /// Bytes of the values.
    pub fn num_bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.dtype.size() as u64
    }

    /// Bytes of the values; none if there is no dimension, or more of them than can be addressed.
    pub(crate) fn checked_bytes(&self) -> Option<u64> {
        let rows = self.shape.first()?;
        // Dimensions after one of length 0 count, too.
        let width =
            self.shape[1..].iter().try_fold(1u64, |all, &len| all.checked_mul(len.max(1)))?;
        let bytes = rows.checked_mul(width)?.checked_mul(self.dtype.size() as u64)?;
        i64::try_from(bytes).is_ok().then_some(bytes)
    }

    /// Reads the header of the column's file at `path`.
    ///
    /// # Errors
    /// If the file is truncated or disagrees with the manifest.
    pub(crate) fn header(&self, path: &Path) -> Result<NpyHeader> {
        let header = NpyHeader::read(path)?;
        self.check_header(&header, &path.display().to_string())?;
        Ok(header)
    }

    /// Position of the first value in the column's file in `place`, by its size.
    ///
    /// # Errors
    /// If there is no such file, or it has another size than a column's.
    fn start_in(&self, place: &dyn Place) -> Result<u64> {
        let size = place.size(&self.file)?;
        let len = self.num_bytes();
        let is_start =
            |start: &u64| (1..=LONGEST_START).contains(start) && start.is_multiple_of(ALIGNED);
        let start = size.checked_sub(len).filter(is_start);
        start.ok_or_else(|| {
            let path = place.path_of(&self.file);
            let fault = if size < len { "truncated" } else { "another size than in dataset.json" };
            Error::invalid(format!("{path}: {fault}: {size} bytes for {len} of values"))
                .hint("the file was replaced after it was written")
        })
    }

    /// Rejects a file at `path` that begins with `start`, where the values should follow.
    fn check_start(&self, start: &[u8], path: &str) -> Result<()> {
        let header = NpyHeader::of_bytes(start, path)?;
        self.check_header(&header, path)?;
        if header.offset == start.len() as u64 {
            return Ok(());
        }
        let found = header.offset;
        let expected = start.len();
        Err(Error::invalid(format!("{path}: values begin at byte {found}, not {expected}"))
            .hint("the file was replaced after it was written"))
    }

    /// Position of the first value in the column's file in `place`, which is checked as far as that.
    ///
    /// # Errors
    /// If the file is missing, truncated, or disagrees with the manifest.
    pub fn checked_start(&self, place: &dyn Place) -> Result<u64> {
        let start = self.start_in(place)?;
        let mut header = vec![0; start as usize];
        place.read(&mut [FileRange { file: &self.file, start: 0, out: &mut header }])?;
        self.check_start(&header, &place.path_of(&self.file))?;
        Ok(start)
    }

    /// Rejects the header of another column's file than that at `path`.
    ///
    /// # Errors
    /// If it disagrees with the manifest.
    fn check_header(&self, header: &NpyHeader, path: &str) -> Result<()> {
        let agrees = header.descr == self.dtype.npy() && header.shape == self.shape;
        if agrees && !header.fortran_order && !self.shape.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{path}: the file holds {} {:?}, dataset.json says {} {:?}",
            header.descr,
            header.shape,
            self.dtype.npy(),
            self.shape
        ))
        .hint("the file was replaced after the import; import again"))
    }
}

/// An opened column: its values are mapped, not read, or all in memory.
#[derive(Debug, Clone)]
pub struct Column {
    spec: ColumnSpec,
    file: Bytes,
    /// First byte of the values.
    offset: usize,
}

/// The bytes of a column's file.
#[derive(Debug, Clone)]
enum Bytes {
    Mapped { map: Arc<Mmap>, file: Arc<File>, path: PathBuf },
    InMemory(Arc<Pages>),
}

impl Column {
    /// Maps the column's file in `dir`. Its checksum is compared at once if it is small, or else as [`integrity`] says.
    ///
    /// # Errors
    /// If the file is missing, truncated, damaged, or disagrees with the manifest.
    pub fn open(dir: &Path, spec: &ColumnSpec) -> Result<Self> {
        let path = dir.join(&spec.file);
        let header = spec.header(&path)?;
        let file = File::open(&path).at(&path)?;
        // SAFETY: dataset files are written once under a temporary name and renamed; gnarl never
        // changes them in place. The mapping is read-only plain data.
        let map = Arc::new(unsafe { Mmap::map(&file) }.at(&path)?);
        let values = header.offset..header.offset + spec.num_bytes();
        if values.end > map.len() as u64 {
            return Err(Error::invalid(format!("{}: became shorter meanwhile", path.display())));
        }
        integrity::expect(Sealed::new(path.clone(), values, spec.crc32), &map)?;
        let offset = header.offset as usize;
        let file = Bytes::Mapped { map, file: Arc::new(file), path };
        Ok(Self { spec: spec.clone(), file, offset })
    }

    /// Reads the column's file in `place` into memory, of `spare` pages, and checks it.
    ///
    /// # Errors
    /// As [`Column::open`]; if the checksum differs from the manifest's; [`Kind::Limit`] if there is no room.
    pub fn load(place: &dyn Place, spec: &ColumnSpec, spare: &Arc<SparePages>) -> Result<Self> {
        let path = place.path_of(&spec.file);
        let start = spec.start_in(place)?;
        let len = start + spec.num_bytes();
        let no_room = |e: std::io::Error| {
            Error::new(Kind::Limit, format!("{path}: {len} bytes in memory: {e}"))
        };
        let mut pages = spare.take(len as usize).map_err(no_room)?;
        let (header, values) = pages.split_at_mut(start as usize);
        let file = spec.file.as_str();
        let found = place.read(&mut [
            FileRange { file, start: 0, out: header },
            FileRange { file, start, out: values },
        ])?;
        spec.check_start(&pages[..start as usize], &path)?;
        if found[1] != spec.crc32 {
            return Err(integrity::damaged(Path::new(&path)));
        }
        let file = Bytes::InMemory(Arc::new(pages));
        Ok(Self { spec: spec.clone(), file, offset: start as usize })
    }

    /// The column's entry in the manifest.
    pub fn spec(&self) -> &ColumnSpec {
        &self.spec
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.spec.shape.first().copied().unwrap_or(0) as usize
    }

    /// Number of values per row.
    pub fn width(&self) -> usize {
        self.spec.shape[1..].iter().product::<u64>() as usize
    }

    /// The values, row after row.
    ///
    /// # Errors
    /// If the column holds another type.
    pub fn values<T: Element>(&self) -> Result<Buf<T>> {
        let len = self.spec.shape.iter().product::<u64>() as usize;
        (T::DTYPE == self.spec.dtype)
            .then(|| match &self.file {
                Bytes::Mapped { map, .. } => Buf::mapped(map.clone(), self.offset, len),
                Bytes::InMemory(pages) => Buf::of_pages(pages.clone(), self.offset, len),
            })
            .flatten()
            .ok_or_else(|| {
                let ColumnSpec { file, dtype, .. } = &self.spec;
                Error::invalid(format!("{file}: holds {dtype}, read as {}", T::DTYPE))
            })
    }

    /// The values widened to u64 ids: mapped when they are u64, copied when they are u32.
    pub fn ids(&self) -> Result<Buf<u64>> {
        match self.spec.dtype {
            DType::U32 => {
                Ok(self.values::<u32>()?.iter().map(|&v| v as u64).collect::<Vec<_>>().into())
            }
            _ => self.values(),
        }
    }

    /// The values as u32 ids: mapped when they are u32, copied when they are u64.
    ///
    /// # Errors
    /// If a value does not fit.
    pub fn ids32(&self) -> Result<Buf<u32>> {
        if self.spec.dtype == DType::U32 {
            return self.values();
        }
        let narrow = |(row, &id): (usize, &u64)| {
            u32::try_from(id).map_err(|_| {
                Error::new(
                    gnarl_common::Kind::Limit,
                    format!("{}: row {row}: id {id} does not fit 32 bits", self.spec.file),
                )
                .hint("partition the graph first: ids within a part are 32 bits wide")
            })
        };
        let values = self.values::<u64>()?;
        Ok(values.iter().enumerate().map(narrow).collect::<Result<Vec<_>>>()?.into())
    }

    /// The rows as they are in the file, to be read here and there where it exceeds memory; none if they are in memory.
    ///
    /// # Errors
    /// If the file cannot be opened again.
    pub fn row_file(&self) -> Result<Option<RowFile>> {
        let Bytes::Mapped { file, path, .. } = &self.file else { return Ok(None) };
        let row_bytes = self.width() * self.spec.dtype.size();
        let shape = (self.rows() as u64, row_bytes);
        RowFile::new(file, path, self.offset as u64, shape).map(Some)
    }

    /// The bytes of the values, as stored.
    pub fn bytes(&self) -> &[u8] {
        let len = self.spec.shape.iter().product::<u64>() as usize * self.spec.dtype.size();
        let file = match &self.file {
            Bytes::Mapped { map, .. } => &map[..],
            Bytes::InMemory(pages) => &pages[..],
        };
        &file[self.offset..self.offset + len]
    }

    /// Recomputes the checksum, by all threads.
    ///
    /// # Errors
    /// If it differs from the manifest's.
    pub fn verify(&self) -> Result<()> {
        let pieces = self.bytes().par_chunks(VERIFY_PIECE).map(|piece| {
            let mut crc = crc32fast::Hasher::new();
            crc.update(piece);
            crc
        });
        let mut crc = crc32fast::Hasher::new();
        pieces.collect::<Vec<_>>().iter().for_each(|piece| crc.combine(piece));
        if crc.finalize() == self.spec.crc32 {
            return Ok(());
        }
        Err(integrity::damaged(Path::new(&self.spec.file)))
    }
}
