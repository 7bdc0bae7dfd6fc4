//! Folders that are kept in a store.

use std::fs::{read, write};
use std::sync::Arc;

use object_store::memory::InMemory;

use super::{content, put, remote};
use crate::store::mirror::Mirror;

fn mirror(folder: &std::path::Path) -> Mirror {
    let remote = remote("s3://bucket/runs/a", Arc::new(InMemory::new()));
    Mirror::of(remote, folder.into())
}

#[test]
fn files_go_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let mirror = mirror(dir.path());
    assert!(mirror.names().unwrap().is_empty());
    assert_eq!(mirror.read("a").unwrap(), None);
    assert_eq!(mirror.version("a").unwrap(), None);
    let large: Vec<u8> = (0..5000).map(|i| (i % 251) as u8).collect();
    write(dir.path().join("x"), &large).unwrap();
    mirror.push(&dir.path().join("x"), "b").unwrap();
    mirror.write("a", b"small").unwrap();
    assert_eq!(mirror.names().unwrap(), ["a", "b"]);
    assert!(content(&mirror.remote, "runs/a/b").unwrap() == large);
    let first = mirror.version("a").unwrap();
    mirror.write("a", b"other").unwrap();
    assert!(first.is_some() && mirror.version("a").unwrap() != first);
    write(dir.path().join("gone"), b"").unwrap();
    mirror.pull(&["a", "b", "gone"]).unwrap();
    assert_eq!(read(dir.path().join("a")).unwrap(), b"other");
    assert!(read(dir.path().join("b")).unwrap() == large);
    assert!(!dir.path().join("gone").exists());
    mirror.remove(&["b", "none"]).unwrap();
    assert_eq!(mirror.names().unwrap(), ["a"]);
}

#[test]
fn files_are_of_one_moment_while_another_process_uploads() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(InMemory::new());
    let reader = Mirror::of(remote("s3://bucket/r", Arc::clone(&store) as _), dir.path().into());
    let writer = remote("s3://bucket/r", store);
    put(&writer, "r/list", b"");
    put(&writer, "r/last", b"0");
    let writing = std::thread::spawn(move || {
        // The last object refers to as many bytes of the first one.
        for version in 1..400 {
            put(&writer, "r/list", &vec![0; version]);
            put(&writer, "r/last", version.to_string().as_bytes());
        }
    });
    while !writing.is_finished() {
        // Objects that change all the time may be given up.
        if reader.pull(&["list", "last"]).is_ok() {
            let last = String::from_utf8(read(dir.path().join("last")).unwrap()).unwrap();
            let list = read(dir.path().join("list")).unwrap();
            assert!(list.len() >= last.parse().unwrap(), "{} {last}", list.len());
        }
    }
    writing.join().unwrap();
    reader.pull(&["list", "last"]).unwrap();
    assert_eq!(read(dir.path().join("last")).unwrap(), b"399");
}
