//! Damaged files result in errors.

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Int64Array, ListArray,
    RecordBatch, StringArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::*;

/// A file of two row groups with a column for each decoder.
fn small(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let rows = 60i64;
    let words: DictionaryArray<Int32Type> =
        (0..rows).map(|i| (i % 5 > 0).then_some(["a", "bc", "def"][i as usize % 3])).collect();
    let lists = (0..rows).map(|i| Some(vec![Some(i), None, Some(-i)]));
    let columns: [(&str, ArrayRef); 8] = [
        ("id", Arc::new((0..rows).map(|i| i * 3).collect::<Int64Array>())),
        ("maybe", Arc::new((0..rows).map(|i| (i % 7 > 0).then_some(i)).collect::<Int64Array>())),
        ("flag", Arc::new((0..rows).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>())),
        ("word", Arc::new(words)),
        ("text", Arc::new((0..rows).map(|i| Some(format!("row {i}"))).collect::<StringArray>())),
        ("part", Arc::new((0..rows).map(|i| i as f32 / 8.0).collect::<Float32Array>())),
        ("price", Arc::new(Decimal128Array::from_iter_values((0..rows).map(i128::from)))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, name != "id"));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = properties.set_max_row_group_row_count(Some(40)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Reads every column in every way that its type allows; returns the number of rows.
fn read(path: &Path) -> Result<u64> {
    let mut rows = 0;
    for number in [false, true] {
        let mut reader = ParquetReader::open(path)?;
        let mut cells = Vec::new();
        for (column, name) in reader.columns().iter().enumerate() {
            let only_number = ["price", "list"].contains(&name.as_str());
            if number && reader.is_numeric(column) || only_number {
                cells.push((column, Cell::Number));
            } else if !number {
                cells.push((column, Cell::Text));
            }
        }
        reader.select(cells)?;
        let mut batch = Batch::default();
        while reader.next(&mut batch)? {
            rows += batch.rows() as u64;
        }
    }
    Ok(rows)
}

/// The results of reading a file with single bits flipped, at every `step`th byte.
fn flipped(bytes: &[u8], step: usize) -> Vec<Result<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let mut found = Vec::new();
    for place in (0..bytes.len()).step_by(step) {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&path, &bytes).unwrap();
        found.push(read(&path));
    }
    found
}

#[test]
fn flipped_bits_end_in_errors() {
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let base = || WriterProperties::builder().set_compression(Compression::SNAPPY);
    let mut kinds = versions.map(|version| base().set_writer_version(version)).to_vec();
    kinds.push(
        WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_encoding("id".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY)
            .set_column_encoding("part".into(), Encoding::BYTE_STREAM_SPLIT),
    );
    let (mut refused, mut panicked) = (0, 0);
    for kind in kinds {
        for result in flipped(&small(kind), 9) {
            let Err(e) = result else { continue };
            refused += 1;
            panicked += u32::from(e.to_string().contains("stopped at damaged bytes"));
            assert!(e.to_string().contains("t.parquet: "), "{e}");
        }
    }
    // The decoder does panic now and then; once it never does, `guarded` has nothing to guard.
    assert!(refused > 300 && panicked > 0, "{refused}, {panicked}");
}

#[test]
fn files_cut_short_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let whole = small(WriterProperties::builder());
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(read(&path).unwrap(), 120);
    for end in (0..whole.len()).rev().step_by(11).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..end]).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("t.parquet: not a readable Parquet file"), "{message}");
    }
}
