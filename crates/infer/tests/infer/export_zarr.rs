//! Tables as Zarr groups: read back, refused, replaced and failed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::common::{all_kinds, columns, names};
use gnarl_common::{Kind as ErrorKind, Result};
use gnarl_infer::export::{self, Cells, Column, Kind, Table, Written};
use zarrs::array::{Array, ElementOwned};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::Group;

const IDS: [i64; 3] = [i64::MIN, 0, i64::MAX];
const TEXTS: [&str; 3] = ["Zürich, \"東京\"", "", "a\nb\u{1F980}"];
const SCORES: [f32; 3] = [f32::NAN, f32::NEG_INFINITY, 0.1];
const LISTS: [f32; 6] = [f32::INFINITY, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45, 3.0];

fn open(folder: &Path, name: &str) -> Array<FilesystemStore> {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    Array::open(store, &format!("/{name}")).unwrap()
}

fn read<T: ElementOwned>(folder: &Path, name: &str) -> Vec<T> {
    let array = open(folder, name);
    array.retrieve_array_subset(&array.subset_all()).unwrap()
}

/// Bit patterns, which NaN compares by.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A table of ids only.
fn write(out: &Path, ids: &[i64], force: bool) -> Result<Written> {
    let kinds = columns(&[("id", Kind::Integer)]);
    let mut table = export::create(out, &kinds, ids.len() as u64, force)?;
    table.append(&[Cells::Integers(ids)])?;
    table.finish()
}

fn refused(out: PathBuf, kinds: &[Column], force: bool) -> String {
    let error = export::create(&out, kinds, 1, force).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

#[test]
fn every_kind_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.zarr");
    let mut table = export::create(&out, &all_kinds(), 3, false).unwrap();
    for rows in [0..2, 2..3] {
        let cells = [
            Cells::Integers(&IDS[rows.clone()]),
            Cells::Texts(&TEXTS[rows.clone()]),
            Cells::Floats(&SCORES[rows.clone()]),
            Cells::Lists(&LISTS[2 * rows.start..2 * rows.end]),
        ];
        table.append(&cells).unwrap();
    }
    assert!(!out.exists(), "before the end");
    let written = table.finish().unwrap();
    assert_eq!(written.files, std::slice::from_ref(&out));
    assert!(written.bytes > 24 + 24 + 12);
    assert_eq!(names(dir.path()), ["t.zarr"]);
    assert_eq!(names(&out), ["embedding", "id", "name", "score", "zarr.json"]);

    assert_eq!(read::<i64>(&out, "id"), IDS);
    assert_eq!(read::<String>(&out, "name"), TEXTS);
    assert_eq!(bits(&read::<f32>(&out, "score")), bits(&SCORES));
    assert_eq!(bits(&read::<f32>(&out, "embedding")), bits(&LISTS));
    assert_eq!(open(&out, "embedding").shape(), [3, 2]);
    let group = Group::open(Arc::new(FilesystemStore::new(&out).unwrap()), "/").unwrap();
    assert!(group.attributes()["written_by"].as_str().unwrap().starts_with("gnarl "));
    assert_eq!(group.attributes()["rows"], 3);
    assert_eq!(group.attributes()["columns"].as_array().unwrap().len(), 4);
}

#[test]
fn tables_may_have_one_row_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("one.zarr");
    write(&out, &[7], false).unwrap();
    assert_eq!(read::<i64>(&out, "id"), [7]);
    let out = dir.path().join("none.zarr");
    export::create(&out, &all_kinds(), 0, false).unwrap().finish().unwrap();
    assert_eq!(open(&out, "embedding").shape(), [0, 2]);
    assert!(read::<String>(&out, "name").is_empty());
}

#[test]
fn groups_are_replaced_only_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.zarr");
    write(&out, &[1, 2], false).unwrap();
    let text = refused(out.clone(), &all_kinds(), false);
    assert!(text.contains("t.zarr: exists already"), "{text}");
    assert!(text.contains("hint: replace it with --force, or choose another --out"), "{text}");
    write(&out, &[3], true).unwrap();
    assert_eq!(read::<i64>(&out, "id"), [3]);
    assert_eq!(names(dir.path()), ["t.zarr"]);
}

#[test]
fn other_folders_are_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("thesis.zarr")).unwrap();
    fs::write(path("thesis.zarr").join("thesis.tex"), "").unwrap();
    let text = refused(path("thesis.zarr"), &all_kinds(), true);
    assert!(text.contains("thesis.zarr: exists and is not a Zarr group"), "{text}");
    // An array has a file of the same name.
    write(&path("t.zarr"), &[1], false).unwrap();
    fs::rename(path("t.zarr").join("id"), path("array.zarr")).unwrap();
    let text = refused(path("array.zarr"), &all_kinds(), true);
    assert!(text.contains("is not a Zarr group"), "{text}");
    fs::write(path("file.zarr"), "").unwrap();
    assert!(refused(path("file.zarr"), &all_kinds(), true).contains("is not a Zarr group"));
    // An empty folder is free.
    fs::create_dir(path("empty.zarr")).unwrap();
    write(&path("empty.zarr"), &[1], false).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(path("t.zarr"), path("link.zarr")).unwrap();
        let text = refused(path("link.zarr"), &all_kinds(), true);
        assert!(text.contains("is a link, which is not replaced"), "{text}");
    }
}

#[test]
fn a_folder_that_appears_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.zarr");
    let kinds = columns(&[("id", Kind::Integer)]);
    let mut table = export::create(&out, &kinds, 1, true).unwrap();
    table.append(&[Cells::Integers(&[1])]).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine"), "").unwrap();
    let text = table.finish().unwrap_err().to_string();
    assert!(text.contains("t.zarr: exists and is not a Zarr group"), "{text}");
    assert_eq!(names(dir.path()), ["t.zarr"]);
    assert_eq!(names(&out), ["mine"]);
}

#[test]
fn a_place_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new").join("t.zarr");
    let kinds = columns(&[("id", Kind::Integer)]);
    let table = export::create(&out, &kinds, 0, false).unwrap();
    assert!(refused(out.clone(), &kinds, true).contains("is being written by"));
    table.finish().unwrap();
    assert_eq!(names(out.parent().unwrap()), ["t.zarr"]);
}

/// A table of two rows, in whose temporary folder there is a file where the folder of chunks of `d` is to be.
fn broken(dir: &Path) -> Box<dyn Table> {
    let lists = ["a", "b", "c", "d"].map(|name| (name, Kind::List(2)));
    let table = export::create(&dir.join("t.zarr"), &columns(&lists), 2, false).unwrap();
    let temporary = names(dir).into_iter().find(|name| name.contains(".tmp-")).unwrap();
    fs::write(dir.join(temporary).join("d").join("c"), "").unwrap();
    table
}

fn is_named(error: &gnarl_common::Error) {
    assert_eq!(error.kind(), ErrorKind::Io);
    let text = error.to_string();
    assert!(text.starts_with("writing ") && text.contains("d: "), "{text}");
    assert!(text.contains("os error"), "{text}");
}

#[test]
fn a_failed_append_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = broken(dir.path());
    // Four full chunks are written at once.
    let cells = [Cells::Lists(&[0.0, 1.0, 2.0, 3.0]); 4];
    is_named(&table.append(&cells).unwrap_err());
    assert!(names(dir.path()).is_empty(), "at once");
    assert!(table.append(&cells).is_err());
    assert!(table.finish().is_err());
}

#[test]
fn a_failed_end_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("old.zarr");
    write(&out, &[1], false).unwrap();
    let lists = columns(&[("a", Kind::List(2))]);
    let mut table = export::create(&out, &lists, 2, true).unwrap();
    let temporary = names(dir.path()).into_iter().find(|name| name.contains(".tmp-")).unwrap();
    fs::write(dir.path().join(temporary).join("a").join("c"), "").unwrap();
    table.append(&[Cells::Lists(&[0.0, 1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(table.finish().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(names(dir.path()), ["old.zarr"]);
    assert_eq!(read::<i64>(&out, "id"), [1]);
}
