//! A file of a partition is cut short.

use std::path::{Path, PathBuf};

use super::{Divided, numbers};
use crate::common::{gnarl, path, succeed};

/// All files in a folder and its subfolders.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Cuts each file of the partition in turn, and trains: those that are not `unread`, by name or by `*` and the end of it, are
/// named.
fn every_cut_is_told(divided: &Divided, unread: &[&str]) {
    let args = divided.args(&divided.parts, "ranks", &["sample.method=exact"]);
    let train = |file: &Path, bytes: &[u8]| {
        std::fs::write(file, bytes).unwrap();
        let output = gnarl().args(&args).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // The catalog of nodes is for inference.
    let catalog = divided.parts.join("nodes");
    let named = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        unread.iter().any(|other| match other.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => name == *other,
        })
    };
    let read = |file: &PathBuf| !named(file) && !file.starts_with(&catalog);
    for file in files(&divided.parts).into_iter().filter(read) {
        let bytes = std::fs::read(&file).unwrap();
        for length in [bytes.len() / 2, bytes.len() - 1] {
            let (code, err) = train(&file, &bytes[..length]);
            let named = err.starts_with("error: ") && err.contains(path(&file));
            assert!(code == Some(1) && named, "{}, {length} bytes: {err}", file.display());
            assert!(!divided.bench.run.exists(), "nothing is written");
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let whole = numbers(&succeed(&args));
    for file in files(&divided.parts).into_iter().filter(|file| !read(file)) {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(numbers(&succeed(&args)), whole, "the others are not needed");
}

/// Files of an edge cut that training does not read.
const UNREAD: [&str; 5] = [
    "report.html",
    "map-0.holders.npy",
    "map-0.new_id.npy",
    "_N._E._N.src.npy",
    "_N._E._N.dst.npy",
];

#[test]
fn a_cut_file_of_an_edge_cut_partition_is_named() {
    every_cut_is_told(&Divided::cut("epochs = 2", &["--algorithm", "spring"]), &UNREAD);
}

#[test]
fn a_cut_file_of_a_vertex_cut_partition_is_named() {
    let unread = ["report.html", "map-0.new_id.npy", "_N.degree.npy", "_N.orig_id.npy"];
    let layout = ["--algorithm", "adadne", "--layout", "vertex-cut"];
    every_cut_is_told(&Divided::cut("epochs = 2", &layout), &unread);
}

#[test]
fn a_cut_file_of_the_parts_of_a_task_is_named() {
    every_cut_is_told(&Divided::links("epochs = 2", &["--algorithm", "spring"]), &UNREAD);
}

#[test]
fn a_cut_file_of_typed_parts_is_named() {
    let types = ["author", "paper", "topic", "venue"];
    let columns = types.map(|name| [format!("{name}.degree.npy"), format!("{name}.orig_id.npy")]);
    let columns = columns.iter().flatten().map(String::as_str);
    // In-degrees by edge type are in the lists, too.
    let by_type = (0..8).map(|number| format!("*.r{number}.npy")).collect::<Vec<_>>();
    let unread =
        columns.chain(by_type.iter().map(String::as_str)).chain(["report.html", "*.new_id.npy"]);
    every_cut_is_told(&Divided::typed("epochs = 2"), &unread.collect::<Vec<_>>());
}
