//! Parquet tables become datasets, and bad ones are named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Files, counts};
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use gnarl_graph::import::{EdgeTable, NodeTable, TableOptions, tables};
use gnarl_graph::{DEFAULT_NODE_TYPE, Features, Labels, Triple};
use parquet::arrow::ArrowWriter;

fn write(path: &Path, columns: &[(&str, ArrayRef)]) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| (*name, array.clone(), true)),
    );
    let batch = batch.unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn integers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn lists(rows: Vec<Option<Vec<Option<i64>>>>) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
}

fn row(values: &[i64]) -> Option<Vec<Option<i64>>> {
    Some(values.iter().map(|&x| Some(x)).collect())
}

/// Options for two tables with columns `src`, `dst` and `id`, `x`.
fn options(edges: PathBuf, nodes: PathBuf) -> TableOptions {
    let mut nodes = NodeTable::new(DEFAULT_NODE_TYPE, nodes);
    nodes.features = vec!["x".into()];
    let edges = vec![EdgeTable::new(Triple::plain(), edges)];
    TableOptions { nodes: vec![nodes], edges, ..Default::default() }
}

#[test]
fn the_shipped_citation_graph_is_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/cora");
    let mut nodes = NodeTable::new(DEFAULT_NODE_TYPE, dir.join("nodes.parquet"));
    nodes.id = Some("nodeId".into());
    nodes.label = Some("subject".into());
    nodes.features = vec!["features".into()];
    let mut edges = EdgeTable::new(Triple::plain(), dir.join("edges.parquet"));
    edges.src = Some("sourceNodeId".into());
    edges.dst = Some("targetNodeId".into());
    let options = TableOptions {
        nodes: vec![nodes],
        edges: vec![edges],
        symmetrize: true,
        ..Default::default()
    };
    let files = Files::new();
    let made = tables(&options, &files.out()).unwrap();
    assert_eq!(counts(&made.report)[..2], [2708, 10_556]);
    assert!(made.report.symmetric && made.report.renumbered == [DEFAULT_NODE_TYPE]);
    let Some(Labels::Single { count, .. }) = made.dataset.labels(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert_eq!(count, 7);
    let Some(Features::Dense(column)) = made.dataset.features(DEFAULT_NODE_TYPE).unwrap() else {
        panic!()
    };
    assert_eq!(column.spec().shape, [2708, 1433]);
    assert!(column.values::<f32>().unwrap().iter().all(|&x| x == 0.0 || x == 1.0));
}

#[test]
fn bad_parquet_is_named_by_row_and_column() {
    let files = Files::new();
    let (edges, nodes) = (files.path("e.parquet"), files.path("n.parquet"));
    let ids = || integers(&[Some(0), Some(1), Some(2)]);
    let good = || lists(vec![row(&[1, 2]), row(&[3, 4]), row(&[5, 6])]);
    let ends = || [("src", integers(&[Some(0), Some(1)])), ("dst", integers(&[Some(1), Some(2)]))];
    let check = |parts: &[&str]| {
        let options = options(edges.clone(), nodes.clone());
        let message = files.refusal(tables(&options, &files.out()));
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
    };
    write(&edges, &ends());
    write(&nodes, &[("id", ids()), ("x", lists(vec![row(&[1, 2]), row(&[3]), row(&[5, 6])]))]);
    check(&["n.parquet: row 1", "'x'", "a list of 1, the first has 2"]);
    write(&nodes, &[("id", ids()), ("x", lists(vec![row(&[1, 2]), None, row(&[5, 6])]))]);
    check(&["n.parquet: row 1", "'x' is null"]);
    let hole = lists(vec![row(&[1, 2]), row(&[3, 4]), Some(vec![Some(5), None])]);
    write(&nodes, &[("id", ids()), ("x", hole)]);
    check(&["n.parquet: row 2: column 'x': the feature is missing", "--impute 0"]);
    write(&nodes, &[("id", integers(&[Some(0), None, Some(2)])), ("x", good())]);
    check(&["n.parquet: row 1", "'id' is null"]);
    write(&nodes, &[("id", ids()), ("x", good())]);
    write(&edges, &[("src", integers(&[Some(0), Some(7)])), ends()[1].clone()]);
    check(&["e.parquet: row 1", "7"]);
    write(&edges, &[("from", integers(&[Some(0)])), ("dst", integers(&[Some(1)]))]);
    check(&["e.parquet", "no column 'src'", "from, dst"]);
    write(&edges, &ends());
    let length = std::fs::metadata(&edges).unwrap().len();
    std::fs::File::options().write(true).open(&edges).unwrap().set_len(length - 20).unwrap();
    check(&["e.parquet", "not a readable Parquet file"]);
}
