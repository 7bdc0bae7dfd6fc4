//! Tables of several chunks, read back.

use std::sync::Arc;

use zarrs::array::Array;
use zarrs::filesystem::FilesystemStore;

use super::{Limits, ZarrTable};
use crate::export::format::Format;
use crate::export::{Cells, Column, Kind};

/// The limits are lowered, so that few rows make many chunks.
const LIMITS: Limits = Limits { rows: 64, bytes: 640 };

fn columns() -> Vec<Column> {
    [("id", Kind::Integer), ("name", Kind::Text), ("score", Kind::Float), ("e", Kind::List(5))]
        .map(|(name, kind)| Column::new(name, kind))
        .to_vec()
}

#[test]
fn rows_keep_their_order_over_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 1000;
    let mut table = Box::new(ZarrTable::new(dir.path(), &columns(), rows, LIMITS).unwrap());
    let mut first = 0;
    // Pieces that are smaller than a chunk, as large as several, and empty.
    for piece in [1, 0, 63, 64, 7, 800, 65] {
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
    assert_eq!(first as u64, rows);
    table.finish().unwrap();

    let store = Arc::new(FilesystemStore::new(dir.path()).unwrap());
    let open = |name: &str| Array::open(store.clone(), &format!("/{name}")).unwrap();
    let [id, name, score, e] = ["id", "name", "score", "e"].map(open);
    let chunks = |array: &Array<FilesystemStore>| array.chunk_grid_shape().to_vec();
    assert_eq!(chunks(&id), [16], "of 64 rows, and the last of 40");
    assert_eq!(chunks(&e), [32, 1], "of 32 rows, which have 640 bytes");
    assert_eq!(e.dimension_names().as_ref().unwrap().len(), 2);
    let ids: Vec<i64> = id.retrieve_array_subset(&id.subset_all()).unwrap();
    assert!(ids.into_iter().eq(0..1000));
    let names: Vec<String> = name.retrieve_array_subset(&name.subset_all()).unwrap();
    assert!((0..1000).map(|id| "é".repeat(id % 9)).eq(names));
    let scores: Vec<f32> = score.retrieve_array_subset(&score.subset_all()).unwrap();
    assert!((0..1000).map(|id| id as f32 / 2.0).eq(scores));
    let lists: Vec<f32> = e.retrieve_array_subset(&e.subset_all()).unwrap();
    assert!((0..5000).map(|i| i as f32).eq(lists));
}

#[test]
fn a_table_smaller_than_a_chunk_has_one_of_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [Column::new("e", Kind::List(2))];
    let mut table = Box::new(ZarrTable::new(dir.path(), &columns, 3, LIMITS).unwrap());
    table.append(&[Cells::Lists(&[1.0; 6])], 3).unwrap();
    table.finish().unwrap();
    let chunk = dir.path().join("e").join("c").join("0").join("0");
    assert_eq!(std::fs::metadata(chunk).unwrap().len(), 24, "neither padded nor compressed");
}
