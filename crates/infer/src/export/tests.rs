//! Tables of several Parquet groups, and tables on a full disk.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::format::Format;
use super::parquet::ParquetTable;
use super::{Cells, Column, Kind};

/// The limit of a group is lowered, so that few rows make many.
#[test]
fn rows_keep_their_order_over_groups() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let columns =
        [("id", Kind::Integer), ("name", Kind::Text), ("score", Kind::Float), ("e", Kind::List(5))]
            .map(|(name, kind)| Column::new(name, kind));
    let rows = 40_000;
    let mut table = Box::new(ParquetTable::new(&path, &columns, 1 << 18).unwrap());
    let mut first = 0;
    // Pieces that are smaller than a group, as large as several, and empty.
    for piece in [1, 0, 999, 30_000, 9_000] {
        let ids: Vec<i64> = (first..first + piece).collect();
        let names: Vec<String> = ids.iter().map(|id| "é".repeat(*id as usize % 9)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let scores: Vec<f32> = ids.iter().map(|&id| id as f32 / 2.0).collect();
        let lists: Vec<f32> = (5 * first..5 * (first + piece)).map(|i| i as f32).collect();
        let cells = [
            Cells::Integers(&ids),
            Cells::Texts(&names),
            Cells::Floats(&scores),
            Cells::Lists(&lists),
        ];
        table.append(&cells, ids.len()).unwrap();
        first += piece;
    }
    assert_eq!(first, rows);
    table.finish().unwrap();

    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.file_metadata().num_rows(), rows);
    let groups: Vec<_> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    let (last, full) = groups.split_last().unwrap();
    // A row has 8 + 8 + 4 + 20 bytes and 8 bytes of text on average.
    assert!(full.len() > 5 && full.iter().all(|rows| (4800..6600).contains(rows)), "{groups:?}");
    assert!(*last > 0 && *last < 6600, "{groups:?}");
    for (id, row) in (0..rows).zip(reader.get_row_iter(None).unwrap()) {
        let row = row.unwrap();
        assert_eq!(row.get_long(0).unwrap(), id);
        assert_eq!(row.get_string(1).unwrap(), &"é".repeat(id as usize % 9));
        assert_eq!(row.get_float(2).unwrap(), id as f32 / 2.0);
        let list = row.get_list(3).unwrap().elements().iter();
        let list: Vec<String> = list.map(ToString::to_string).collect();
        assert_eq!(list.len(), 5);
        assert_eq!(list[4], format!("{:.1}", (5 * id + 4) as f32));
    }
}

/// Writes to `/dev/full` fail as those to a full disk do.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let path = Path::new("/dev/full");
    let columns = [Column::new("e", Kind::List(4))];
    let formats = [super::csv::create(path, &columns), super::parquet::create(path, &columns)];
    for format in formats {
        let mut format = format.unwrap();
        let values = vec![1.5; 4 * 100];
        let written = format.append(&[Cells::Lists(&values)], 100);
        let error = written.and_then(|()| format.finish()).unwrap_err();
        assert_eq!(error.kind(), gnarl_common::Kind::Io);
        assert!(error.to_string().starts_with("/dev/full: No space left"), "{error}");
    }
}
