//! Datasets: what is written is read back; damage is named; a crash leaves nothing behind.

use std::fs;
use std::path::Path;

use gnarl_common::Element;
use gnarl_common::staging::Claim;
use gnarl_graph::{
    Column, DEFAULT_NODE_TYPE, Dataset, DatasetWriter, EdgeStream, Features, FinishOptions,
    IdWidth, Labels, MANIFEST, Triple,
};
use half::{bf16, f16};

fn node_column<T: Element>(w: &mut DatasetWriter, t: &str, name: &str, row: &[u64], v: &[T]) {
    let mut column = w.node_column::<T>(t, name, row).unwrap();
    column.push(v).unwrap();
    let spec = column.finish().unwrap();
    w.node_type(t).unwrap().columns.push(spec);
}

fn edges(w: &mut DatasetWriter, t: &Triple, pairs: &[(u64, u64)], limits: (u64, u64)) {
    let mut writer = w.edge_writer(t, Some(limits)).unwrap();
    let (src, dst): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    writer.push(&src, &dst).unwrap();
    let columns = writer.finish().unwrap();
    w.add_edge_type(t.clone(), columns);
}

const PATH: [(u64, u64); 4] = [(0, 1), (1, 2), (2, 3), (0, 1)];

/// A path of four nodes with a repeated edge.
fn path_graph(dir: &Path, width: IdWidth, options: FinishOptions) -> Dataset {
    let mut w = DatasetWriter::create(dir, width).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 4).classes = Some(2);
    edges(&mut w, &Triple::plain(), &PATH, (4, 4));
    node_column(&mut w, DEFAULT_NODE_TYPE, "label", &[], &[0i32, 1, -1, 1]);
    w.add_split(DEFAULT_NODE_TYPE, "train", vec![3, 0]).unwrap();
    w.add_split(DEFAULT_NODE_TYPE, "test", vec![1]).unwrap();
    w.finish(options).unwrap()
}

#[test]
fn a_plain_graph_is_read_back_in_both_id_widths() {
    let dir = tempfile::tempdir().unwrap();
    for (width, bits) in [(IdWidth::U32, 32), (IdWidth::U64, 64)] {
        let path = dir.path().join(bits.to_string());
        let dataset = path_graph(&path, width, FinishOptions::default());
        assert_eq!(dataset.manifest().id_width, bits);
        let mut seen = Vec::new();
        dataset.edges().unwrap().for_each(&mut |s, d| seen.push((s, d))).unwrap();
        assert_eq!(seen, PATH);
        let csc = dataset.csc(&Triple::plain()).unwrap();
        assert_eq!((csc.sources(1), csc.sources(0)), (&[0u32, 0][..], &[][..]));
        assert_eq!(dataset.split_names(DEFAULT_NODE_TYPE).unwrap(), ["train", "test"]);
        assert_eq!(dataset.split(DEFAULT_NODE_TYPE, "train").unwrap().unwrap()[..], [0, 3]);
        assert!(dataset.split(DEFAULT_NODE_TYPE, "valid").unwrap().is_none());
        let Some(Labels::Single { classes, count: 2 }) = dataset.labels(DEFAULT_NODE_TYPE).unwrap()
        else {
            panic!("single labels of two classes were written");
        };
        assert_eq!(classes[..], [0, 1, -1, 1]);
        let facts = &dataset.plain().unwrap().1.facts;
        assert_eq!((facts.duplicates, facts.symmetric, facts.max_in_degree), (1, false, 2));
    }
}

#[test]
fn rows_of_edges_without_columns_are_kept_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, options| path_graph(&dir.path().join(name), IdWidth::U32, options);
    let csc = make("without", FinishOptions::default()).csc(&Triple::plain()).unwrap();
    assert!(csc.edge.is_none());
    let dataset = make("with", FinishOptions { edge_rows: true, ..FinishOptions::default() });
    let mut sources = Vec::new();
    let mut destinations = Vec::new();
    dataset
        .edges()
        .unwrap()
        .for_each(&mut |s, d| {
            sources.push(s);
            destinations.push(d);
        })
        .unwrap();
    let csc = dataset.csc(&Triple::plain()).unwrap();
    let rows = csc.edge.as_ref().unwrap();
    for node in 0..csc.num_dst() as u32 {
        let first = csc.indptr.get(node.into());
        for (i, &source) in csc.sources(node).iter().enumerate() {
            let row = rows.get(first + i as u64) as usize;
            assert_eq!((sources[row], destinations[row]), (source.into(), node.into()));
        }
    }
    gnarl_graph::inspect::verify(&dataset).unwrap();
}

#[test]
fn repeated_edges_are_dropped_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let options = FinishOptions { coalesce: true, ..FinishOptions::default() };
    let dataset = path_graph(&dir.path().join("g"), IdWidth::U32, options);
    let mut seen = Vec::new();
    let mut stream = dataset.edges().unwrap();
    stream.for_each(&mut |s, d| seen.push((s, d))).unwrap();
    assert_eq!(seen, [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(dataset.manifest().num_edges(), 3);
    assert_eq!(dataset.plain().unwrap().1.facts.max_in_degree, 1);
    gnarl_graph::inspect::verify(&dataset).unwrap();
}

#[test]
fn several_types_share_one_id_space_in_streams() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = DatasetWriter::create(dir.path().join("h"), IdWidth::U32).unwrap();
    w.add_node_type("author", 2);
    w.add_node_type("paper", 3);
    let writes: Triple = "author:writes:paper".parse().unwrap();
    let cites: Triple = "paper:cites:paper".parse().unwrap();
    edges(&mut w, &writes, &[(0, 2), (1, 0)], (2, 3));
    let mut writer = w.edge_writer(&cites, None).unwrap();
    writer.push(&[2, 1, 0], &[0, 0, 1]).unwrap();
    assert_eq!(writer.largest(), Some((2, 1)));
    let mut columns = writer.finish().unwrap();
    let mut weight = w.edge_column::<f32>(&cites, "weight", &[]).unwrap();
    weight.push(&[0.2, 0.1, 0.7]).unwrap();
    columns.push(weight.finish().unwrap());
    w.add_edge_type(cites.clone(), columns);
    let dataset = w.finish(FinishOptions::default()).unwrap();

    let mut seen = Vec::new();
    dataset.edges().unwrap().for_each(&mut |s, d| seen.push((s, d))).unwrap();
    assert_eq!(seen, [(0, 4), (1, 2), (4, 2), (3, 2), (2, 3)]);
    let csc = dataset.csc(&cites).unwrap();
    assert_eq!(csc.sources(0), [1, 2]);
    // Weights follow their edges through the rows kept beside the sources.
    let weights: Column = dataset.edge_column(&cites, "weight").unwrap().unwrap();
    let weights = weights.values::<f32>().unwrap();
    let rows = csc.edge.unwrap();
    assert_eq!(
        rows.as_slice().range(0..2).map(|r| weights[r as usize]).collect::<Vec<_>>(),
        [0.1, 0.2]
    );
    let unknown = dataset.csc(&"paper:writes:author".parse().unwrap()).unwrap_err().to_string();
    assert!(unknown.contains("author:writes:paper, paper:cites:paper"), "{unknown}");
    assert!(dataset.plain().unwrap_err().to_string().contains("plain graph"));
}

fn dense<T: Element + PartialEq + std::fmt::Debug>(dir: &Path, values: &[T]) {
    let path = dir.join(T::DTYPE.to_string());
    let mut w = DatasetWriter::create(path, IdWidth::U32).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 2);
    node_column(&mut w, DEFAULT_NODE_TYPE, "features", &[3], values);
    let dataset = w.finish(FinishOptions::default()).unwrap();
    let features = dataset.features(DEFAULT_NODE_TYPE).unwrap().unwrap();
    assert_eq!((features.rows(), features.width(), features.dtype()), (2, 3, T::DTYPE));
    let Features::Dense(column) = features else { panic!("dense features were written") };
    assert_eq!(column.values::<T>().unwrap()[..], *values);
    let wrong = column.values::<i64>().unwrap_err().to_string();
    assert!(wrong.contains("_N.features.npy") && wrong.contains("i64"), "{wrong}");
}

#[test]
fn dense_features_keep_their_type() {
    let dir = tempfile::tempdir().unwrap();
    let values = [0.5f32, -1.0, 2.0, 3.0, 4.0, 5.5];
    dense(dir.path(), &values);
    dense(dir.path(), &values.map(f16::from_f32));
    dense(dir.path(), &values.map(bf16::from_f32));
    dense(dir.path(), &[1u8, 2, 3, 4, 5, 255]);
}

#[test]
fn sparse_features_and_several_labels_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = DatasetWriter::create(dir.path().join("s"), IdWidth::U32).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 2).csr_width = Some(50);
    node_column(&mut w, DEFAULT_NODE_TYPE, "features.indptr", &[], &[0u64, 2, 3]);
    node_column(&mut w, DEFAULT_NODE_TYPE, "features.indices", &[], &[4u32, 49, 7]);
    node_column(&mut w, DEFAULT_NODE_TYPE, "features.values", &[], &[1.0f32, 2.0, 3.0]);
    node_column(&mut w, DEFAULT_NODE_TYPE, "label", &[3], &[1u8, 0, 1, 0, 0, 0]);
    let dataset = w.finish(FinishOptions::default()).unwrap();
    let features = dataset.features(DEFAULT_NODE_TYPE).unwrap().unwrap();
    assert_eq!((features.rows(), features.width()), (2, 50));
    let labels = dataset.labels(DEFAULT_NODE_TYPE).unwrap().unwrap();
    assert_eq!(labels.outputs(), 3);
}

#[test]
fn nothing_appears_before_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g");
    let mut w = DatasetWriter::create(&out, IdWidth::U32).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 4);
    edges(&mut w, &Triple::plain(), &PATH, (4, 4));
    assert!(w.tmp_dir().exists() && !out.exists());
    drop(w);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_dataset_is_replaced_whole_and_a_failure_keeps_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g");
    path_graph(&out, IdWidth::U32, FinishOptions::default());
    let error = DatasetWriter::create(&out, IdWidth::U64).unwrap_err().to_string();
    assert!(error.contains("holds a dataset already"), "{error}");

    let claim = Claim::new(&out, MANIFEST, true).unwrap();
    let mut w = DatasetWriter::create(&out, IdWidth::U64).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 1 << 20);
    edges(&mut w, &Triple::plain(), &[(0, 9)], (10, 10));
    let error = w
        .finish(FinishOptions { memory: 1 << 20, coalesce: false, ..Default::default() })
        .unwrap_err();
    assert!(error.to_string().contains("raise --memory"), "{error}");
    assert_eq!(Dataset::open(&out).unwrap().manifest().id_width, 32);

    path_graph(&out, IdWidth::U64, FinishOptions::default());
    assert_eq!(Dataset::open(&out).unwrap().manifest().id_width, 64);
    drop(claim);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn other_directories_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let message = DatasetWriter::create(dir.path(), IdWidth::U32).unwrap_err().to_string();
    assert!(message.contains("is not a dataset"), "{message}");
    assert!(DatasetWriter::create("..", IdWidth::U32).is_err());
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    path_graph(&empty, IdWidth::U32, FinishOptions::default());
}

#[test]
fn wrong_ids_and_splits_are_refused_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = DatasetWriter::create(dir.path().join("g"), IdWidth::U32).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 4);
    let mut writer = w.edge_writer(&Triple::plain(), Some((4, 4))).unwrap();
    writer.push(&[0, 1], &[1, 2]).unwrap();
    let message = writer.push(&[1, 2], &[2, 4]).unwrap_err().to_string();
    assert!(message.contains("edge 3: destination 4"), "{message}");
    let message = w.add_split(DEFAULT_NODE_TYPE, "train", vec![0, 9]).unwrap_err().to_string();
    assert!(message.contains("row 1: node 9"), "{message}");
    let message = w.add_split(DEFAULT_NODE_TYPE, "train", vec![2, 1, 2]).unwrap_err().to_string();
    assert!(message.contains("node 2 is listed twice"), "{message}");
    w.add_split(DEFAULT_NODE_TYPE, "train", vec![1, 2]).unwrap();
    w.add_split(DEFAULT_NODE_TYPE, "test", vec![3, 2]).unwrap();
    let message = w.finish(FinishOptions::default()).unwrap_err().to_string();
    assert!(message.contains("node 2 is in both splits train and test"), "{message}");
}

#[test]
fn columns_of_the_wrong_length_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = DatasetWriter::create(dir.path().join("g"), IdWidth::U32).unwrap();
    w.add_node_type(DEFAULT_NODE_TYPE, 4);
    node_column(&mut w, DEFAULT_NODE_TYPE, "label", &[], &[0i32, 1]);
    let message = w.finish(FinishOptions::default()).unwrap_err().to_string();
    assert!(message.contains("label has 2 rows for 4"), "{message}");
}

#[test]
fn damaged_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g");
    let dataset = path_graph(&out, IdWidth::U32, FinishOptions::default());
    let label = out.join("_N.label.npy");
    let whole = fs::read(&label).unwrap();

    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&label, &changed).unwrap();
    let message = gnarl_graph::inspect::verify(&dataset).unwrap_err().to_string();
    assert!(message.contains("_N.label.npy: checksum differs"), "{message}");

    fs::write(&label, &whole[..whole.len() - 3]).unwrap();
    let message = dataset.labels(DEFAULT_NODE_TYPE).unwrap_err().to_string();
    assert!(message.contains("_N.label.npy: truncated"), "{message}");

    // A column of the wrong length or type is noticed without reading it.
    fs::copy(out.join("_N._E._N.src.npy"), &label).unwrap();
    let message = dataset.labels(DEFAULT_NODE_TYPE).unwrap_err().to_string();
    assert!(message.contains("dataset.json says <i4 [4]"), "{message}");
    fs::copy(out.join("_N._E._N.csc.indptr.npy"), out.join("_N._E._N.src.npy")).unwrap();
    let message = dataset.edges().err().unwrap().to_string();
    assert!(message.contains("_N._E._N.src.npy"), "{message}");

    fs::remove_file(&label).unwrap();
    assert!(dataset.labels(DEFAULT_NODE_TYPE).unwrap_err().to_string().contains("_N.label.npy"));
}

#[test]
fn broken_manifests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let message = Dataset::open(dir.path()).unwrap_err().to_string();
    assert!(message.contains("gnarl import"), "{message}");
    let out = dir.path().join("g");
    path_graph(&out, IdWidth::U32, FinishOptions::default());
    let sealed = fs::read_to_string(out.join(MANIFEST)).unwrap();
    let reopen = |text: String| {
        fs::write(out.join(MANIFEST), text).unwrap();
        Dataset::open(&out).unwrap_err().to_string()
    };
    let message = reopen(sealed.replace("\"version\": 1", "\"version\": 0"));
    assert!(message.contains("dataset.json: damaged or changed"), "{message}");
    let (checksum, entries) = sealed.split_once(",\n").unwrap();
    assert!(checksum.contains("crc32"), "{checksum}");
    let manifest = format!("{{\n{entries}");
    let message = reopen(manifest.replace("\"version\": 1", "\"version\": 9"));
    assert!(message.contains("version 9"), "{message}");
    let message = reopen(manifest.replace("_N:_E:_N", "_N:_E:ghost"));
    assert!(message.contains("unknown node type 'ghost'"), "{message}");
    let message = reopen(manifest[..manifest.len() / 2].into());
    assert!(message.contains(MANIFEST), "{message}");
}
