//! Decoders of the physical types.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    AsBytes, BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::errors::Result as Decoding;
use parquet::schema::types::ColumnDescriptor;

/// The decoder of one physical type, and its decoded values.
pub(super) trait Leaf {
    fn open(&mut self, reader: ColumnReader);
    /// Decodes up to this many rows; returns their number.
    fn read(&mut self, rows: usize, levels: &mut Levels) -> Decoding<usize>;
    fn clear(&mut self);
    fn count(&self) -> usize;
    fn decoded(&self) -> Decoded<'_>;
}

/// Levels of a batch: none where no value can be null, or none is a list.
#[derive(Default)]
pub(super) struct Levels {
    pub definition: Vec<i16>,
    pub repetition: Vec<i16>,
}

/// Values by their physical type, without nulls.
#[derive(Clone, Copy)]
pub(super) enum Decoded<'a> {
    Boolean(&'a [bool]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Int96(&'a [Int96]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Bytes(Strings<'a>),
}

/// Byte strings, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Strings<'a> {
    pub bytes: &'a [u8],
    pub ends: &'a [usize],
}

impl<'a> Strings<'a> {
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let string = &self.bytes[start..end];
            start = end;
            string
        })
    }
}

/// The decoder of a column.
pub(super) fn leaf_of(column: &ColumnDescriptor) -> Box<dyn Leaf> {
    match column.physical_type() {
        Type::BOOLEAN => Box::new(TypedLeaf::<BoolType>::new(|values| Decoded::Boolean(values))),
        Type::INT32 => Box::new(TypedLeaf::<Int32Type>::new(|values| Decoded::Int32(values))),
        Type::INT64 => Box::new(TypedLeaf::<Int64Type>::new(|values| Decoded::Int64(values))),
        Type::INT96 => Box::new(TypedLeaf::<Int96Type>::new(|values| Decoded::Int96(values))),
        Type::FLOAT => Box::new(TypedLeaf::<FloatType>::new(|values| Decoded::Float(values))),
        Type::DOUBLE => Box::new(TypedLeaf::<DoubleType>::new(|values| Decoded::Double(values))),
        Type::BYTE_ARRAY => Box::new(StringLeaf::<ByteArrayType>::default()),
        Type::FIXED_LEN_BYTE_ARRAY => Box::new(StringLeaf::<FixedLenByteArrayType>::default()),
    }
}

struct TypedLeaf<T: DataType> {
    reader: Option<ColumnReaderImpl<T>>,
    values: Vec<T::T>,
    view: for<'a> fn(&'a [T::T]) -> Decoded<'a>,
}

impl<T: DataType> TypedLeaf<T> {
    fn new(view: for<'a> fn(&'a [T::T]) -> Decoded<'a>) -> Self {
        Self { reader: None, values: Vec::new(), view }
    }
}

impl<T: DataType> Leaf for TypedLeaf<T> {
    fn open(&mut self, reader: ColumnReader) {
        self.reader = Some(get_typed_column_reader(reader));
    }

    fn read(&mut self, rows: usize, levels: &mut Levels) -> Decoding<usize> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let Levels { definition, repetition } = levels;
        let values = &mut self.values;
        let (rows, ..) = reader.read_records(rows, Some(definition), Some(repetition), values)?;
        Ok(rows)
    }

    fn clear(&mut self) {
        self.values.clear();
    }

    fn count(&self) -> usize {
        self.values.len()
    }

    fn decoded(&self) -> Decoded<'_> {
        (self.view)(&self.values)
    }
}

/// The decoder of byte arrays, of any length or of one.
///
/// The parquet crate gives each its own share of the page's buffer, which is counted. Those of a whole
/// batch take more room than the cache has and hold on to their pages, so they are copied a few at a time.
struct StringLeaf<T: DataType> {
    reader: Option<ColumnReaderImpl<T>>,
    few: Vec<T::T>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Rows of which byte arrays are copied together.
const FEW_ROWS: usize = 1 << 10;

impl<T: DataType> Default for StringLeaf<T> {
    fn default() -> Self {
        Self { reader: None, few: Vec::new(), bytes: Vec::new(), ends: Vec::new() }
    }
}

impl<T: DataType> Leaf for StringLeaf<T> {
    fn open(&mut self, reader: ColumnReader) {
        self.reader = Some(get_typed_column_reader(reader));
    }

    fn read(&mut self, rows: usize, levels: &mut Levels) -> Decoding<usize> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let Levels { definition, repetition } = levels;
        let (rows, few) = (rows.min(FEW_ROWS), &mut self.few);
        let (rows, ..) = reader.read_records(rows, Some(definition), Some(repetition), few)?;
        for string in self.few.drain(..) {
            self.bytes.extend_from_slice(string.as_bytes());
            self.ends.push(self.bytes.len());
        }
        Ok(rows)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn count(&self) -> usize {
        self.ends.len()
    }

    fn decoded(&self) -> Decoded<'_> {
        Decoded::Bytes(Strings { bytes: &self.bytes, ends: &self.ends })
    }
}

/// Runs a step of the decoder, converting panics to errors.
///
/// It checks most of what it reads, but asserts some: a page of keys without a dictionary before it, or a
/// chunk at a negative offset. One flipped bit of a file suffices for that, and a damaged file is no
/// fault of this program. A decoder that panicked is not used again.
pub(super) fn guarded<T>(step: impl FnOnce() -> Decoding<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(|e| e.to_string()),
        Err(_) => Err("the decoder stopped at damaged bytes".into()),
    }
}
