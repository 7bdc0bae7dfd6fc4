//! Ranges of objects.

use std::sync::Arc;

use gnarl_common::{FileRange, Place, Result};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::faulty::{Fault, Faulty};
use super::{put, remote};
use crate::store::cache::listed;
use crate::store::place::RemotePlace;

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * i % 251) as u8).collect()
}

/// A folder with a large and a small object.
fn place(store: Arc<dyn ObjectStore>) -> RemotePlace {
    let remote = remote("s3://bucket/parts", store);
    put(&remote, "parts/part-0/x.npy", &bytes(4500));
    put(&remote, "parts/a", b"0123456789");
    let objects = listed(&remote).unwrap();
    RemotePlace::new(remote, objects)
}

/// Reads two ranges, of which one has several pieces.
fn read(place: &RemotePlace) -> Result<()> {
    let mut large = vec![0; 4321];
    let mut small = [0; 3];
    let sums = place.read(&mut [
        FileRange { file: "part-0/x.npy", start: 100, out: &mut large },
        FileRange { file: "a", start: 7, out: &mut small },
    ])?;
    assert!(large == bytes(4500)[100..4421] && small == *b"789");
    assert_eq!(sums, [crc32fast::hash(&large), crc32fast::hash(b"789")]);
    Ok(())
}

#[test]
fn ranges_are_read_in_pieces() {
    let place = place(Arc::new(InMemory::new()));
    read(&place).unwrap();
    assert_eq!(place.size("part-0/x.npy").unwrap(), 4500);
    assert_eq!(place.path_of("a"), "s3://bucket/parts/a");
    let text = place.size("b").unwrap_err().to_string();
    assert!(text.contains("s3://bucket/parts/b: there is no such object"), "{text}");
    let mut out = [0; 4];
    let beyond = FileRange { file: "a", start: 7, out: &mut out };
    let text = place.read(&mut [beyond]).unwrap_err().to_string();
    assert!(text.contains("10 bytes end before 4 from 7"), "{text}");
}

#[test]
fn reads_wait_for_a_store_that_is_away() {
    let away = |times| place(Arc::new(Faulty::new(Fault::Reads(times))));
    read(&away(1)).unwrap();
    // Six pieces are refused, and again until the deadline.
    let text = read(&away(usize::MAX)).unwrap_err().to_string();
    assert!(text.contains("s3://bucket/parts/") && text.contains("503"), "{text}");
}

#[test]
fn an_object_that_changes_or_goes_is_told() {
    let store = Arc::new(InMemory::new());
    let place = place(store.clone());
    let remote = remote("s3://bucket/parts", store.clone());
    put(&remote, "parts/a", b"9876543210");
    let text = read(&place).unwrap_err().to_string();
    assert!(text.contains("s3://bucket/parts/a: changed since it was opened"), "{text}");
    let gone = async {
        store.delete(&Path::from("parts/a")).await.unwrap();
        Ok(())
    };
    remote.wait(gone).unwrap();
    let text = read(&place).unwrap_err().to_string();
    assert!(text.contains("s3://bucket/parts/a: ") && text.contains("not found"), "{text}");
}
