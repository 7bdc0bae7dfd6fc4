//! Datasets in the cache.

use std::path::Path as LocalPath;
use std::sync::Arc;

use gnarl_common::Kind;
use object_store::memory::InMemory;

use super::{put, remote};
use crate::store::cache::{CacheSettings, Wanted, fetch_from};
use crate::store::remote::Remote;

const MARKERS: Wanted<'_> =
    Wanted { markers: &["dataset.json", "partition.json"], only: &|_| true };

fn settings(folder: &LocalPath, bytes: u64) -> CacheSettings {
    CacheSettings { folder: folder.join("cache"), bytes }
}

/// A dataset with files of one range and of several.
fn dataset(name: &str) -> Remote {
    let remote = remote(&format!("s3://bucket/data/{name}"), Arc::new(InMemory::new()));
    put(&remote, &format!("data/{name}/dataset.json"), b"{}");
    put(&remote, &format!("data/{name}/nodes/x.npy"), &large());
    put(&remote, &format!("data/{name}/empty"), b"");
    put(&remote, &format!("data/{name}2/other"), b"of another");
    remote
}

fn large() -> Vec<u8> {
    (0..3500).map(|i| (i * i % 251) as u8).collect()
}

/// Names in the cache, without locks.
fn names(settings: &CacheSettings) -> Vec<String> {
    let entries = std::fs::read_dir(&settings.folder).unwrap().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.ends_with(".used"));
    names.sort();
    names
}

#[test]
fn a_dataset_is_fetched_once_per_version() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20);
    let remote = dataset("g");
    let folder = fetch_from(&remote, MARKERS, &settings).unwrap();
    assert_eq!(std::fs::read(folder.join("dataset.json")).unwrap(), b"{}");
    assert!(std::fs::read(folder.join("nodes").join("x.npy")).unwrap() == large());
    assert_eq!(std::fs::read(folder.join("empty")).unwrap(), b"");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    std::fs::write(folder.join("mark"), "").unwrap();
    assert_eq!(fetch_from(&remote, MARKERS, &settings).unwrap(), folder);
    assert!(folder.join("mark").exists(), "not fetched again");
    put(&remote, "data/g/nodes/x.npy", b"new");
    let other = fetch_from(&remote, MARKERS, &settings).unwrap();
    assert_ne!(other, folder);
    assert_eq!(std::fs::read(other.join("nodes").join("x.npy")).unwrap(), b"new");
    assert_eq!(names(&settings).len(), 2);
}

#[test]
fn what_is_no_dataset_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 1 << 20);
    let remote = remote("s3://bucket/data/g", Arc::new(InMemory::new()));
    put(&remote, "data/g/thesis.tex", b"");
    let error = fetch_from(&remote, MARKERS, &settings).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    let text = error.to_string();
    assert!(text.contains("s3://bucket/data/g: no dataset.json or partition.json among 1 obj"));
    assert!(!settings.folder.exists());
}

#[test]
fn what_does_not_fit_is_refused_with_both_figures() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 3000);
    let error = fetch_from(&dataset("g"), MARKERS, &settings).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit);
    let text = error.to_string();
    assert!(
        text.contains("s3://bucket/data/g: has 3.4 KiB, and the cache at most 2.9 KiB"),
        "{text}"
    );
    assert!(text.contains("hint: allow more with GNARL_CACHE_BYTES"), "{text}");
    assert!(names(&settings).is_empty());
}

#[test]
fn datasets_in_use_stay_and_others_make_room() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), 8000);
    let used = fetch_from(&dataset("used"), MARKERS, &settings).unwrap();
    // As earlier processes left them.
    let old = settings.folder.join("old-0123456789abcdef");
    for folder in [&old, &settings.folder.join("not ours")] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("dataset.json"), vec![0; 2000]).unwrap();
    }
    let new = fetch_from(&dataset("new"), MARKERS, &settings).unwrap();
    assert!(used.exists() && new.exists() && !old.exists());
    assert!(settings.folder.join("not ours").exists());
    let error = fetch_from(&dataset("more"), MARKERS, &settings).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit);
    assert!(error.to_string().contains("datasets in use leave"), "{error}");
    assert_eq!(names(&settings).len(), 3);
}
