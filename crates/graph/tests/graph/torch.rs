//! Files that torch wrote hold what was saved; others are refused by name, and nothing panics.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use crate::common::Files;
use gnarl_common::Result;
use gnarl_graph::import::torch::{Item, TorchFile};
use proptest::prelude::*;

const MEMORY: u64 = 1 << 20;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/torch").join(name)
}

#[test]
fn tensors_and_arrays_hold_what_was_saved() {
    for name in ["everything.pt", "protocol4.pt"] {
        let file = TorchFile::open(&fixture(name), MEMORY).unwrap();
        let root = file.root();
        let item = |key: &str| root.get(key).unwrap();
        let integers = |key: &str, shape: &[usize], expected: &[i64]| {
            assert_eq!(item(key).shape(), Some(shape), "{key}");
            assert_eq!(item(key).integers().unwrap(), expected, "{key}");
        };
        assert_eq!(root.keys().len(), 14);
        assert_eq!(root.keys()[..2], ["edge", "transposed"]);
        integers("edge", &[3, 2], &[0, 1, 1, 2, 3, 0]);
        integers("transposed", &[2, 3], &[0, 1, 3, 1, 2, 0]);
        integers("slice", &[3, 2], &[5, 6, 9, 10, 13, 14]);
        integers("empty", &[0, 2], &[]);
        integers("none", &[0, 2], &[]);
        integers("scalar", &[], &[7]);
        integers("mask", &[3], &[1, 0, 1]);
        integers("array", &[2, 3], &[0, 200, -1, 255, 128, 127]);
        integers("fortran", &[2, 3], &[0, 1, 2, 3, 4, 5]);
        assert_eq!(item("half").numbers().unwrap(), [0.5, -2.0]);
        assert_eq!(item("float").numbers().unwrap(), [1.5, -0.25]);
        assert_eq!(item("types").strings().unwrap(), ["drug", "disease", "drug"]);
        let nested = item("nested").get("train").unwrap();
        assert_eq!(nested.integers().unwrap(), [2, 0]);
        assert!(nested.name().ends_with(&format!("{name}[nested][train]")));
        for (wrong, part) in [
            (item("half").integers().map(drop), "[half]: holds floating-point numbers, integers"),
            (item("count").integers().map(drop), "[count]: is no tensor"),
            (item("edge").strings().map(drop), "[edge]: is no list of strings"),
        ] {
            let message = wrong.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}

/// The message of a file that must be refused when it is opened.
fn refusal(name: &str) -> String {
    TorchFile::open(&fixture(name), MEMORY).expect_err(name).to_string()
}

#[test]
fn what_is_no_tensor_is_refused_by_name() {
    for (name, parts) in [
        ("evil.pt", &["posix.system", "not a tensor", "nothing was run", "hint"][..]),
        ("module.pt", &["torch.nn.modules.linear.Linear", "not a tensor", "hint"]),
        ("objects.pt", &["dtype |O8", "nothing was run"]),
        ("text.pt", &["dtype <U1"]),
        ("bfloat16.pt", &["torch.BFloat16Storage"]),
        ("expanded.pt", &["shape [4, 3] and strides [0, 0]", "repeats numbers"]),
        ("legacy.pt", &["torch before 1.6", "torch.save(torch.load(f), f)"]),
        ("strides.pt", &["strides [200, 1]", "leaves its storage of 6 numbers"]),
        ("shape.pt", &["shape [255, 255]", "leaves its storage"]),
        ("offset.pt", &["at 5 leaves its storage"]),
        ("storage.pt", &["7 numbers of data/0, which has 48 bytes"]),
        ("make.py", &["make.py: not a readable file of torch", "hint"]),
        ("absent.pt", &["absent.pt: No such file"]),
    ] {
        let message = refusal(name);
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
        assert!(message.contains(name), "{message}");
    }
    assert!(!fixture("unpickled").exists());
}

#[test]
fn memory_is_bounded() {
    let open = |memory| TorchFile::open(&fixture("everything.pt"), memory);
    let message = open(1000).unwrap_err().to_string();
    assert!(message.contains("a pickle of") && message.contains("--memory"), "{message}");
    let message = open(8000).unwrap_err().to_string();
    assert!(message.contains("everything.pt holds does not fit"), "{message}");
    // Objects cost more than the byte that makes one.
    let lists = [b"\x80\x02", &vec![b']'; 100_000][..], b"."].concat();
    let message = open_bytes(&archive(&lists)).unwrap_err().to_string();
    assert!(message.contains("does not fit"), "{message}");
}

fn open_bytes(bytes: &[u8]) -> Result<usize> {
    let files = Files::new();
    let file = TorchFile::open(&files.bytes("a.pt", bytes), MEMORY)?;
    read_all(file.root())
}

/// Reads everything an object holds, as far as its depth goes; how much it is.
fn read_all(item: Item<'_>) -> Result<usize> {
    let mut count = 0;
    for key in item.keys() {
        let inner = item.get(key).unwrap();
        let deeper = inner.keys();
        count += deeper.len();
        for key in deeper {
            count += inner.get(key).unwrap().numbers().map_or(0, |numbers| numbers.len());
        }
        if inner.shape().is_some() {
            count += inner.numbers()?.len();
            count += inner.integers().map_or(0, |integers| integers.len());
        }
        count += inner.strings().map_or(0, |strings| strings.len());
    }
    Ok(count)
}

/// The records of a fixture.
fn records(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(fixture(name)).unwrap()).unwrap();
    let mut read = |i| {
        let mut entry = archive.by_index(i).unwrap();
        let (name, mut bytes) = (entry.name().unwrap().into_owned(), Vec::new());
        entry.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    };
    (0..5).map(&mut read).collect()
}

/// An archive with another pickle and the first records of `everything.pt`: its checksums are right.
fn archive(pickle: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in records("everything.pt") {
        archive.start_file(&name, stored).unwrap();
        let bytes = if name.ends_with("data.pkl") { pickle } else { &bytes };
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn truncated_and_compressed_files_are_refused() {
    let bytes = std::fs::read(fixture("everything.pt")).unwrap();
    for length in (0..bytes.len()).step_by(7) {
        let message = open_bytes(&bytes[..length]).unwrap_err().to_string();
        assert!(message.contains("a.pt"), "{message}");
    }
    let files = Files::new();
    let packed = files.npz("a.pt", &[("data", fixture("make.py"))], true);
    let message = TorchFile::open(&packed, MEMORY).unwrap_err().to_string();
    assert!(message.contains("data.npy is compressed"), "{message}");
    let stored = files.npz("b.pt", &[("data", fixture("make.py"))], false);
    let message = TorchFile::open(&stored, MEMORY).unwrap_err().to_string();
    assert!(message.contains("the record data.pkl is missing"), "{message}");
}

#[test]
fn damage_to_any_byte_is_an_error_or_harmless() {
    let bytes = std::fs::read(fixture("everything.pt")).unwrap();
    let whole = open_bytes(&bytes).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        if let Ok(read) = open_bytes(&damaged) {
            assert!(read <= whole, "byte {at} made numbers");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_pickle_panics(
        changes in prop::collection::vec((0..2000usize, any::<u8>()), 0..4),
        cut in 0..3000usize,
        again in 0..2000usize,
    ) {
        let mut pickle = records("everything.pt").swap_remove(0).1;
        for (at, byte) in changes {
            let at = at % pickle.len();
            pickle[at] = byte;
        }
        // A stretch of the program once more, from anywhere: jumps between contexts.
        let again = pickle[again % pickle.len()..].to_vec();
        pickle.truncate(cut.max(2));
        pickle.extend(again);
        let _ = open_bytes(&archive(&pickle));
    }

    #[test]
    fn no_bytes_panic(pickle in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = open_bytes(&archive(&pickle));
    }
}
