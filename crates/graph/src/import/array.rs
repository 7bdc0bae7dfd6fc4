//! Streaming readers of numpy arrays of any plain number type.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use gnarl_common::npy::NpyHeader;
use gnarl_common::{Error, Result, ResultExt};
use half::f16;

use super::input::FileKind;
use super::source::Source;

/// Values per read.
pub(super) const BLOCK: usize = 1 << 16;

/// Number types of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Num {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Num {
    /// The type with numpy's type string `descr`.
    pub fn parse(descr: &str) -> Option<Self> {
        Some(match descr {
            "|b1" => Self::Bool,
            "|i1" => Self::I8,
            "<i2" => Self::I16,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            "|u1" => Self::U8,
            "<u2" => Self::U16,
            "<u4" => Self::U32,
            "<u8" => Self::U64,
            "<f2" => Self::F16,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of one number.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns whether the values are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// Appends every number in `bytes`, of type `$num`, to `$out` after `$convert`.
macro_rules! decode {
    ($num:expr, $bytes:expr, $out:expr, $x:ident => $convert:expr) => {
        match $num {
            Num::Bool | Num::U8 => decode!(@ u8, $bytes, $out, $x => $convert),
            Num::I8 => decode!(@ i8, $bytes, $out, $x => $convert),
            Num::I16 => decode!(@ i16, $bytes, $out, $x => $convert),
            Num::I32 => decode!(@ i32, $bytes, $out, $x => $convert),
            Num::I64 => decode!(@ i64, $bytes, $out, $x => $convert),
            Num::U16 => decode!(@ u16, $bytes, $out, $x => $convert),
            Num::U32 => decode!(@ u32, $bytes, $out, $x => $convert),
            Num::U64 => decode!(@ u64, $bytes, $out, $x => $convert),
            Num::F32 => decode!(@ f32, $bytes, $out, $x => $convert),
            Num::F64 => decode!(@ f64, $bytes, $out, $x => $convert),
            Num::F16 => $out.extend($bytes.chunks_exact(2).map(|b| {
                let $x = f16::from_le_bytes([b[0], b[1]]).to_f32();
                $convert
            })),
        }
    };
    (@ $type:ty, $bytes:expr, $out:expr, $x:ident => $convert:expr) => {
        $out.extend($bytes.chunks_exact(size_of::<$type>()).map(|b| {
            let $x = <$type>::from_le_bytes(b.try_into().expect("exact chunks"));
            $convert
        }))
    };
}

/// Reads the table of ids in the npy file at `path`, row by row: the ids, and their number per row.
/// `what` names them in errors.
///
/// # Errors
/// If it is no table of integers in C order, or an id is negative, naming its row.
pub fn id_table(path: &Path, what: &str) -> Result<(Vec<u64>, usize)> {
    let mut reader = ArrayReader::open(Source::npy(path)?)?;
    reader.expect_integers()?;
    let [_, width] = reader.shape()[..] else {
        return Err(reader.error(format!("has shape {:?}, not rows and columns", reader.shape())));
    };
    if reader.fortran() {
        return Err(reader
            .error("is stored column by column")
            .hint("convert it with numpy.ascontiguousarray"));
    }
    let mut ids = Vec::new();
    reader.fill(reader.len())?;
    decode!(reader.num, reader.bytes, ids, x => x as u64);
    // Sign extension puts every negative id above i64::MAX.
    match ids.iter().position(|&id| id > i64::MAX as u64) {
        None => Ok((ids, width as usize)),
        Some(at) => Err(reader
            .error(format!("row {}: {what} {} is negative", at as u64 / width, ids[at] as i64))
            .hint("ids are counted from 0")),
    }
}

/// Reads an array in storage order, a chunk at a time.
pub(super) struct ArrayReader {
    source: Source,
    file: BufReader<File>,
    num: Num,
    header: NpyHeader,
    /// Values read so far.
    position: u64,
    bytes: Vec<u8>,
}

impl ArrayReader {
    /// Opens the array and checks that it is complete and of a supported number type.
    pub fn open(source: Source) -> Result<Self> {
        let mut file = File::open(&source.path).at(&source.path)?;
        file.seek(SeekFrom::Start(source.start)).at(&source.path)?;
        let header = NpyHeader::parse(&mut file).map_err(|e| {
            let bad = Error::invalid(format!("{}: not a readable npy file: {e}", source.name));
            let kind = FileKind::at(&source.path);
            if source.start > 0 || kind == FileKind::Npy {
                return bad.hint("write it with numpy.save");
            }
            let (what, cure) = kind.described();
            bad.hint(format!("it begins like {what}: {cure}; arrays are written with numpy.save"))
        })?;
        let Some(num) = Num::parse(&header.descr) else {
            return Err(Error::invalid(format!(
                "{}: unsupported dtype {}",
                source.name, header.descr
            ))
            .hint("use little-endian integers, bool, or f16, f32, f64"));
        };
        let values = header.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        let expected = values
            .and_then(|n| n.checked_mul(num.size() as u64))
            .and_then(|n| n.checked_add(header.offset))
            .ok_or_else(|| {
                Error::invalid(format!("{}: impossible shape {:?}", source.name, header.shape))
            })?;
        if source.end < expected {
            return Err(Error::invalid(format!(
                "{}: truncated: the header promises {} bytes, there are {}",
                source.name,
                expected - source.start,
                source.end - source.start
            )));
        }
        let file = BufReader::with_capacity(1 << 18, file);
        Ok(Self { source, file, num, header, position: 0, bytes: Vec::new() })
    }

    /// A second reader of the same array, at its start.
    pub fn again(&self) -> Result<Self> {
        Self::open(self.source.clone())
    }

    pub fn name(&self) -> &str {
        &self.source.name
    }

    pub fn num(&self) -> Num {
        self.num
    }

    pub fn shape(&self) -> &[u64] {
        &self.header.shape
    }

    /// Returns whether the first dimension is contiguous (and that matters).
    pub fn fortran(&self) -> bool {
        self.header.fortran_order && self.header.shape.len() > 1
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.header.shape.iter().product()
    }

    /// Number of values not read yet.
    pub fn left(&self) -> u64 {
        self.len() - self.position
    }

    /// Moves to the value `position` in storage order.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        self.position = position;
        let at = self.header.offset + position * self.num.size() as u64;
        self.file.seek(SeekFrom::Start(at)).at(&self.source.path).map(drop)
    }

    /// An error about this array.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::invalid(format!("{}: {message}", self.source.name))
    }

    /// Rejects other shapes than vectors; `[N, 1]` counts as one.
    pub fn expect_vector(&self) -> Result<()> {
        match self.shape() {
            [_] | [_, 1] => Ok(()),
            shape => Err(self.error(format!("has shape {shape:?}, a vector is needed"))),
        }
    }

    /// Rejects arrays of floating-point numbers where integers are required.
    pub fn expect_integers(&self) -> Result<()> {
        match self.num.is_float() || self.num == Num::Bool {
            false => Ok(()),
            true => Err(self
                .error(format!("holds {}, integers are needed", self.header.descr))
                .hint("convert it with array.astype(numpy.int64)")),
        }
    }

    fn fill(&mut self, limit: u64) -> Result<u64> {
        let count = limit.min(self.left());
        self.bytes.resize(count as usize * self.num.size(), 0);
        self.file.read_exact(&mut self.bytes).at(&self.source.path)?;
        self.position += count;
        Ok(count)
    }

    /// Replaces `out` by up to `limit` ids; `false` at the end.
    ///
    /// # Errors
    /// If one is negative, with `what` as its name and its row, which is its position less
    /// `base`.
    pub fn read_ids(
        &mut self,
        limit: usize,
        what: &str,
        base: u64,
        out: &mut Vec<u64>,
    ) -> Result<bool> {
        out.clear();
        let first = self.position - base;
        self.fill(limit as u64)?;
        decode!(self.num, self.bytes, out, x => x as u64);
        // Sign extension puts every negative id above i64::MAX.
        if let Some(i) = out.iter().position(|&id| id > i64::MAX as u64) {
            let row = first + i as u64;
            return Err(match self.num {
                Num::U64 => self.error(format!("row {row}: {what} id {} is over 63 bits", out[i])),
                _ => self.error(format!("row {row}: {what} id {} is negative", out[i] as i64)),
            }
            .hint("ids are counted from 0"));
        }
        Ok(!out.is_empty())
    }

    /// Replaces `out` by up to `limit` numbers; `false` at the end.
    pub fn read_f64(&mut self, limit: usize, out: &mut Vec<f64>) -> Result<bool> {
        out.clear();
        self.fill(limit as u64)?;
        decode!(self.num, self.bytes, out, x => x as f64);
        Ok(!out.is_empty())
    }

    /// Replaces `out` by up to `limit` single-precision numbers; `false` at the end.
    pub fn read_f32(&mut self, limit: usize, out: &mut Vec<f32>) -> Result<bool> {
        out.clear();
        self.fill(limit as u64)?;
        decode!(self.num, self.bytes, out, x => x as f32);
        Ok(!out.is_empty())
    }
}
