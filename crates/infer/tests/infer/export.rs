//! Tables in files: every kind of cells is read back from each format.

use std::fs::{self, File};
use std::path::Path;

use super::common::{all_kinds, columns, names};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use gnarl_common::Result;
use gnarl_common::npy::NpyHeader;
use gnarl_infer::export::{self, Cells, Kind, Table, Written};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};

const IDS: [i64; 3] = [i64::MIN, 0, i64::MAX];
const TEXTS: [&str; 3] = ["Zürich, \"東京\"", "", "a\nb"];
const SCORES: [f32; 3] = [f32::NAN, f32::NEG_INFINITY, 0.1];
const LISTS: [f32; 6] = [f32::INFINITY, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, 3.0];

/// The three rows of all kinds, in two pieces.
fn fill(mut table: Box<dyn Table>) -> Result<Written> {
    for rows in [0..2, 2..3] {
        table.append(&[
            Cells::Integers(&IDS[rows.clone()]),
            Cells::Texts(&TEXTS[rows.clone()]),
            Cells::Floats(&SCORES[rows.clone()]),
            Cells::Lists(&LISTS[2 * rows.start..2 * rows.end]),
        ])?;
    }
    table.finish()
}

/// Bit patterns, which NaN compares by.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn npy(path: &Path) -> (NpyHeader, Vec<u8>) {
    let header = NpyHeader::read(path).unwrap();
    let bytes = fs::read(path).unwrap().split_off(header.offset as usize);
    (header, bytes)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

fn integers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|value| i64::from_le_bytes(*value)).collect()
}

#[test]
fn parquet_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.parquet");
    let written = fill(export::create(&out, &all_kinds(), 3, false).unwrap()).unwrap();
    let bytes = fs::metadata(&out).unwrap().len();
    assert_eq!(written, Written { files: vec![out.clone()], bytes });
    assert_eq!(names(dir.path()), ["t.parquet"]);

    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&out).unwrap()).unwrap();
    let batches: Vec<_> = builder.build().unwrap().map(|batch| batch.unwrap()).collect();
    let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
    let found: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(found, ["id", "name", "score", "embedding"]);
    assert!(batch.schema().fields().iter().all(|field| !field.is_nullable()));
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values()[..], IDS);
    let texts: Vec<_> = batch.column(1).as_string::<i32>().iter().flatten().collect();
    assert_eq!(texts, TEXTS);
    let scores = batch.column(2).as_primitive::<Float32Type>();
    assert_eq!(bits(scores.values()), bits(&SCORES));
    let lists = batch.column(3).as_list::<i32>();
    assert_eq!(lists.value_offsets(), [0, 2, 4, 6]);
    assert_eq!(bits(lists.values().as_primitive::<Float32Type>().values()), bits(&LISTS));
}

#[test]
fn parquet_says_its_types_and_its_maker() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.parquet");
    fill(export::create(&out, &all_kinds(), 3, false).unwrap()).unwrap();
    let reader = SerializedFileReader::new(File::open(&out).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let maker = &metadata.key_value_metadata().unwrap()[0];
    assert_eq!(maker.key, "written_by");
    assert!(maker.value.as_ref().unwrap().starts_with("gnarl "));
    let paths: Vec<_> =
        metadata.schema_descr().columns().iter().map(|column| column.path().string()).collect();
    assert_eq!(paths, ["id", "name", "score", "embedding.list.element"]);
}

#[test]
fn csv_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.csv");
    fill(export::create(&out, &all_kinds(), 3, false).unwrap()).unwrap();
    assert_eq!(names(dir.path()), ["t.csv"]);
    let mut reader = csv::Reader::from_path(&out).unwrap();
    let header = reader.headers().unwrap().clone();
    assert_eq!(header, vec!["id", "name", "score", "embedding_0", "embedding_1"]);
    for (row, record) in reader.records().enumerate() {
        let record = record.unwrap();
        assert_eq!((&record[0], &record[1]), (IDS[row].to_string().as_str(), TEXTS[row]));
        let number = |i: usize| record[i].parse::<f32>().unwrap();
        let read = [number(2), number(3), number(4)];
        assert_eq!(bits(&read), bits(&[SCORES[row], LISTS[2 * row], LISTS[2 * row + 1]]));
    }
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.contains(",NaN,inf,-0.0\n"), "{text}");
    assert!(text.contains(",\"a\nb\",0.1,1e-45,3.0\n"), "{text}");
}

#[test]
fn npy_has_ids_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let kinds = columns(&[("id", Kind::Integer), ("embedding", Kind::List(2))]);
    let mut table = export::create(&path("v.npy"), &kinds, 3, false).unwrap();
    table.append(&[Cells::Integers(&IDS[..1]), Cells::Lists(&LISTS[..2])]).unwrap();
    table.append(&[Cells::Integers(&IDS[1..]), Cells::Lists(&LISTS[2..])]).unwrap();
    let written = table.finish().unwrap();
    assert_eq!(written.files, [path("v.npy"), path("v.ids.npy")]);
    assert_eq!(written.bytes, 2 * 128 + 3 * 8 + 6 * 4);
    let (header, values) = npy(&path("v.npy"));
    assert_eq!((header.descr.as_str(), &header.shape[..]), ("<f4", &[3, 2][..]));
    assert_eq!(bits(&floats(&values)), bits(&LISTS));
    let (header, ids) = npy(&path("v.ids.npy"));
    assert_eq!((header.descr.as_str(), &header.shape[..]), ("<i8", &[3][..]));
    assert_eq!(integers(&ids), IDS);

    let kinds = columns(&[("id", Kind::Text), ("score", Kind::Float)]);
    let mut table = export::create(&path("s.npy"), &kinds, 3, false).unwrap();
    table.append(&[Cells::Texts(&["東京", "", "x y"]), Cells::Floats(&SCORES)]).unwrap();
    assert_eq!(table.finish().unwrap().files, [path("s.npy"), path("s.ids.txt")]);
    let (header, values) = npy(&path("s.npy"));
    assert_eq!(header.shape, [3]);
    assert_eq!(bits(&floats(&values)), bits(&SCORES));
    assert_eq!(fs::read_to_string(path("s.ids.txt")).unwrap(), "東京\n\nx y\n");

    let kinds = columns(&[("class", Kind::Integer)]);
    let mut table = export::create(&path("c.npy"), &kinds, 3, false).unwrap();
    table.append(&[Cells::Integers(&IDS)]).unwrap();
    assert_eq!(table.finish().unwrap().files, [path("c.npy")]);
    assert_eq!(integers(&npy(&path("c.npy")).1), IDS);
}

#[test]
fn tables_may_be_empty() {
    let dir = tempfile::tempdir().unwrap();
    for (name, kinds) in [
        ("t.parquet", all_kinds()),
        ("t.csv", all_kinds()),
        ("t.npy", columns(&[("id", Kind::Text), ("embedding", Kind::List(7))])),
    ] {
        export::create(&dir.path().join(name), &kinds, 0, false).unwrap().finish().unwrap();
    }
    let file = File::open(dir.path().join("t.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(builder.schema().fields().len(), 4);
    assert_eq!(builder.build().unwrap().count(), 0);
    let text = fs::read_to_string(dir.path().join("t.csv")).unwrap();
    assert_eq!(text, "id,name,score,embedding_0,embedding_1\n");
    assert_eq!(npy(&dir.path().join("t.npy")).0.shape, [0, 7]);
    assert_eq!(fs::read(dir.path().join("t.ids.txt")).unwrap(), b"");
}
