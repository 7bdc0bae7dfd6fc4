//! Numpy arrays become datasets, and bad ones are named.

use std::path::PathBuf;

use crate::common::{Files, counts, edges};
use gnarl_common::Kind;
use gnarl_graph::import::{NpyOptions, WeightType, npy};
use gnarl_graph::{DEFAULT_NODE_TYPE, Features, Labels, Triple};
use half::{bf16, f16};

const EDGES: [(i64, i64); 5] = [(0, 1), (1, 2), (2, 2), (0, 1), (3, 0)];

fn small(files: &Files) -> NpyOptions {
    NpyOptions::new(files.edges("edges.npy", &EDGES))
}

#[test]
fn edges_are_kept_in_order_and_counted() {
    let files = Files::new();
    let options = NpyOptions { num_nodes: Some(6), ..small(&files) };
    let made = npy(&options, &files.fresh("out")).unwrap();
    assert_eq!(edges(&made.dataset), EDGES.map(|(s, d)| (s as u64, d as u64)));
    assert_eq!(counts(&made.report), [6, 5, 2, 1, 1]);
    assert!(!made.report.symmetric && made.report.renumbered.is_empty());
    assert_eq!(npy(&small(&files), &files.fresh("out")).unwrap().report.nodes, 4);
}

#[test]
fn every_integer_type_and_both_orders_read_alike() {
    let files = Files::new();
    let expected = npy(&small(&files), &files.fresh("out")).unwrap().dataset;
    let flat: Vec<i64> = EDGES.iter().map(|e| e.0).chain(EDGES.iter().map(|e| e.1)).collect();
    let pairs: Vec<i64> = EDGES.iter().flat_map(|e| [e.0, e.1]).collect();
    let write = |descr: &str, fortran: bool, bytes: Vec<u8>| -> PathBuf {
        let fortran = if fortran { "True" } else { "False" };
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': (2, 5), }}");
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{dict:<117}\n").bytes());
        file.extend(bytes);
        files.bytes("typed.npy", &file)
    };
    type Encode = fn(i64) -> Vec<u8>;
    let types: [(&str, Encode); 8] = [
        ("|u1", |x| vec![x as u8]),
        ("|i1", |x| vec![x as u8]),
        ("<u2", |x| (x as u16).to_le_bytes().into()),
        ("<i2", |x| (x as i16).to_le_bytes().into()),
        ("<u4", |x| (x as u32).to_le_bytes().into()),
        ("<i4", |x| (x as i32).to_le_bytes().into()),
        ("<u8", |x| (x as u64).to_le_bytes().into()),
        ("<i8", |x| x.to_le_bytes().into()),
    ];
    for (descr, encode) in types {
        for (fortran, values) in [(false, &flat), (true, &pairs)] {
            let path = write(descr, fortran, values.iter().flat_map(|&x| encode(x)).collect());
            let made = npy(&NpyOptions::new(path), &files.fresh("typed")).unwrap();
            assert_eq!(edges(&made.dataset), edges(&expected), "{descr} fortran {fortran}");
        }
    }
}

#[test]
fn symmetrizing_reverses_and_coalesces() {
    let files = Files::new();
    let options = NpyOptions { symmetrize: true, ..small(&files) };
    let made = npy(&options, &files.out()).unwrap();
    assert!(made.report.symmetric && made.report.coalesced);
    let mut all = edges(&made.dataset);
    all.sort_unstable();
    assert_eq!(all, [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 2), (3, 0)]);
}

#[test]
fn weights_follow_their_edges() {
    let files = Files::new();
    let weights = files.npy("w.npy", &[], &[1.0f64, 2.0, 3.0, 4.0, 5.0]);
    let options = NpyOptions { weights: Some(weights), symmetrize: true, ..small(&files) };
    let made = npy(&options, &files.out()).unwrap();
    assert!(!made.report.coalesced);
    let column = made.dataset.edge_column(&Triple::plain(), "weight").unwrap().unwrap();
    let stored = column.values::<f32>().unwrap();
    assert_eq!(stored[..], [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 4.0, 5.0]);
}

#[test]
fn weights_are_stored_in_the_type_asked_for() {
    let files = Files::new();
    let options = |weight_type, values: &[f64]| NpyOptions {
        weights: Some(files.npy("w.npy", &[], values)),
        weight_type,
        ..small(&files)
    };
    for (weight, text) in [(7e4, "the weight 70000 is inf in f16"), (1e-9, "is 0 in f16")] {
        let options = options(WeightType::F16, &[1.0, 2.0, weight, 4.0, 5.0]);
        let message = files.refusal(npy(&options, &files.fresh("out")));
        assert!(message.contains("w.npy: row 2: ") && message.contains(text), "{message}");
    }

    let given = [1.0, 0.1, 65_504.0, 0.0, 3.0];
    let import = |weight_type| {
        let made = npy(&options(weight_type, &given), &files.fresh("out")).unwrap();
        made.dataset.edge_column(&Triple::plain(), "weight").unwrap().unwrap()
    };
    let half = given.map(f16::from_f64);
    assert_eq!(import(WeightType::F16).values::<f16>().unwrap()[..], half);
    let brain = given.map(|weight| bf16::from_f32(weight as f32));
    assert_eq!(import(WeightType::BF16).values::<bf16>().unwrap()[..], brain);
}

#[test]
fn features_labels_and_splits_are_stored() {
    let files = Files::new();
    let options = NpyOptions {
        features: Some(files.npy("x.npy", &[2], &[0.5f64, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])),
        labels: Some(files.npy("y.npy", &[], &[0.0f32, f32::NAN, 2.0, -1.0])),
        splits: vec![
            ("train".into(), files.npy("train.npy", &[], &[2i64, 0])),
            ("test".into(), files.npy("test.npy", &[], &[1u32, 3])),
        ],
        ..small(&files)
    };
    let dataset = npy(&options, &files.out()).unwrap().dataset;
    let Some(Features::Dense(column)) = dataset.features(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert_eq!(column.values::<f32>().unwrap()[..3], [0.5, 1.0, 2.0]);
    let Some(Labels::Single { classes, count }) = dataset.labels(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert_eq!((&classes[..], count), (&[0, -1, 2, -1][..], 3));
    assert_eq!(dataset.split_names(DEFAULT_NODE_TYPE).unwrap(), ["train", "test"]);
    assert_eq!(dataset.split(DEFAULT_NODE_TYPE, "train").unwrap().unwrap()[..], [0, 2]);
    assert!(
        dataset.split(DEFAULT_NODE_TYPE, "test").unwrap().unwrap().is_empty(),
        "none has a label"
    );
}

#[test]
fn csr_features_are_read_stored_or_compressed() {
    for deflate in [false, true] {
        let files = Files::new();
        let members = [
            ("data", files.npy("a.npy", &[], &[1.0f32, 2.0, 3.0])),
            ("indices", files.npy("b.npy", &[], &[2i32, 0, 1])),
            ("indptr", files.npy("c.npy", &[], &[0i32, 2, 2, 3, 3])),
            ("shape", files.npy("d.npy", &[], &[4i64, 3])),
        ];
        let features = Some(files.npz("x.npz", &members, deflate));
        let dataset = npy(&NpyOptions { features, ..small(&files) }, &files.out()).unwrap().dataset;
        let Some(Features::Csr { indptr, indices, values, width }) =
            dataset.features(DEFAULT_NODE_TYPE).unwrap()
        else {
            panic!()
        };
        assert_eq!((&indptr[..], width), (&[0, 2, 2, 3, 3][..], 3));
        assert_eq!((&indices[..], &values[..]), (&[0, 2, 1][..], &[2.0, 1.0, 3.0][..]));
        let inside = std::fs::read_dir(files.out()).unwrap();
        assert!(inside.flatten().all(|e| e.path().is_file()), "unpacked members were left");
    }
}

#[test]
fn multi_labels_and_masks_are_read() {
    let files = Files::new();
    let mask = files.bytes("mask.npy", &{
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        let dict = "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }";
        bytes.extend(format!("{dict:<117}\n").bytes());
        bytes.extend([0, 1, 0, 1]);
        bytes
    });
    let options = NpyOptions {
        labels: Some(files.npy("y.npy", &[3], &[0u8, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1])),
        splits: vec![("train".into(), mask)],
        ..small(&files)
    };
    let dataset = npy(&options, &files.out()).unwrap().dataset;
    let Some(Labels::Multi { values, tasks }) = dataset.labels(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert_eq!((&values[..4], tasks), (&[0, 1, 1, 0][..], 3));
    assert_eq!(dataset.split(DEFAULT_NODE_TYPE, "train").unwrap().unwrap()[..], [1, 3]);
}

#[test]
fn bad_arrays_are_named_by_file_and_row() {
    let files = Files::new();
    let negative = NpyOptions::new(files.edges("bad.npy", &[(0, 1), (-3, 1)]));
    let empty = NpyOptions::new(files.edges("empty.npy", &[]));
    let vector = |values: &[i64]| Some(files.npy("v.npy", &[], values));
    let features = |values: &[f32]| Some(files.npy("x.npy", &[2], values));
    let cut = files.edges("cut.npy", &EDGES);
    std::fs::File::options().write(true).open(&cut).unwrap().set_len(150).unwrap();
    let split = |file: &str, ids: &[i64]| vec![("train".into(), files.npy(file, &[], ids))];
    let cases: Vec<(NpyOptions, &[&str])> = vec![
        (NpyOptions::new(files.path("none.npy")), &["none.npy", "No such file"]),
        (NpyOptions::new(cut), &["cut.npy", "truncated"]),
        (negative, &["bad.npy", "row 1", "source id -3 is negative"]),
        (
            NpyOptions { num_nodes: Some(3), ..small(&files) },
            &["edges.npy", "row 4", "source id 3 is not below the number of nodes, 3"],
        ),
        (empty, &["empty.npy", "no edge"]),
        (
            NpyOptions::new(files.npy("f.npy", &[2], &[0.0f32, 1.0, 2.0, 3.0])),
            &["f.npy", "integers are needed"],
        ),
        (
            NpyOptions::new(files.npy("t.npy", &[2], &[0u32, 1, 2, 3, 1, 2])),
            &["t.npy", "[3, 2]", "[2, E]"],
        ),
        (
            NpyOptions { features: features(&[0.0; 6]), num_nodes: Some(4), ..small(&files) },
            &["x.npy", "3 rows"],
        ),
        (
            NpyOptions { labels: vector(&[0, 1, 5, 0]), num_classes: Some(3), ..small(&files) },
            &["v.npy", "row 2", "label 5", "classes, 3"],
        ),
        (
            NpyOptions { splits: split("s.npy", &[1, 9]), ..small(&files) },
            &["s.npy", "row 1", "node 9"],
        ),
        (NpyOptions { splits: split("r.npy", &[1, 1]), ..small(&files) }, &["train", "twice"]),
        (NpyOptions { memory: 1 << 10, ..small(&files) }, &["--memory"]),
    ];
    for (options, parts) in cases {
        let message = files.refusal(npy(&options, &files.out()));
        assert!(message.starts_with("importing npy: "), "{message}");
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
    }
}

#[test]
fn missing_features_are_named_by_row_and_column() {
    let files = Files::new();
    let values = [0.0f32, 1.0, 2.0, f32::NAN, 4.0, 5.0, 6.0, 7.0];
    let features = Some(files.npy("x.npy", &[2], &values));
    let message = files.refusal(npy(&NpyOptions { features, ..small(&files) }, &files.out()));
    assert!(message.contains("x.npy: row 1, column 1: the feature is NaN"), "{message}");
}

#[test]
fn overlapping_splits_are_refused() {
    let files = Files::new();
    let splits = vec![
        ("train".into(), files.npy("a.npy", &[], &[0i64, 2])),
        ("test".into(), files.npy("b.npy", &[], &[2i64, 3])),
    ];
    let message = files.refusal(npy(&NpyOptions { splits, ..small(&files) }, &files.out()));
    assert!(message.contains("node 2 is in both splits train and test"), "{message}");
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let files = Files::new();
    let plain = files.text("file", "");
    let error = npy(&small(&files), &plain.join("out")).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn numbers_of_nodes_are_stored_with_gaps() {
    let files = Files::new();
    let options = |values: &[f64]| NpyOptions {
        values: Some(files.npy("v.npy", &[], values)),
        num_nodes: Some(4),
        ..small(&files)
    };
    let dataset = npy(&options(&[1.5, f64::NAN, -2.0, 0.0]), &files.out()).unwrap().dataset;
    let Some(Labels::Values { values }) = dataset.values(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert!(values[..1] == [1.5] && values[1].is_nan() && values[2..] == [-2.0, 0.0]);
    assert!(dataset.labels(DEFAULT_NODE_TYPE).unwrap().is_none(), "numbers are no classes");

    std::fs::remove_dir_all(files.out()).unwrap();
    let message = files.refusal(npy(&options(&[1.5, 1e300, -2.0, 0.0]), &files.out()));
    assert!(message.contains("v.npy: row 1") && message.contains("not finite"), "{message}");
    let message = files.refusal(npy(&options(&[1.5, 2.0]), &files.out()));
    assert!(message.contains("v.npy") && message.contains("2"), "{message}");
    let wide = NpyOptions { values: Some(files.npy("w.npy", &[2], &[0.0f32; 8])), ..small(&files) };
    let message = files.refusal(npy(&wide, &files.out()));
    assert!(message.contains("w.npy") && message.contains("not [N]"), "{message}");
}
