//! The npy container: reading headers, and writing columns whose length is known only at the end.

mod dict;

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result, ResultExt};

/// An npy header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// numpy's type string, such as `<i8`.
    pub descr: String,
    /// Lengths of the dimensions.
    pub shape: Vec<u64>,
    /// True if the first dimension is contiguous.
    pub fortran_order: bool,
    /// Start of the values in bytes.
    pub offset: u64,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Header limit: far more than plain numbers need, and all that version 1 allows.
const LONGEST_HEADER: usize = 1 << 16;
/// Most bytes before the first value of a file: magic, version, length and header.
pub const LONGEST_START: u64 = 12 + LONGEST_HEADER as u64;

fn unreadable(path: &dyn std::fmt::Display, e: &std::io::Error) -> Error {
    Error::invalid(format!("{path}: not a readable npy file: {e}")).hint("write it with numpy.save")
}

fn bad(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, e)
}

impl NpyHeader {
    /// Reads the header of `path` and checks that the file is as long as the header says.
    pub fn read(path: &Path) -> Result<Self> {
        let mut file = File::open(path).at(path)?;
        let length = file.metadata().at(path)?.len();
        let header = Self::parse(&mut file).map_err(|e| unreadable(&path.display(), &e))?;
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

    /// The header of the file at `path`, which begins with `start`.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of_bytes(start: &[u8], path: &str) -> Result<Self> {
        Self::parse(&mut std::io::Cursor::new(start)).map_err(|e| unreadable(&path, &e))
    }

    /// Parses a header from a reader positioned at its start; leaves it at the first value.
    ///
    /// # Errors
    /// If it is no npy header, longer than 64 KiB, or of a structured type.
    pub fn parse(reader: &mut (impl Read + Seek)) -> std::io::Result<Self> {
        let mut start = [0; 8];
        reader.read_exact(&mut start)?;
        let [magic @ .., major, _] = start;
        if magic != *MAGIC {
            return Err(bad("it does not begin with \\x93NUMPY"));
        }
        // Version 1 counts the header in two bytes, 2 and 3 in four.
        let mut length = [0; 4];
        match major {
            1 => reader.read_exact(&mut length[..2])?,
            2 | 3 => reader.read_exact(&mut length)?,
            _ => return Err(bad(format!("unknown format version {major}"))),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEADER {
            return Err(bad(format!("a header of {length} bytes; at most 64 KiB are read")));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        let text = std::str::from_utf8(&text).map_err(bad)?;
        let dict = dict::parse(text).map_err(bad)?;
        Ok(Self {
            descr: dict.descr,
            shape: dict.shape,
            fortran_order: dict.fortran_order,
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
        let bytes = std::fs::read(&path).unwrap();
        let (head, values) = bytes.split_at(HEADER_LEN);
        let values: Vec<f32> =
            values.as_chunks().0.iter().map(|v| f32::from_le_bytes(*v)).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        // As numpy.save begins such a file.
        let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        let expected = [b"\x93NUMPY\x01\x00\x76\x00", dict.as_bytes()].concat();
        assert!(head.starts_with(&expected) && head.ends_with(b" \n"));
    }

    #[test]
    fn headers_that_are_too_long_are_not_read() {
        let parse = |bytes: &[u8]| NpyHeader::parse(&mut std::io::Cursor::new(bytes));
        let dict = b"{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n";
        let length = (dict.len() as u32).to_le_bytes();
        let file = [b"\x93NUMPY\x02\x00", &length[..], dict].concat();
        let header = parse(&file).unwrap();
        assert_eq!((header.shape, header.offset), (vec![3], file.len() as u64));

        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("at most 64 KiB"));
        assert!(message(b"\x93NUMPY\x04\x00\x10\x00\x00\x00").contains("version 4"));
        assert!(message(b"PK\x03\x04    ").contains("does not begin with"));
        assert!(message(b"\x93NUMPY\x01\x00\x02\x00\xff\xff").contains("utf-8"));
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
