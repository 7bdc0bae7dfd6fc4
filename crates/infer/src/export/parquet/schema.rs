//! Types and encodings of the columns.

use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, PrimitiveTypeBuilder, Type};

use crate::export::table::{Column, Kind};

/// The schema of a table: required columns; lists have the three levels of the format's
/// specification, with required elements.
pub(super) fn schema(columns: &[Column]) -> Result<Type> {
    let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?)));
    let fields = fields.collect::<Result<_>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

fn field(Column { name, kind }: &Column) -> Result<Type> {
    match kind {
        Kind::Integer => required(name, Physical::INT64).build(),
        Kind::Float => required(name, Physical::FLOAT).build(),
        Kind::Text => required(name, Physical::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
            .build(),
        Kind::List(_) => {
            let element = required("element", Physical::FLOAT).build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            Type::group_type_builder(name)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::List))
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()
        }
    }
}

fn required(name: &str, physical: Physical) -> PrimitiveTypeBuilder<'_> {
    Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED)
}

/// Encodings and compression, and who made the file.
pub(super) fn properties(columns: &[Column]) -> WriterProperties {
    let maker = format!("gnarl {}", env!("CARGO_PKG_VERSION"));
    let level = ZstdLevel::try_new(1).expect("a level of zstd");
    let mut builder = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![KeyValue::new("written_by".into(), maker)]))
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for Column { name, kind } in columns {
        let path = match kind {
            // Dictionaries serve classes; those of ids are given up after a megabyte.
            Kind::Integer | Kind::Text => continue,
            Kind::Float => ColumnPath::new(vec![name.clone()]),
            Kind::List(_) => {
                let parts = [name, "list", "element"];
                ColumnPath::new(parts.map(String::from).to_vec())
            }
        };
        if let Kind::List(_) = kind {
            // Random numbers do not compress. 250,000 lists of 128 normally distributed values, by
            // one core of a shared two-core Xeon, best of six, relative to the bytes of the values:
            //
            // | encoding                      | size  | write    | read     |
            // |-------------------------------|-------|----------|----------|
            // | plain, uncompressed           | 101 % | 602 MB/s | 682 MB/s |
            // | byte stream split, zstd 1     |  84 % | 288 MB/s | 487 MB/s |
            // | plain, zstd 1                 |  92 % | 292 MB/s | 384 MB/s |
            //
            // A sixth of the size is not worth half of the speed, and every reader knows plain
            // values.
            builder = builder
                .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                .set_column_encoding(path.clone(), Encoding::PLAIN)
                .set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        // Hardly a number occurs twice.
        builder = builder.set_column_dictionary_enabled(path, false);
    }
    builder.build()
}
