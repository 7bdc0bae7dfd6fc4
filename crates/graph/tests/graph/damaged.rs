//! Faults that fuzzing found: each input once ended a process, or took its memory.

use std::io::{Cursor, Write};

use gnarl_common::Kind;
use gnarl_graph::import::{EdgeTable, NodeTable, NpyOptions, TableOptions, npy, tables};
use gnarl_graph::inspect::inspect;
use gnarl_graph::splits::Roles;
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, MANIFEST, Triple};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::common::Files;

/// An archive of sparse features of three nodes, members without compression.
fn sparse_features(files: &Files) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, values) in [
        ("indptr", &[0, 1, 2, 3][..]),
        ("indices", &[0, 1, 0]),
        ("data", &[1, 2, 3]),
        ("shape", &[3, 2]),
    ] {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        let path = files.npy::<i64>("member.npy", &[], values);
        zip.write_all(&std::fs::read(path).unwrap()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Readers took the archive's word for the length of a member, and memory for as many values.
#[test]
fn a_member_beyond_the_end_of_its_archive_is_refused() {
    let files = Files::new();
    let edges = files.edges("edges.npy", &[(0, 1), (1, 2)]);
    let mut bytes = sparse_features(&files);
    let import = |bytes: &[u8]| {
        let features = Some(files.bytes("features.npz", bytes));
        npy(&NpyOptions { features, ..NpyOptions::new(&edges) }, &files.fresh("out"))
    };
    import(&bytes).unwrap();
    // Both sizes of an entry of the directory are 20 bytes behind its mark.
    let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    bytes[directory + 20..directory + 28].fill(0xf0);
    let error = import(&bytes).unwrap_err().to_string();
    assert!(error.contains("features.npz[indptr]"), "{error}");
    assert!(error.contains("beyond the end of the archive"), "{error}");
}

/// The histogram of a description had an entry for each class that the manifest states.
#[test]
fn classes_by_the_billion_are_described_without_a_histogram() {
    let files = Files::new();
    let options = NpyOptions {
        labels: Some(files.npy::<i32>("labels.npy", &[], &[0, 1, -1])),
        ..NpyOptions::new(files.edges("edges.npy", &[(0, 1), (1, 2)]))
    };
    npy(&options, &files.out()).unwrap();
    let path = files.out().join(MANIFEST);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    manifest["node_types"][0]["classes"] = (1u64 << 50).into();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let report = inspect(&Dataset::open(files.out()).unwrap()).unwrap();
    let labels = report.nodes[0].labels.as_ref().unwrap();
    assert_eq!((labels.labelled, labels.classes), (2, 1 << 50));
    assert!(labels.histogram.is_empty());
    assert_eq!(report.edges[0].homophily, None);
    assert!(report.to_string().contains("1125899906842624 classes\n"), "{report}");
}

/// Roles of nodes were an array, and ids of a split its indices.
#[test]
fn members_of_splits_that_are_no_nodes_are_named() {
    let files = Files::new();
    let options = NpyOptions {
        splits: vec![("train".into(), files.npy::<i64>("train.npy", &[], &[0, 2]))],
        ..NpyOptions::new(files.edges("edges.npy", &[(0, 1), (1, 2)]))
    };
    let dataset = npy(&options, &files.out()).unwrap().dataset;
    let specs = &dataset.manifest().node_types[0].columns;
    let spec = specs.iter().find(|spec| spec.name == "split.train").unwrap();
    let path = files.out().join(&spec.file);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() = 1;
    std::fs::write(&path, bytes).unwrap();
    let dataset = Dataset::open(files.out()).unwrap();
    let error = Roles::given(&dataset, DEFAULT_NODE_TYPE).unwrap_err().to_string();
    assert!(error.contains("train"), "{error}");
}

/// Degrees of all nodes up to the largest id were allocated before they were compared with the budget.
#[test]
fn one_huge_id_ends_before_memory_is_taken_for_it() {
    let files = Files::new();
    for id in [400_000_000, 1 << 40, 1 << 62, i64::MAX - 1] {
        let options = NpyOptions {
            memory: 64 << 20,
            ..NpyOptions::new(files.edges("e.npy", &[(0, 1), (1, id)]))
        };
        let error = npy(&options, &files.fresh("out")).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit, "{id}: {error}");
        assert!(
            error.to_string().contains(&format!("e.npy: row 1: destination id {id}")),
            "{error}"
        );
        assert!(!files.path("out").exists());
    }
}

/// A header of 104 bytes took the weeks that 2 to the power of its depth takes.
#[test]
fn nested_headers_are_refused_at_once() {
    let files = Files::new();
    for bracket in ["[", "(", "(1,"] {
        let dict = format!("{{'descr': '<i8', 'shape': {}, }}\n", bracket.repeat(40));
        let length = (dict.len() as u16).to_le_bytes();
        let bytes = [b"\x93NUMPY\x01\x00", &length[..], dict.as_bytes()].concat();
        let options = NpyOptions::new(files.bytes("n.npy", &bytes));
        let error = npy(&options, &files.fresh("out")).unwrap_err().to_string();
        assert!(error.contains("n.npy: not a readable npy file"), "{error}");
    }
}

/// The length that a header says was allocated, up to 4 GiB.
#[test]
fn long_headers_are_refused_unread() {
    let files = Files::new();
    let options = NpyOptions::new(files.bytes("l.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"));
    let error = npy(&options, &files.out()).unwrap_err().to_string();
    assert!(error.contains("at most 64 KiB"), "{error}");
}

/// A column that is used twice was empty where it was used the second time, and an index out of range.
#[test]
fn columns_used_twice_end_with_a_result_or_an_error() {
    let files = Files::new();
    let nodes = files.text("nodes.csv", "id,x0,x1,label,split\n0,1,2,0,train\n1,3,4,1,test\n");
    let edges = files.text("edges.csv", "src,dst\n0,1\n");
    for features in [&["*"][..], &["x0", "label"], &["x0", "split"], &["x0", "x0"], &["x*", "x1"]] {
        let mut table = NodeTable::new(DEFAULT_NODE_TYPE, &nodes);
        table.features = features.iter().map(|&name| name.into()).collect();
        let options = TableOptions {
            nodes: vec![table],
            edges: vec![EdgeTable::new(Triple::plain(), &edges)],
            ..TableOptions::default()
        };
        if let Err(error) = tables(&options, &files.fresh("out")) {
            assert!(error.to_string().contains("nodes.csv"), "{features:?}: {error}");
        }
    }
}
