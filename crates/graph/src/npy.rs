//! The npy container: reading headers, and writing columns whose length is known only at the end.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result, ResultExt};

/// What an npy header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// numpy's type string, such as `<i8`.
    pub descr: String,
    /// Lengths of the dimensions.
    pub shape: Vec<u64>,
    /// Whether the first dimension is contiguous.
    pub fortran_order: bool,
    /// Where the values start, in bytes.
    pub offset: u64,
}

impl NpyHeader {
    /// Reads the header of `path` and checks that the file is as long as the header says.
    pub fn read(path: &Path) -> Result<Self> {
        let mut file = File::open(path).at(path)?;
        let length = file.metadata().at(path)?.len();
        let header = Self::parse(&mut file).map_err(|e| {
            Error::invalid(format!("{}: not a readable npy file: {e}", path.display()))
                .hint("write it with numpy.save")
        })?;
        let item = header.item_size(path)?;
        let bytes = header.shape.iter().try_fold(item, |size, &dim| size.checked_mul(dim));
        let expected = bytes.and_then(|b| b.checked_add(header.offset)).unwrap_or(u64::MAX);
        if length < expected {
            return Err(Error::invalid(format!(
                "{}: truncated: the header promises {expected} bytes, the file has {length}",
                path.display()
            )));
        }
        Ok(header)
    }

    /// Parses a header from a reader positioned at its start; leaves it at the first value.
    pub fn parse(reader: &mut (impl Read + Seek)) -> std::io::Result<Self> {
        let header = npyz::NpyHeader::from_reader(&mut *reader)?;
        let npyz::DType::Plain(plain) = header.dtype() else {
            return Err(std::io::Error::other("structured dtypes are not supported"));
        };
        Ok(Self {
            descr: plain.to_string(),
            shape: header.shape().to_vec(),
            fortran_order: header.order() == npyz::Order::Fortran,
            offset: reader.stream_position()?,
        })
    }

    /// Bytes of one value.
    pub fn item_size(&self, path: &Path) -> Result<u64> {
        self.descr.get(2..).and_then(|s| s.parse().ok()).ok_or_else(|| {
            Error::invalid(format!("{}: unsupported dtype {}", path.display(), self.descr))
        })
    }
}

/// Headers written here have this fixed length, so that the shape can be filled in at the end.
pub const HEADER_LEN: usize = 128;

pub(crate) fn header_bytes(dtype: DType, shape: &[u64]) -> [u8; HEADER_LEN] {
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple =
        if dims.len() == 1 { format!("({},)", dims[0]) } else { format!("({})", dims.join(", ")) };
    let dict =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {tuple}, }}", dtype.npy());
    let mut bytes = [b' '; HEADER_LEN];
    bytes[..8].copy_from_slice(b"\x93NUMPY\x01\x00");
    bytes[8..10].copy_from_slice(&((HEADER_LEN - 10) as u16).to_le_bytes());
    bytes[10..10 + dict.len()].copy_from_slice(dict.as_bytes());
    bytes[HEADER_LEN - 1] = b'\n';
    bytes
}

/// Writes an npy file row by row; rows are counted and the header completed by
/// [`NpyWriter::finish`].
pub struct NpyWriter<T> {
    path: PathBuf,
    file: BufWriter<File>,
    /// Length of each row; empty for one-dimensional columns.
    row: Vec<u64>,
    values: u64,
    crc: crc32fast::Hasher,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> NpyWriter<T> {
    /// Creates `path`; each row has the dimensions `row` (empty for plain columns).
    pub fn create(path: impl Into<PathBuf>, row: &[u64]) -> Result<Self> {
        let path = path.into();
        let mut file = BufWriter::with_capacity(1 << 18, File::create(&path).at(&path)?);
        file.write_all(&[0; HEADER_LEN]).at(&path)?;
        Ok(Self {
            path,
            file,
            row: row.to_vec(),
            values: 0,
            crc: crc32fast::Hasher::new(),
            marker: std::marker::PhantomData,
        })
    }

    /// Appends values, whole rows or not.
    pub fn push(&mut self, values: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.crc.update(bytes);
        self.values += values.len() as u64;
        self.file.write_all(bytes).at(&self.path)
    }

    /// Completes the header; returns the shape and the CRC-32 of the values.
    ///
    /// # Errors
    /// If the last row is incomplete or the disk is full.
    pub fn finish(mut self) -> Result<(Vec<u64>, u32)> {
        let width: u64 = self.row.iter().product();
        let rows = self.values.checked_div(width).unwrap_or(0);
        if rows * width != self.values {
            return Err(Error::invalid(format!(
                "{}: {} values do not fill rows of {width}",
                self.path.display(),
                self.values
            )));
        }
        let mut shape = vec![rows];
        shape.extend(&self.row);
        self.file.seek(SeekFrom::Start(0)).at(&self.path)?;
        self.file.write_all(&header_bytes(T::DTYPE, &shape)).at(&self.path)?;
        self.file.flush().at(&self.path)?;
        Ok((shape, self.crc.finalize()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_headers_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npy");
        let mut writer = NpyWriter::<f32>::create(&path, &[3]).unwrap();
        writer.push(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        writer.push(&[5.0, 6.0]).unwrap();
        let (shape, _) = writer.finish().unwrap();
        assert_eq!(shape, [2, 3]);
        let header = NpyHeader::read(&path).unwrap();
        assert_eq!((header.descr.as_str(), header.offset), ("<f4", HEADER_LEN as u64));
        let npy = npyz::NpyFile::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(npy.into_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn truncated_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.npy");
        let mut writer = NpyWriter::<u64>::create(&path, &[]).unwrap();
        writer.push(&[1, 2, 3]).unwrap();
        writer.finish().unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(HEADER_LEN as u64 + 20).unwrap();
        let message = NpyHeader::read(&path).unwrap_err().to_string();
        assert!(message.contains("t.npy: truncated"), "{message}");
    }
}
