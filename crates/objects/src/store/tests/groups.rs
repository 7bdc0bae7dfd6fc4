//! A folder as a Zarr group.

use std::path::Path as LocalPath;
use std::sync::Arc;

use object_store::memory::InMemory;

use super::faulty::{Fault, Faulty};
use super::{content, put, refused, remote};
use crate::store::Remote;

const TEXT: &str = "gs://bucket/mine/nodes.zarr";

/// A group whose array has so many chunks.
fn group(dir: &LocalPath, chunks: usize) {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir.join("id").join("c")).unwrap();
    std::fs::write(dir.join("zarr.json"), r#"{"zarr_format":3,"node_type":"group"}"#).unwrap();
    std::fs::write(dir.join("id").join("zarr.json"), r#"{"node_type":"array"}"#).unwrap();
    for i in 0..chunks {
        let text = format!("chunk {i} of {chunks}").repeat(if i == 2 { 200 } else { 1 });
        std::fs::write(dir.join("id").join("c").join(i.to_string()), text).unwrap();
    }
}

/// The objects of `remote` among those that a group may have.
fn objects(remote: &Remote) -> Vec<String> {
    let names = ["zarr.json", "id/zarr.json", "id/c/0", "id/c/1", "id/c/2", "id/c/3", "id/c/4"];
    let found =
        names.iter().filter(|name| content(remote, &format!("mine/nodes.zarr/{name}")).is_some());
    found.map(ToString::to_string).collect()
}

#[test]
fn a_group_is_replaced_with_all_its_objects() {
    let dir = tempfile::tempdir().unwrap();
    let remote = remote(TEXT, Arc::new(InMemory::new()));
    group(dir.path(), 5);
    remote.check_group(false).unwrap();
    remote.upload_group(dir.path(), false).unwrap();
    assert_eq!(objects(&remote).len(), 7);
    let large = content(&remote, "mine/nodes.zarr/id/c/2").unwrap();
    assert_eq!(large, std::fs::read(dir.path().join("id/c/2")).unwrap());

    group(dir.path(), 2);
    for text in
        [refused(remote.check_group(false), 2), refused(remote.upload_group(dir.path(), false), 2)]
    {
        assert!(text.contains("gs://bucket/mine/nodes.zarr: exists already"), "{text}");
    }
    assert_eq!(objects(&remote).len(), 7);
    remote.upload_group(dir.path(), true).unwrap();
    assert_eq!(objects(&remote), ["zarr.json", "id/zarr.json", "id/c/0", "id/c/1"]);
    assert_eq!(content(&remote, "mine/nodes.zarr/id/c/1").unwrap(), b"chunk 1 of 2");
}

#[test]
fn other_objects_are_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    group(dir.path(), 1);
    let array = std::fs::read(dir.path().join("id").join("zarr.json")).unwrap();
    for name in ["nodes.zarr/notes.txt", "nodes.zarr/zarr.json", "nodes.zarr"] {
        let remote = remote(TEXT, Arc::new(InMemory::new()));
        put(&remote, &format!("mine/{name}"), &array);
        let text = refused(remote.upload_group(dir.path(), true), 2);
        assert!(text.contains("exists and is not a Zarr group"), "{name}: {text}");
        assert!(content(&remote, &format!("mine/{name}")).is_some());
    }
    // The name of another group begins with the same letters.
    let remote = remote(TEXT, Arc::new(InMemory::new()));
    put(&remote, "mine/nodes.zarr.old", &array);
    remote.upload_group(dir.path(), false).unwrap();
    assert!(content(&remote, "mine/nodes.zarr.old").is_some());
}

#[test]
fn a_failure_leaves_no_group() {
    let dir = tempfile::tempdir().unwrap();
    group(dir.path(), 4);
    for ending in ["nodes.zarr/zarr.json", "id/c/1"] {
        let remote = remote(TEXT, Arc::new(Faulty::new(Fault::Ending(ending))));
        let text = refused(remote.upload_group(dir.path(), false), 1);
        assert!(text.contains(&format!("{ending}: Generic faulty error: 503")), "{text}");
        assert!(objects(&remote).is_empty(), "{ending}");
        remote.check_group(false).unwrap();
    }
}
