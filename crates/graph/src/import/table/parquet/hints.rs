//! Types that Parquet has no name for, from the schema that Arrow writers (pandas, Polars, DataFusion)
//! put into a file's metadata: a `Schema` message as flatbuffers, in base64.
//!
//! Only hints that change how values are read are used: an integer may be a duration, for example.
//! Anything else is ignored, and no position beyond the message is ever followed.

use parquet::file::metadata::FileMetaData;

use super::unit::Unit;

/// The type of a column, or of the items of its lists, to its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// Dates in milliseconds.
    DateMillis,
    /// Times of a day.
    Time,
    Timestamp {
        unit: Unit,
        utc: bool,
    },
    Duration(Unit),
    Text,
}

/// Key of the metadata.
const KEY: &str = "ARROW:schema";

// Numbers of union members in Arrow's Schema.fbs.
const SCHEMA_MESSAGE: u8 = 1;
const UTF8: u8 = 5;
const DATE: u8 = 8;
const TIME: u8 = 9;
const TIMESTAMP: u8 = 10;
const LIST: u8 = 12;
const FIXED_SIZE_LIST: u8 = 16;
const DURATION: u8 = 18;
const LARGE_UTF8: u8 = 20;
const LARGE_LIST: u8 = 21;
const UTF8_VIEW: u8 = 24;

/// Names of the root columns, as far as Arrow's schema is there, with a hint where it has one.
pub(super) fn hints(metadata: &FileMetaData) -> Vec<(String, Option<Hint>)> {
    let pairs = metadata.key_value_metadata();
    let value = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == KEY)?.value.as_ref());
    value.and_then(|text| fields(&decoded(text)?)).unwrap_or_default()
}

fn fields(bytes: &[u8]) -> Option<Vec<(String, Option<Hint>)>> {
    // Newer messages begin with a marker and their length.
    let bytes = match bytes.strip_prefix(&[0xff; 4]) {
        Some(rest) => rest.get(4..)?,
        None => bytes,
    };
    let message = Table::root(bytes)?;
    if message.byte(1)? != SCHEMA_MESSAGE {
        return None;
    }
    let fields = message.table(2)?.tables(1);
    fields.map(|field| Some((field.text(0)?, hint(&field)))).collect()
}

/// The hint of a field, or of the items of its lists.
fn hint(field: &Table<'_>) -> Option<Hint> {
    match field.byte(2)? {
        LIST | LARGE_LIST | FIXED_SIZE_LIST => value_hint(&field.tables(5).next()?),
        _ => value_hint(field),
    }
}

fn value_hint(field: &Table<'_>) -> Option<Hint> {
    let kind = field.table(3);
    let unit = |default: i16| kind.as_ref().and_then(|kind| kind.short(0)).unwrap_or(default);
    match field.byte(2)? {
        UTF8 | LARGE_UTF8 | UTF8_VIEW => Some(Hint::Text),
        DATE => (unit(1) == 1).then_some(Hint::DateMillis),
        TIME => Some(Hint::Time),
        TIMESTAMP => {
            let utc = kind.as_ref().is_some_and(|kind| kind.field(1).is_some());
            Some(Hint::Timestamp { unit: clock(unit(0))?, utc })
        }
        DURATION => Some(Hint::Duration(clock(unit(1))?)),
        _ => None,
    }
}

fn clock(unit: i16) -> Option<Unit> {
    [Unit::Second, Unit::Milli, Unit::Micro, Unit::Nano].get(usize::try_from(unit).ok()?).copied()
}

/// A table of a flatbuffer.
struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, at: followed(bytes, 0)? })
    }

    /// The position of a field, if it is there.
    fn field(&self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(array(self.bytes, self.at)?);
        let directory = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let length = usize::from(u16::from_le_bytes(array(self.bytes, directory)?));
        let entry = 4 + 2 * number;
        if entry + 2 > length {
            return None;
        }
        match u16::from_le_bytes(array(self.bytes, directory + entry)?) {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        }
    }

    fn byte(&self, number: usize) -> Option<u8> {
        self.bytes.get(self.field(number)?).copied()
    }

    fn short(&self, number: usize) -> Option<i16> {
        Some(i16::from_le_bytes(array(self.bytes, self.field(number)?)?))
    }

    fn table(&self, number: usize) -> Option<Self> {
        Some(Self { bytes: self.bytes, at: followed(self.bytes, self.field(number)?)? })
    }

    fn text(&self, number: usize) -> Option<String> {
        let start = followed(self.bytes, self.field(number)?)?;
        let length = u32::from_le_bytes(array(self.bytes, start)?) as usize;
        let text = self.bytes.get(start + 4..)?.get(..length)?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// The tables of a vector, as far as they lie within the message.
    fn tables(&self, number: usize) -> impl Iterator<Item = Self> + use<'a> {
        let bytes = self.bytes;
        let start = self.field(number).and_then(|field| followed(bytes, field));
        let length = start.and_then(|start| Some(u32::from_le_bytes(array(bytes, start)?)));
        let places = (0..length.unwrap_or(0) as usize).map(move |i| start.unwrap_or(0) + 4 + 4 * i);
        places.map_while(move |place| Some(Self { bytes, at: followed(bytes, place)? }))
    }
}

/// The position to which an offset leads.
fn followed(bytes: &[u8], at: usize) -> Option<usize> {
    let position = at.checked_add(u32::from_le_bytes(array(bytes, at)?) as usize)?;
    (position < bytes.len()).then_some(position)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The bytes of base64.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for letters in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for &letter in letters {
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(digit);
        }
        let [_, whole @ ..] = (bits << (6 * (4 - letters.len()))).to_be_bytes();
        // The last letters, if fewer than four, have a byte less than there are letters.
        bytes.extend_from_slice(&whole[..letters.len() - 1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema, TimeUnit};
    use parquet::arrow::encode_arrow_schema;

    use super::*;

    fn message() -> String {
        let list = |of| DataType::List(Field::new("item", of, true).into());
        let utc = Some("UTC".into());
        let kinds = [
            DataType::Int64,
            DataType::Date32,
            DataType::Date64,
            DataType::Time32(TimeUnit::Second),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Nanosecond, utc),
            DataType::Duration(TimeUnit::Millisecond),
            DataType::Duration(TimeUnit::Microsecond),
            DataType::LargeUtf8,
            DataType::Dictionary(DataType::Int8.into(), DataType::Utf8View.into()),
            list(DataType::Duration(TimeUnit::Second)),
            list(list(DataType::Utf8)),
        ];
        let fields = kinds.into_iter().enumerate();
        let fields = fields.map(|(i, kind)| Field::new(format!("column {i}"), kind, true));
        encode_arrow_schema(&Schema::new(fields.collect::<Vec<_>>()))
    }

    #[test]
    fn hints_are_those_that_arrow_writes() {
        let found = fields(&decoded(&message()).unwrap()).unwrap();
        let expected = [
            None,
            None,
            Some(Hint::DateMillis),
            Some(Hint::Time),
            Some(Hint::Timestamp { unit: Unit::Second, utc: false }),
            Some(Hint::Timestamp { unit: Unit::Nano, utc: true }),
            Some(Hint::Duration(Unit::Milli)),
            Some(Hint::Duration(Unit::Micro)),
            Some(Hint::Text),
            Some(Hint::Text),
            Some(Hint::Duration(Unit::Second)),
            None,
        ];
        let expected = expected.into_iter().enumerate();
        let expected = expected.map(|(i, hint)| (format!("column {i}"), hint));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn damaged_messages_give_no_more_than_they_have() {
        let whole = decoded(&message()).unwrap();
        for end in 0..whole.len() {
            fields(&whole[..end]);
            for fill in [0, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[end] = fill;
                fields(&bytes);
            }
        }
        assert_eq!(decoded("QUJD"), Some(b"ABC".to_vec()));
        assert_eq!(decoded("QUI="), Some(b"AB".to_vec()));
        assert_eq!(decoded("QQ=="), Some(b"A".to_vec()));
        assert_eq!(decoded("Q*=="), None);
        assert_eq!(decoded(""), Some(Vec::new()));
    }
}
