//! Labels and splits of edges: arrays, tables and schemas give the same columns; bad ones are named.

use std::path::{Path, PathBuf};

use gnarl_common::Element;
use gnarl_common::npy::NpyWriter;
use gnarl_graph::import::{NpyOptions, TableOptions, npy, tables};
use gnarl_graph::{Dataset, Triple};

const SRC: [u32; 4] = [0, 1, 2, 2];
const DST: [u32; 4] = [1, 2, 0, 2];

fn array<T: Element>(dir: &Path, name: &str, row: &[u64], values: &[T]) -> PathBuf {
    let mut writer = NpyWriter::create(dir.join(name), row).unwrap();
    writer.push(values).unwrap();
    writer.finish().unwrap();
    dir.join(name)
}

fn mask(dir: &Path, name: &str, inside: &[u8]) -> PathBuf {
    let shape = inside.len();
    let header = format!("{{'descr': '|b1', 'fortran_order': False, 'shape': ({shape},), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(inside);
    std::fs::write(dir.join(name), bytes).unwrap();
    dir.join(name)
}

fn text(dir: &Path, name: &str, text: &str) -> PathBuf {
    std::fs::write(dir.join(name), text).unwrap();
    dir.join(name)
}

fn arrays(dir: &Path) -> NpyOptions {
    NpyOptions::new(array(dir, "edges.npy", &[4], &[SRC, DST].concat()))
}

/// The labels and splits of a homogeneous dataset's edges.
fn columns<T: Element>(dataset: &Dataset) -> (Vec<T>, Vec<u8>) {
    let triple = Triple::plain();
    let column = |name: &str| dataset.edge_column(&triple, name).unwrap().unwrap();
    (column("label").values::<T>().unwrap().to_vec(), column("split").values().unwrap().to_vec())
}

#[test]
fn arrays_become_columns_that_reverses_share() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = arrays(dir.path());
    options.edge_labels = Some(array(dir.path(), "labels.npy", &[], &[2i64, -1, 0, 1]));
    options.edge_splits = vec![
        ("train".into(), mask(dir.path(), "train.npy", &[1, 0, 0, 1])),
        ("test".into(), mask(dir.path(), "test.npy", &[0, 0, 1, 0])),
    ];
    let dataset = npy(&options, &dir.path().join("a")).unwrap().dataset;
    assert_eq!(columns::<i32>(&dataset), (vec![2, -1, 0, 1], vec![0, 3, 2, 0]));
    assert_eq!(dataset.manifest().edge_types[0].classes, Some(3));
    options.symmetrize = true;
    let dataset = npy(&options, &dir.path().join("b")).unwrap().dataset;
    // The loop at the end is stored once.
    let all = (vec![2, -1, 0, 1, 2, -1, 0], vec![0, 3, 2, 0, 0, 3, 2]);
    assert_eq!(columns::<i32>(&dataset), all);
    options.symmetrize = false;
    options.edge_labels = Some(array(dir.path(), "marks.npy", &[2], &[1u8, 0, 0, 0, 1, 1, 0, 1]));
    let dataset = npy(&options, &dir.path().join("c")).unwrap().dataset;
    assert_eq!(columns::<u8>(&dataset).0, [1, 0, 0, 0, 1, 1, 0, 1]);
    assert_eq!(dataset.manifest().edge_types[0].classes, Some(2));
    options.edge_labels = None;
    options.edge_values = Some(array(dir.path(), "values.npy", &[], &[1.5f64, -2.0, 0.0, 3.0]));
    let dataset = npy(&options, &dir.path().join("d")).unwrap().dataset;
    assert_eq!(columns::<f32>(&dataset).0, [1.5, -2.0, 0.0, 3.0]);
}

#[test]
fn bad_arrays_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |change: &dyn Fn(&mut NpyOptions)| {
        let mut options = arrays(dir.path());
        change(&mut options);
        npy(&options, &dir.path().join("out")).err().unwrap().to_string()
    };
    let labels = |values: &[i64]| array(dir.path(), "labels.npy", &[], values);
    let error = fails(&|options| options.edge_labels = Some(labels(&[0, 1, 1])));
    assert!(error.contains("labels.npy: 3 labels for 4 edges"), "{error}");
    let error = fails(&|options| options.edge_labels = Some(labels(&[0, 1, -3, 1])));
    assert!(error.contains("labels.npy: row 2: label -3 is not a class"), "{error}");
    let values = array(dir.path(), "values.npy", &[], &[0.0, 1.0, 2.0, f32::NAN]);
    let error = fails(&|options| options.edge_values = Some(values.clone()));
    assert!(error.contains("values.npy: row 3: the label of an edge is NaN"), "{error}");
    let error = fails(&|options| {
        options.edge_values = Some(values.clone());
        options.edge_labels = Some(labels(&[0; 4]));
    });
    assert!(error.contains("both labels and values"), "{error}");
    let train = mask(dir.path(), "train.npy", &[1, 1, 0, 0]);
    let test = mask(dir.path(), "test.npy", &[0, 1, 0, 0]);
    let splits = vec![("train".into(), train), ("test".into(), test)];
    let error = fails(&|options| options.edge_splits = splits.clone());
    assert!(error.contains("test.npy: row 1: the edge is in another split too"), "{error}");
    let ids = vec![("train".into(), labels(&[0]))];
    let error = fails(&|options| options.edge_splits = ids.clone());
    assert!(error.contains("a boolean for each edge"), "{error}");
    let error = fails(&|options| options.edge_splits = vec![("trian".into(), "x.npy".into())]);
    assert!(error.contains("no split 'trian'"), "{error}");
}

#[test]
fn tables_name_classes_and_splits() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "src,dst,kind,stars,part\n0,1,likes,4.5,train\n1,2,,1,\n2,0,hates,2,test\n2,2,likes,3,valid\n";
    let mut options = TableOptions::plain(text(dir.path(), "edges.csv", lines));
    options.edges[0].split = Some("part".into());
    options.edges[0].label = Some("kind".into());
    let dataset = tables(&options, &dir.path().join("a")).unwrap().dataset;
    assert_eq!(columns::<i32>(&dataset), (vec![0, -1, 1, 0], vec![0, 3, 2, 1]));
    let names = dataset.edge_column(&Triple::plain(), "class_name.bytes").unwrap().unwrap();
    assert_eq!(&names.values::<u8>().unwrap()[..], b"likeshates");
    assert_eq!(dataset.manifest().edge_types[0].classes, Some(2));
    (options.edges[0].label, options.edges[0].value) = (None, Some("stars".into()));
    let dataset = tables(&options, &dir.path().join("b")).unwrap().dataset;
    assert_eq!(columns::<f32>(&dataset).0, [4.5, 1.0, 2.0, 3.0]);
    for (lines, told) in [
        (
            "src,dst,stars,part\n0,1,2,train\n1,0,,train\n",
            "edges.csv: line 3: column 'stars': the value is missing",
        ),
        ("src,dst,stars,part\n0,1,2,trian\n", "edges.csv: line 2: edges have no split 'trian'"),
    ] {
        text(dir.path(), "edges.csv", lines);
        let error = tables(&options, &dir.path().join("c")).err().unwrap().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn schemas_draw_splits_of_labelled_edges() {
    let dir = tempfile::tempdir().unwrap();
    let row = |i: usize| {
        format!("{},{},{}\n", i % 50, i % 47, if i.is_multiple_of(10) { "" } else { "1" })
    };
    let lines: String = (0..4000).map(row).collect();
    text(dir.path(), "edges.csv", &format!("a,b,kind\n{lines}"));
    let schema = |task: &str| {
        let label = format!(
            r#"{{"label_col": "kind", "task_type": "{task}", "split_pct": [0.5, 0.2, 0.3]}}"#
        );
        let edges = format!(
            r#"{{"relation": ["n", "r", "n"], "files": "edges.csv", "source_id_col": "a", "dest_id_col": "b", "labels": [{label}]}}"#
        );
        TableOptions::from_schema(&text(
            dir.path(),
            "graph.json",
            &format!(r#"{{"edges": [{edges}]}}"#),
        ))
    };
    let dataset =
        tables(&schema("classification").unwrap(), &dir.path().join("a")).unwrap().dataset;
    let triple: Triple = "n:r:n".parse().unwrap();
    let splits = dataset.edge_column(&triple, "split").unwrap().unwrap().values::<u8>().unwrap();
    let count = |split: u8| splits.iter().filter(|&&found| found == split).count() as u32;
    for (split, expected) in [1800, 720, 1080, 400].into_iter().enumerate() {
        assert!(count(split as u8).abs_diff(expected) < 90, "{split}: {}", count(split as u8));
    }
    assert_eq!(count(3), 400, "edges without a label are in no split");
    let error = tables(&schema("regression").unwrap(), &dir.path().join("b")).err().unwrap();
    assert!(error.to_string().contains("line 2: column 'kind': the value is missing"), "{error}");
    let error = schema("ranking").err().unwrap().to_string();
    assert!(error.contains("'classification' or 'regression'"), "{error}");
}
