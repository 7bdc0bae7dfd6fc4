//! Tables that are refused or fail: the file is whole or not there, and nothing else is left.

use std::fs;
use std::path::PathBuf;

use super::common::{all_kinds, columns, names};
use gnarl_common::{Kind as ErrorKind, Result};
use gnarl_infer::export::{self, Cells, Column, Kind, Written};

/// The usage error of starting a table.
fn refused(out: PathBuf, kinds: &[Column], force: bool) -> String {
    let error = export::create(&out, kinds, 1, force).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

#[test]
fn nothing_is_replaced_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let kinds = columns(&[("id", Kind::Integer), ("score", Kind::Float)]);
    let write = |name: &str, score: f32, force: bool| -> Result<Written> {
        let mut table = export::create(&path(name), &kinds, 1, force)?;
        table.append(&[Cells::Integers(&[1]), Cells::Floats(&[score])])?;
        table.finish()
    };
    for name in ["t.parquet", "t.csv", "t.npy"] {
        write(name, 1.0, false).unwrap();
        let before = fs::read(path(name)).unwrap();
        let text = refused(path(name), &kinds, false);
        assert!(text.contains(&format!("{name}: exists already")), "{text}");
        assert!(text.contains("hint: replace it with --force, or choose another --out"), "{text}");
        assert_eq!(fs::read(path(name)).unwrap(), before);
        write(name, 2.0, true).unwrap();
        assert_ne!(fs::read(path(name)).unwrap(), before);
    }
    assert_eq!(names(dir.path()), ["t.csv", "t.ids.npy", "t.npy", "t.parquet"]);

    fs::remove_file(path("t.npy")).unwrap();
    assert!(refused(path("t.npy"), &kinds, false).contains("t.ids.npy: exists already"));
    fs::create_dir(path("folder.csv")).unwrap();
    assert!(refused(path("folder.csv"), &kinds, true).contains("is not a file"));
}

#[test]
fn a_file_that_appears_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.csv");
    let mut table = export::create(&out, &columns(&[("id", Kind::Integer)]), 1, false).unwrap();
    table.append(&[Cells::Integers(&[1])]).unwrap();
    fs::write(&out, "mine").unwrap();
    let text = table.finish().unwrap_err().to_string();
    assert!(text.contains("t.csv: exists already"), "{text}");
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    assert_eq!(names(dir.path()), ["t.csv"]);
}

#[cfg(unix)]
#[test]
fn links_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.csv");
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &out).unwrap();
    let text = refused(out, &columns(&[("id", Kind::Integer)]), true);
    assert!(text.contains("t.csv: is a link, which is not replaced"), "{text}");
}

#[test]
fn a_place_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new").join("t.parquet");
    let kinds = columns(&[("id", Kind::Integer)]);
    let table = export::create(&out, &kinds, 0, false).unwrap();
    assert!(refused(out.clone(), &kinds, true).contains("is being written by this process"));
    table.finish().unwrap();
    assert_eq!(names(out.parent().unwrap()), ["t.parquet"]);
}

#[test]
fn unsuitable_formats_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let text = refused(path("t.parket"), &all_kinds(), false);
    assert!(text.contains("t.parket: unknown extension 'parket'"), "{text}");
    assert!(text.contains("did you mean 'parquet'? Known: parquet, npy, csv, zarr"), "{text}");
    let text = refused(path("t"), &all_kinds(), false);
    assert!(text.contains("extension is the format: .parquet, .npy, .csv, .zarr"), "{text}");
    let text = refused(path("t.npy"), &all_kinds(), false);
    assert!(text.contains("invalid columns 'id, name, score, embedding'"), "{text}");
    assert!(text.contains("hint: write a .parquet file"), "{text}");
    let names_only = columns(&[("id", Kind::Integer), ("name", Kind::Text)]);
    assert!(refused(path("t.npy"), &names_only, false).contains("one column of numbers"));
    assert!(names(dir.path()).is_empty());
    export::create(&path("t.CSV"), &all_kinds(), 0, false).unwrap().finish().unwrap();
    assert_eq!(names(dir.path()), ["t.CSV"]);
}

#[test]
fn a_failed_append_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str, kinds: &[(&str, Kind)]| {
        export::create(&dir.path().join(name), &columns(kinds), 2, false).unwrap()
    };
    let mut table = create("t.npy", &[("id", Kind::Text), ("score", Kind::Float)]);
    let error = table.append(&[Cells::Texts(&["a", "b\nc"]), Cells::Floats(&[1.0, 2.0])]);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("t.npy: id \"b\\nc\" has a line break"), "{text}");
    assert!(names(dir.path()).is_empty(), "at once");
    assert!(table.append(&[Cells::Texts(&["a"]), Cells::Floats(&[1.0])]).is_err());
    assert!(table.finish().is_err());

    let mut table = create("t.parquet", &[("id", Kind::Integer)]);
    table.append(&[Cells::Integers(&[1])]).unwrap();
    assert!(!names(dir.path()).is_empty());
    drop(table);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn contradictions_are_internal_errors() {
    let dir = tempfile::tempdir().unwrap();
    let kinds = columns(&[("id", Kind::Integer), ("embedding", Kind::List(2))]);
    let create = || export::create(&dir.path().join("t.csv"), &kinds, 2, false).unwrap();
    let cases: [(&[Cells<'_>], &str); 4] = [
        (&[Cells::Integers(&[1])], "cells of 1 of 2 columns"),
        (&[Cells::Integers(&[1]), Cells::Floats(&[1.0])], "embedding are not List(2)"),
        (&[Cells::Integers(&[1]), Cells::Lists(&[1.0])], "embedding are not List(2)"),
        (&[Cells::Integers(&[1, 2]), Cells::Lists(&[1.0, 2.0])], "embedding has 1 cells"),
    ];
    for (cells, expected) in cases {
        let text = create().append(cells).unwrap_err().to_string();
        assert!(text.contains("t.csv: internal error") && text.contains(expected), "{text}");
    }
    let text = create().append(&[Cells::Integers(&[1; 3]), Cells::Lists(&[0.0; 6])]);
    let text = text.unwrap_err().to_string();
    assert!(text.contains("3 rows or more, expected 2"), "{text}");
    let mut table = create();
    table.append(&[Cells::Integers(&[1]), Cells::Lists(&[0.0; 2])]).unwrap();
    let text = table.finish().unwrap_err().to_string();
    assert!(text.contains("1 rows, expected 2"), "{text}");
    assert!(names(dir.path()).is_empty());

    let none = export::create(&dir.path().join("t.csv"), &[], 0, false).err().unwrap();
    assert!(none.to_string().contains("internal error"));
    let zero = columns(&[("embedding", Kind::List(0))]);
    assert!(export::create(&dir.path().join("t.csv"), &zero, 0, false).is_err());
}
