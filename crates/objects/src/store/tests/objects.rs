//! A file as an object.

use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::memory::InMemory;

use super::faulty::{Fault, Faulty};
use super::{content, refused, remote};

const NAME: &str = "nodes.csv";
const TEXT: &str = "s3://bucket/mine/nodes.csv";
const PATH: &str = "mine/nodes.csv";

/// A file of so many bytes, not all of them alike.
fn file(dir: &LocalPath, bytes: usize) -> (PathBuf, Vec<u8>) {
    let path = dir.join(format!("{bytes}"));
    let content: Vec<u8> = (0..bytes).map(|i| (i * i % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    (path, content)
}

#[test]
fn files_of_any_size_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let remote = remote(TEXT, Arc::new(InMemory::new()));
    for bytes in [0, 1, 999, 1000, 1001, 3000, 10_500] {
        let (path, expected) = file(dir.path(), bytes);
        remote.upload_object(NAME, &path, true).unwrap();
        assert!(content(&remote, PATH).unwrap() == expected, "{bytes} bytes");
    }
    let (path, expected) = file(dir.path(), 10);
    remote.upload_object("nodes.ids.npy", &path, false).unwrap();
    assert_eq!(content(&remote, "mine/nodes.ids.npy").unwrap(), expected);
}

#[test]
fn nothing_is_replaced_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for store in [Faulty::new(Fault::None), Faulty::new(Fault::Unconditional)] {
        let remote = remote(TEXT, Arc::new(store));
        for bytes in [10, 5000] {
            let (path, expected) = file(dir.path(), bytes);
            remote.upload_object(NAME, &path, true).unwrap();
            let other = file(dir.path(), bytes + 1).0;
            let text = refused(remote.upload_object(NAME, &other, false), 2);
            assert!(text.contains("s3://bucket/mine/nodes.csv: exists already"), "{text}");
            assert!(text.contains("hint: replace it with --force"), "{text}");
            assert_eq!(content(&remote, PATH).unwrap(), expected);
        }
        let text = refused(remote.check_objects(&["free", NAME], false), 2);
        assert!(text.contains("exists already"), "{text}");
        remote.check_objects(&["free", NAME], true).unwrap();
        remote.check_objects(&["free"], false).unwrap();
        let (path, expected) = file(dir.path(), 7);
        remote.upload_object("free", &path, false).unwrap();
        assert_eq!(content(&remote, "mine/free").unwrap(), expected);
    }
}

#[test]
fn a_failure_in_the_middle_leaves_the_old_object() {
    let dir = tempfile::tempdir().unwrap();
    let (old, expected) = file(dir.path(), 100);
    let new = file(dir.path(), 10_500).0;
    for fault in [Fault::Part(0), Fault::Part(5), Fault::Part(10), Fault::Complete] {
        let store = Faulty::new(fault);
        let aborted = store.aborted.clone();
        let remote = remote(TEXT, Arc::new(store));
        let text = refused(remote.upload_object(NAME, &new, false), 1);
        assert_eq!(content(&remote, PATH), None, "{fault:?}");
        remote.upload_object(NAME, &old, false).unwrap();
        let again = refused(remote.upload_object(NAME, &new, true), 1);
        assert_eq!(content(&remote, PATH).unwrap(), expected, "{fault:?}");
        assert_eq!(aborted.load(Ordering::SeqCst), 2, "{fault:?}");
        for text in [text, again] {
            let doing = if fault == Fault::Complete { "completing" } else { "uploading a part" };
            assert!(text.starts_with(doing), "{text}");
            assert!(text.contains("s3://bucket/mine/nodes.csv: "), "{text}");
            assert!(text.contains("503 Slow Down\nhint: check the network"), "{text}");
        }
    }
}

#[test]
fn waits_have_a_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let store = Faulty::new(Fault::Silence);
    let aborted = store.aborted.clone();
    let remote = remote(TEXT, Arc::new(store));
    let text = refused(remote.upload_object(NAME, &file(dir.path(), 10_500).0, false), 1);
    assert!(text.contains("nodes.csv: no answer within 0.3 s\nhint: "), "{text}");
    assert_eq!(content(&remote, PATH), None);
    assert_eq!(aborted.load(Ordering::SeqCst), 1);
}
