//! Types of the values in Parquet columns.

use std::fmt;

use parquet::basic::{ConvertedType, IntType, LogicalType, Type};
use parquet::schema::types::ColumnDescriptor;

use super::hints::Hint;
use super::unit::Unit;

/// The type of a column's values, or of the items of its lists. Displayed by its name in Arrow,
/// which users know from pandas and Polars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    /// Signed integers of this width in bits.
    Int(u8),
    /// Unsigned integers of this width in bits.
    UInt(u8),
    /// Floating-point numbers of this width in bits.
    Float(u8),
    Decimal {
        precision: i32,
        scale: i32,
    },
    /// Days since 1970-01-01.
    Date,
    /// Dates in milliseconds.
    DateMillis,
    /// Time since 1970-01-01, in UTC or in no time zone.
    Timestamp {
        unit: Unit,
        utc: bool,
    },
    Utf8,
    /// An unsupported type, by its name.
    Other(String),
}

impl Kind {
    /// The type of a leaf of the schema. A hint refines types that Parquet has no name for; where it
    /// contradicts the schema, the schema counts.
    pub fn of(leaf: &ColumnDescriptor, hint: Option<Hint>) -> Self {
        let stated = stated(leaf);
        let Some(hint) = hint else { return stated };
        match (&stated, hint) {
            (Self::Int(32 | 64), Hint::Timestamp { unit, utc }) => Self::Timestamp { unit, utc },
            (Self::Int(64) | Self::Date, Hint::DateMillis) => Self::DateMillis,
            (Self::Int(32 | 64), Hint::Time) => Self::Other("Time".into()),
            (Self::Int(64), Hint::Duration(unit)) => Self::Other(format!("Duration({unit})")),
            (Self::Other(name), Hint::Text) if name == BINARY => Self::Utf8,
            _ => stated,
        }
    }

    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Int(_) | Self::UInt(_))
    }

    pub fn is_float(&self) -> bool {
        matches!(self, Self::Float(_))
    }

    /// Returns whether values can be numbers, including booleans, dates, timestamps, and columns of
    /// nulls.
    pub fn is_numeric(&self) -> bool {
        !matches!(self, Self::Utf8 | Self::Other(_))
    }

    /// Returns whether the type is supported.
    pub fn is_readable(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// The name of bytes of any length.
const BINARY: &str = "Binary";

/// The type that the Parquet schema states.
fn stated(leaf: &ColumnDescriptor) -> Kind {
    // Any physical type may be annotated as one that has only nulls.
    if matches!(leaf.logical_type_ref(), Some(LogicalType::Unknown)) {
        return Kind::Null;
    }
    match leaf.physical_type() {
        Type::BOOLEAN => Kind::Boolean,
        Type::INT32 => integer(leaf, 32),
        Type::INT64 => integer(leaf, 64),
        Type::INT96 => Kind::Timestamp { unit: Unit::Nano, utc: false },
        Type::FLOAT => Kind::Float(32),
        Type::DOUBLE => Kind::Float(64),
        Type::BYTE_ARRAY => bytes(leaf),
        Type::FIXED_LEN_BYTE_ARRAY => fixed(leaf),
    }
}

/// The type of integers stored in `width` bits.
fn integer(leaf: &ColumnDescriptor, width: u8) -> Kind {
    let timestamp = |unit| Kind::Timestamp { unit, utc: true };
    let time = || Kind::Other("Time".into());
    match (leaf.logical_type_ref(), leaf.converted_type()) {
        (Some(LogicalType::Integer(IntType { bit_width, is_signed })), _) => {
            match (*bit_width, is_signed) {
                (bits @ (8 | 16 | 32 | 64), true) => Kind::Int(bits as u8),
                (bits @ (8 | 16 | 32 | 64), false) => Kind::UInt(bits as u8),
                (bits, _) => Kind::Other(format!("Int{bits}")),
            }
        }
        (Some(LogicalType::Decimal(of)), _) => {
            Kind::Decimal { precision: of.precision, scale: of.scale }
        }
        (Some(LogicalType::Date), _) => Kind::Date,
        (Some(LogicalType::Time(_)), _) => time(),
        (Some(LogicalType::Timestamp(of)), _) if width == 64 => {
            Kind::Timestamp { unit: of.unit.into(), utc: of.is_adjusted_to_u_t_c }
        }
        (Some(other), _) => Kind::Other(format!("{other:?}")),
        (None, ConvertedType::NONE) => Kind::Int(width),
        (None, ConvertedType::INT_8) => Kind::Int(8),
        (None, ConvertedType::INT_16) => Kind::Int(16),
        (None, ConvertedType::INT_32) => Kind::Int(32),
        (None, ConvertedType::INT_64) => Kind::Int(64),
        (None, ConvertedType::UINT_8) => Kind::UInt(8),
        (None, ConvertedType::UINT_16) => Kind::UInt(16),
        (None, ConvertedType::UINT_32) => Kind::UInt(32),
        (None, ConvertedType::UINT_64) => Kind::UInt(64),
        (None, ConvertedType::DATE) => Kind::Date,
        (None, ConvertedType::TIMESTAMP_MILLIS) => timestamp(Unit::Milli),
        (None, ConvertedType::TIMESTAMP_MICROS) => timestamp(Unit::Micro),
        (None, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => time(),
        (None, ConvertedType::DECIMAL) => decimal(leaf),
        (None, other) => Kind::Other(other.to_string()),
    }
}

/// The type of byte arrays of any length.
fn bytes(leaf: &ColumnDescriptor) -> Kind {
    match (leaf.logical_type_ref(), leaf.converted_type()) {
        (Some(LogicalType::String | LogicalType::Json | LogicalType::Enum), _) => Kind::Utf8,
        (Some(LogicalType::Decimal(of)), _) => {
            Kind::Decimal { precision: of.precision, scale: of.scale }
        }
        (None, ConvertedType::UTF8 | ConvertedType::JSON | ConvertedType::ENUM) => Kind::Utf8,
        (None, ConvertedType::DECIMAL) => decimal(leaf),
        _ => Kind::Other(BINARY.into()),
    }
}

/// The type of byte arrays of one length.
fn fixed(leaf: &ColumnDescriptor) -> Kind {
    match (leaf.logical_type_ref(), leaf.converted_type(), leaf.type_length()) {
        (Some(LogicalType::Decimal(of)), ..) => {
            Kind::Decimal { precision: of.precision, scale: of.scale }
        }
        (Some(LogicalType::Float16), _, 2) => Kind::Float(16),
        (None, ConvertedType::DECIMAL, _) => decimal(leaf),
        (None, ConvertedType::INTERVAL, _) => Kind::Other("Interval".into()),
        (.., length) => Kind::Other(format!("FixedSizeBinary({length})")),
    }
}

/// Decimals of the older annotation.
fn decimal(leaf: &ColumnDescriptor) -> Kind {
    Kind::Decimal { precision: leaf.type_precision(), scale: leaf.type_scale() }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Boolean => f.write_str("Boolean"),
            Self::Int(bits) => write!(f, "Int{bits}"),
            Self::UInt(bits) => write!(f, "UInt{bits}"),
            Self::Float(bits) => write!(f, "Float{bits}"),
            Self::Decimal { precision, scale } => write!(f, "Decimal({precision}, {scale})"),
            Self::Date => f.write_str("Date32"),
            Self::DateMillis => f.write_str("Date64"),
            Self::Timestamp { unit, utc: false } => write!(f, "Timestamp({unit})"),
            Self::Timestamp { unit, utc: true } => write!(f, "Timestamp({unit}, UTC)"),
            Self::Utf8 => f.write_str("Utf8"),
            Self::Other(name) => f.write_str(name),
        }
    }
}
