//! Helpers of tests of tables.

use std::fs;
use std::path::Path;

use gnarl_infer::export::{Column, Kind};

/// Columns by name and kind.
pub fn columns(kinds: &[(&str, Kind)]) -> Vec<Column> {
    kinds.iter().map(|&(name, kind)| Column::new(name, kind)).collect()
}

/// A column of each kind.
pub fn all_kinds() -> Vec<Column> {
    columns(&[
        ("id", Kind::Integer),
        ("name", Kind::Text),
        ("score", Kind::Float),
        ("embedding", Kind::List(2)),
    ])
}

/// Names of the files in a folder, ascending.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
