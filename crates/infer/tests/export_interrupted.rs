//! An interruption removes unfinished tables. It ends the process, which therefore has no other
//! tests.

use gnarl_common::staging::interrupt;
use gnarl_infer::export::{self, Cells, Column, Kind};

#[test]
fn an_interruption_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [Column::new("id", Kind::Integer), Column::new("embedding", Kind::List(2))];
    let names = [
        "t.parquet",
        "t.npy",
        "t.csv",
        #[cfg(feature = "zarr")]
        "t.zarr",
    ];
    let tables = names.map(|name| {
        let mut table = export::create(&dir.path().join(name), &columns, 2, false).unwrap();
        table.append(&[Cells::Integers(&[7]), Cells::Lists(&[0.5, 1.5])]).unwrap();
        table
    });
    assert!(std::fs::read_dir(dir.path()).unwrap().count() > 0);
    interrupt::abandon();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // They would wait for the end of the process.
    std::mem::forget(tables);
}
