//! Values of tables: missing numbers, booleans, dates and categories, as text and in Parquet; splits and
//! classes in every importer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::Files;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float16Array,
    Float64Array, Int8Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, UInt64Array,
};
use gnarl_common::Result;
use gnarl_graph::import::{
    EdgeTable, Feature, GraphboltOptions, HeteroNpyOptions, ImportReport, Imported, Impute,
    LeftOut, NodeTable, NpyOptions, OgbOptions, TableOptions, Transform, graphbolt,
    heterogeneous_npy, npy, ogb, tables,
};
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, Features, Labels, Triple};
use half::f16;
use parquet::arrow::ArrowWriter;

const EDGES: &str = "src,dst\n0,1\n1,2\n2,3\n";

fn feature(column: &str, transform: Transform, impute: Option<Impute>) -> Feature {
    Feature { column: column.into(), transform, impute, indicator: false }
}

/// Imports a nodes table, beside three edges of four nodes.
fn import(files: &Files, nodes: PathBuf, features: Vec<Feature>) -> Result<Imported> {
    let mut table = NodeTable::new(DEFAULT_NODE_TYPE, nodes);
    table.features = features;
    let edges = EdgeTable::new(Triple::plain(), files.text("edges.csv", EDGES));
    let options = TableOptions { nodes: vec![table], edges: vec![edges], ..Default::default() };
    let _ = std::fs::remove_dir_all(files.out());
    tables(&options, &files.out())
}

fn rows(dataset: &Dataset, ntype: &str) -> (Vec<f32>, usize) {
    let Some(Features::Dense(column)) = dataset.features(ntype).unwrap() else {
        panic!("no features")
    };
    (column.values::<f32>().unwrap().to_vec(), column.width())
}

fn parquet(path: &Path, columns: &[(&str, ArrayRef)]) {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn labels(dataset: &Dataset) -> (Vec<i32>, usize) {
    let Some(Labels::Single { classes, count }) = dataset.labels(DEFAULT_NODE_TYPE).unwrap() else {
        panic!("no classes")
    };
    (classes.to_vec(), count)
}

/// The names of classes, one after the other.
fn class_names(dataset: &Dataset) -> Option<(Vec<u64>, String)> {
    let column = |name: &str| dataset.node_column(DEFAULT_NODE_TYPE, name).unwrap();
    let bytes = column("class_name.bytes")?.values::<u8>().unwrap().to_vec();
    let offsets = column("class_name.offsets")?.values::<u64>().unwrap().to_vec();
    Some((offsets, String::from_utf8(bytes).unwrap()))
}

#[test]
fn missing_numbers_are_filled_in_where_asked() {
    let files = Files::new();
    let table = files.text("n.csv", "id,x,y\n0,,4\n1,1,5\n2,2,\n3,9,6\n");
    let fails = |impute| {
        let features = vec![feature("x", Transform::None, impute), "y".into()];
        files.refusal(import(&files, table.clone(), features))
    };
    let message = fails(None);
    assert!(message.contains("n.csv: line 2: column 'x': the feature is missing"), "{message}");
    assert!(message.contains("--impute"), "{message}");
    assert!(fails(Some(Impute::Mean)).contains("line 4: column 'y'"));

    for (impute, expected) in
        [(Impute::Mean, 4.0), (Impute::Median, 2.0), (Impute::Value(-3.5), -3.5)]
    {
        let features = vec![feature("x", Transform::None, Some(impute))];
        let made = import(&files, table.clone(), features).unwrap();
        assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (vec![expected, 1.0, 2.0, 9.0], 1));
    }
    // Of an even number the median is halfway; an indicator comes only where something is missing.
    let all = Feature { indicator: true, ..feature("y", Transform::None, Some(Impute::Median)) };
    let both = vec![all, feature("z", Transform::None, Some(Impute::Mean))];
    let full = files.text("m.csv", "id,y,z\n0,4,0\n1,8,1\n2,,2\n3,5,3\n4,7,4\n");
    let made = import(&files, full, both).unwrap();
    let expected = [4.0, 0.0, 0.0, 8.0, 0.0, 1.0, 6.0, 1.0, 2.0, 5.0, 0.0, 3.0, 7.0, 0.0, 4.0];
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected.to_vec(), 3));
    // Filled in before it is scaled, by moments of what is there: a mean becomes 0.
    let scaled = vec![feature("x", Transform::Standard, Some(Impute::Mean))];
    let made = import(&files, table.clone(), scaled).unwrap();
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE).0[0], 0.0);

    let none = files.text("none.csv", "id,x\n0,\n1,\n2,nan\n3,\n");
    let features = vec![feature("x", Transform::None, Some(Impute::Mean))];
    let message = files.refusal(import(&files, none, features));
    assert!(message.contains("column 'x' has no value at all"), "{message}");
    let inf = files.text("inf.csv", "id,x\n0,inf\n1,1\n2,2\n3,3\n");
    let message = files.refusal(import(&files, inf, vec!["x".into()]));
    assert!(message.contains("line 2: column 'x': the feature is inf"), "{message}");
}

#[test]
fn booleans_dates_and_categories_are_features() {
    let files = Files::new();
    let text = "id,premium,joined,seen,country\n\
                0,,2025-01-02,1970-01-01T12:00:00Z,de\n1,True,1970-01-11,1970-01-02,fr\n\
                2,FALSE,1970-01-02,1970-01-03 06:00,\n3,yes,1969-12-31,1970-01-03T02:00:00+02:00,de\n";
    let table = files.text("n.csv", text);
    let columns = || {
        vec![
            feature("premium", Transform::None, Some(Impute::Value(0.5))),
            "joined".into(),
            "seen".into(),
            feature("country", Transform::Categorical, None),
        ]
    };
    let expected = [
        [0.5, 20_090.0, 0.5, 1.0, 0.0],
        [1.0, 10.0, 1.0, 0.0, 1.0],
        [0.0, 1.0, 2.25, 0.0, 0.0],
        [1.0, -1.0, 2.0, 1.0, 0.0],
    ];
    let made = import(&files, table.clone(), columns()).unwrap();
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected.concat(), 5));

    let day = 86_400_000i64;
    let typed = files.path("n.parquet");
    let countries = [Some("de"), Some("fr"), None, Some("de")];
    let countries: DictionaryArray<Int32Type> = countries.into_iter().collect();
    let seen = [day / 2, day, 9 * day / 4, 2 * day].map(|ms| ms * 1000);
    let typed_columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from(vec![0, 1, 2, 3]))),
        ("premium", Arc::new(BooleanArray::from(vec![None, Some(true), Some(false), Some(true)]))),
        ("joined", Arc::new(Date32Array::from(vec![20_090, 10, 1, -1]))),
        ("seen", Arc::new(TimestampMicrosecondArray::from(seen.to_vec()).with_timezone("UTC"))),
        ("country", Arc::new(countries)),
    ];
    parquet(&typed, &typed_columns);
    let made = import(&files, typed, columns()).unwrap();
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected.concat(), 5));

    let message = files.refusal(import(&files, table, vec!["country".into()]));
    assert!(message.contains("n.csv: column 'country' holds text such as 'de'"), "{message}");
    assert!(message.contains("--categorical country"), "{message}");
    let mixed = files.text("mixed.csv", "id,a,b\n0,true,2025-01-01\n1,no,soon\n2,maybe,\n3,,\n");
    let message = files.refusal(import(&files, mixed.clone(), vec!["a".into()]));
    assert!(message.contains("line 4: column 'a': 'maybe' is not true or false"), "{message}");
    assert!(message.contains("its first value, 'true'"), "{message}");
    let message = files.refusal(import(&files, mixed, vec!["b".into()]));
    assert!(message.contains("line 3: column 'b': 'soon' is not a date"), "{message}");
}

#[test]
fn nodes_numbered_by_row_may_begin_with_any_column() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let joined: ArrayRef = Arc::new(Date32Array::from(vec![1, 2, 3, 4]));
    parquet(&path, &[("joined", joined)]);
    let made = import(&files, path, vec!["joined".into()]).unwrap();
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (vec![1.0, 2.0, 3.0, 4.0], 1));
}

#[test]
fn parquet_ids_have_63_bits() {
    let files = Files::new();
    let path = files.path("e.parquet");
    let src: ArrayRef = Arc::new(UInt64Array::from(vec![0, u64::MAX]));
    parquet(&path, &[("src", src), ("dst", Arc::new(Int64Array::from(vec![1, 2])))]);
    let message = files.refusal(tables(&TableOptions::plain(path), &files.out()));
    assert!(message.contains("e.parquet: row 1: column 'src' exceeds 63 bits"), "{message}");
    assert!(message.contains("strings"), "{message}");
}

#[test]
fn one_mention_of_a_column_counts_in_any_order() {
    let files = Files::new();
    let table = files.text("n.csv", "id,x1,x2\n0,,0\n1,2,\n2,4,4\n3,3,2\n");
    let fill = |value| Some(Impute::Value(value));
    let pattern = feature("x*", Transform::None, fill(9.0));
    let named = feature("x1", Transform::None, fill(5.0));
    let scaled = feature("x2", Transform::MaxMin, fill(0.0));
    let both = [vec![pattern.clone(), named.clone()], vec![named.clone(), pattern.clone()]];
    for mentions in both {
        let made = import(&files, table.clone(), mentions).unwrap();
        let expected = vec![5.0, 0.0, 2.0, 9.0, 4.0, 4.0, 3.0, 2.0];
        assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected, 2));
    }
    let made = import(&files, table, vec![named, scaled, pattern]).unwrap();
    let expected = vec![5.0, 0.0, 2.0, 0.0, 4.0, 1.0, 3.0, 0.5];
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected, 2));
}

#[test]
fn parquet_numbers_of_any_type_are_features() {
    let files = Files::new();
    let path = files.path("n.parquet");
    let decimals = Decimal128Array::from(vec![125, -50, 0, 300]).with_precision_and_scale(10, 2);
    let halves = [0.5, 1.0, -2.0, 0.0].map(f16::from_f32);
    let texts: Arc<dyn Array> = Arc::new(StringArray::from(vec!["1.5", "2", "-3", "4e1"]));
    parquet(
        &path,
        &[
            ("id", Arc::new(Int64Array::from(vec![0, 1, 2, 3]))),
            ("d", Arc::new(decimals.unwrap())),
            ("h", Arc::new(Float16Array::from(halves.to_vec()))),
            ("i", Arc::new(Int8Array::from(vec![-1, 2, 3, 4]))),
            ("t", texts),
            ("level", Arc::new(Int64Array::from(vec![Some(7), Some(3), None, Some(7)]))),
        ],
    );
    let columns = ["d", "h", "i", "t"].into_iter().map(Feature::from);
    let level = feature("level", Transform::Categorical, None);
    let made = import(&files, path, columns.chain([level]).collect()).unwrap();
    let expected = [
        [1.25, 0.5, -1.0, 1.5, 1.0, 0.0],
        [-0.5, 1.0, 2.0, 2.0, 0.0, 1.0],
        [0.0, -2.0, 3.0, -3.0, 0.0, 0.0],
        [3.0, 0.0, 4.0, 40.0, 1.0, 0.0],
    ];
    assert_eq!(rows(&made.dataset, DEFAULT_NODE_TYPE), (expected.concat(), 6));
}

#[test]
fn a_transform_by_name_wins_over_a_glob() {
    let files = Files::new();
    let table = files.text("n.csv", "id,x1,x2\n0,1,a\n1,3,b\n2,5,a\n3,7,b\n");
    let features = vec![
        "x*".into(),
        feature("x1", Transform::MaxMin, None),
        feature("x2", Transform::Categorical, None),
    ];
    let made = import(&files, table.clone(), features).unwrap();
    let third = 1.0 / 3.0;
    let expected = [0.0, 1.0, 0.0, third, 0.0, 1.0, 2.0 * third, 1.0, 0.0, 1.0, 0.0, 1.0];
    let (found, width) = rows(&made.dataset, DEFAULT_NODE_TYPE);
    assert_eq!(width, 3);
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    let two = ["x1"; 2].into_iter().zip([Transform::MaxMin, Transform::Standard]);
    let two = two.map(|(column, transform)| feature(column, transform, None)).collect();
    let message = files.refusal(import(&files, table, two));
    assert!(message.contains("column 'x1' has two transforms"), "{message}");
}

#[test]
fn edges_have_dates_and_features_by_the_same_rules() {
    let files = Files::new();
    let text = "src,dst,time,kind,w\n0,1,2025-05-03,a,1\n1,2,1970-01-01T00:01:00.5Z,b,\n2,0,1970-01-02,a,3\n";
    let mut table = EdgeTable::new(Triple::plain(), files.text("e.csv", text));
    table.features = vec![
        feature("w", Transform::None, Some(Impute::Mean)),
        feature("kind", Transform::Categorical, None),
    ];
    let options = TableOptions { edges: vec![table.clone()], ..Default::default() };
    let dataset = tables(&options, &files.out()).unwrap().dataset;
    let column = |dataset: &Dataset, name: &str| {
        dataset.edge_column(&Triple::plain(), name).unwrap().unwrap()
    };
    let seconds = [1_746_230_400, 60, 86_400];
    assert_eq!(column(&dataset, "time").values::<i64>().unwrap()[..], seconds);
    let features = column(&dataset, "features");
    let expected = [1.0, 1.0, 0.0, 2.0, 0.0, 1.0, 3.0, 1.0, 0.0];
    assert_eq!(features.values::<f32>().unwrap()[..], expected);

    let moments = seconds.map(|s| s * 1000);
    let ends = |ids: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from(ids.to_vec())) };
    let path = files.path("e.parquet");
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(moments.to_vec()));
    parquet(&path, &[("src", ends([0, 1, 2])), ("dst", ends([1, 2, 0])), ("time", time)]);
    let dataset = tables(&TableOptions::plain(path), &files.path("out2")).unwrap().dataset;
    assert_eq!(column(&dataset, "time").values::<i64>().unwrap()[..], seconds);

    let empty = files.text("w.csv", "src,dst,weight\n0,1,1\n1,2,\n");
    let message = tables(&TableOptions::plain(empty), &files.path("out3")).unwrap_err().to_string();
    assert!(message.contains("w.csv: line 3: column 'weight': the value is missing"), "{message}");
    let path = files.path("w.parquet");
    let weight: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, None]));
    parquet(&path, &[("src", ends([0, 1, 2])), ("dst", ends([1, 2, 0])), ("weight", weight)]);
    let message = tables(&TableOptions::plain(path), &files.path("out3")).unwrap_err().to_string();
    assert!(message.contains("w.parquet: row 1: column 'weight'"), "{message}");
}

fn left_out(split: &str, unlabeled: u64, of: u64) -> LeftOut {
    LeftOut { of_type: DEFAULT_NODE_TYPE.into(), split: split.into(), unlabeled, of }
}

fn check_splits(dataset: &Dataset, report: &ImportReport) {
    let split = |name: &str| dataset.split(DEFAULT_NODE_TYPE, name).unwrap().unwrap().to_vec();
    assert_eq!([split("train"), split("valid"), split("test")], [vec![0, 1], vec![2], vec![]]);
    let expected = [left_out("train", 1, 3), left_out("test", 1, 1)];
    assert_eq!(report.left_out, expected);
}

#[test]
fn splits_have_usual_names_and_labeled_nodes_in_every_importer() {
    let files = Files::new();
    let text = "id,label,split\n0,1,Train\n1,0,TRAINING\n2,1,Val\n3,,train\n4,,TEST\n5,,\n";
    let made = import(&files, files.text("n.csv", text), Vec::new()).unwrap();
    check_splits(&made.dataset, &made.report);

    let edges = files.edges("edges.npy", &[(0, 1), (1, 2), (4, 5)]);
    let labels = files.npy("labels.npy", &[], &[1i64, 0, 1, -1, -1, -1]);
    let ids = |name: &str, ids: &[i64]| files.npy(name, &[], ids);
    let splits = [
        ("train", ids("train.npy", &[3, 0, 1])),
        ("dev", ids("dev.npy", &[2])),
        ("testing", ids("test.npy", &[4])),
    ];
    let named = |(name, path): &(&str, PathBuf)| (name.to_string(), path.clone());
    let mut options = NpyOptions::new(&edges);
    options.labels = Some(labels);
    options.splits = splits.iter().map(named).collect();
    let made = npy(&options, &files.path("npy")).unwrap();
    check_splits(&made.dataset, &made.report);
    options.splits.push(("Validation".into(), ids("again.npy", &[5])));
    let message = npy(&options, &files.path("twice")).unwrap_err().to_string();
    assert!(message.contains("duplicate split 'valid' of _N nodes"), "{message}");
    options.splits = vec![("train".into(), ids("mask.npy", &[1, 0, 1, 0, 0, 0]))];
    let message = npy(&options, &files.path("mask")).unwrap_err().to_string();
    assert!(message.contains("a mask is of booleans") && message.contains("astype(bool)"));

    // Labels that come split by split are known before the splits are written.
    let typed = |splits: &[(&str, PathBuf)]| -> Vec<(String, String, PathBuf)> {
        splits
            .iter()
            .map(|(name, path)| (DEFAULT_NODE_TYPE.into(), name.to_string(), path.clone()))
            .collect()
    };
    let options = HeteroNpyOptions {
        edges: vec![(Triple::plain(), edges)],
        splits: typed(&splits),
        split_labels: typed(&[
            ("Training", ids("y0.npy", &[-1, 1, 0])),
            ("val", ids("y1.npy", &[1])),
        ]),
        memory: 1 << 26,
        ..Default::default()
    };
    let made = heterogeneous_npy(&options, &files.path("typed")).unwrap();
    check_splits(&made.dataset, &made.report);

    for (name, ids) in [("train", "3\n0\n1\n"), ("valid", "2\n"), ("test", "4\n")] {
        files.gz(&format!("g/split/time/{name}.csv.gz"), ids);
    }
    files.gz("g/raw/edge.csv.gz", "0,1\n1,2\n4,5\n");
    files.gz("g/raw/num-node-list.csv.gz", "6\n");
    files.gz("g/raw/node-label.csv.gz", "1\n0\n1\nnan\nnan\nnan\n");
    let made = ogb(&OgbOptions::new(files.path("g")), &files.path("ogb")).unwrap();
    check_splits(&made.dataset, &made.report);

    let y = files.npy("b/y.npy", &[], &[-1i64, 1, 0]);
    files.npy("b/y1.npy", &[], &[1i64]);
    files.npy("b/y2.npy", &[], &[-1i64]);
    let folder = y.parent().unwrap();
    files.text("b/e.csv", "0,1\n1,2\n4,5\n");
    let mut yaml =
        "graph: {nodes: [{num: 6}], edges: [{format: csv, path: e.csv}]}\ntasks:\n- name: t\n"
            .to_string();
    for (set, seeds, labels) in [
        ("train", "train.npy", "y.npy"),
        ("validation", "dev.npy", "y1.npy"),
        ("test", "test.npy", "y2.npy"),
    ] {
        let data = format!(
            "[{{name: seeds, format: numpy, path: ../{seeds}}}, {{name: labels, format: numpy, path: {labels}}}]"
        );
        yaml += &format!("  {set}_set: [{{data: {data}}}]\n");
    }
    let path = files.text("b/metadata.yaml", &yaml);
    assert_eq!(path.parent().unwrap(), folder);
    let options = GraphboltOptions { path, task: None, memory: 1 << 26 };
    let made = graphbolt(&options, &files.path("graphbolt")).unwrap();
    check_splits(&made.dataset, &made.report);
}

#[test]
fn edges_without_a_label_are_in_no_split() {
    let files = Files::new();
    let text = "src,dst,y,s\n0,1,1,Train\n1,2,,train\n2,0,0,VAL\n0,2,,\n";
    let mut table = EdgeTable::new(Triple::plain(), files.text("e.csv", text));
    table.label = Some("y".into());
    table.split = Some("s".into());
    let options = TableOptions { edges: vec![table], ..Default::default() };
    let check = |made: Imported| {
        let column = made.dataset.edge_column(&Triple::plain(), "split").unwrap().unwrap();
        assert_eq!(column.values::<u8>().unwrap()[..], [0, 3, 1, 3]);
        let of_type = Triple::plain().to_string();
        let expected = LeftOut { of_type, ..left_out("train", 1, 2) };
        assert_eq!(made.report.left_out, [expected]);
    };
    check(tables(&options, &files.out()).unwrap());
}

#[test]
fn class_ids_with_gaps_are_numbered_anew() {
    let files = Files::new();
    let ids = [77i64, 10, -1, 1000, 10];
    let names = Some((vec![0, 2, 4, 8], "10771000".to_string()));
    let check = |made: &Imported| {
        assert_eq!(labels(&made.dataset), (vec![1, 0, -1, 2, 0], 3));
        assert_eq!(class_names(&made.dataset), names);
        assert_eq!(made.report.renumbered_classes, [DEFAULT_NODE_TYPE]);
        gnarl_graph::inspect::verify(&made.dataset).unwrap();
    };
    let table = files.text("n.csv", "id,label\n0,77\n1,10\n2,\n3,1000\n4,10.0\n");
    check(&import(&files, table.clone(), Vec::new()).unwrap());

    let edges = files.edges("edges.npy", &[(0, 1), (1, 2), (3, 4)]);
    let mut options = NpyOptions::new(&edges);
    options.labels = Some(files.npy("y.npy", &[], &ids));
    check(&npy(&options, &files.path("npy")).unwrap());
    // A stated number of classes keeps them, and so do ids of which at least half are used.
    options.num_classes = Some(1001);
    let kept = npy(&options, &files.path("kept")).unwrap();
    assert_eq!(labels(&kept.dataset), (vec![77, 10, -1, 1000, 10], 1001));
    assert_eq!(class_names(&kept.dataset), None);
    options.num_classes = None;
    options.labels = Some(files.npy("few.npy", &[], &[0i64, 1, 2, 4, 4]));
    let kept = npy(&options, &files.path("few")).unwrap();
    assert_eq!(labels(&kept.dataset), (vec![0, 1, 2, 4, 4], 5));
    assert_eq!(kept.report.renumbered_classes, [""; 0]);

    let options = HeteroNpyOptions {
        edges: vec![(Triple::plain(), edges)],
        num_nodes: vec![(DEFAULT_NODE_TYPE.into(), 5)],
        splits: vec![(
            DEFAULT_NODE_TYPE.into(),
            "train".into(),
            files.npy("t.npy", &[], &[4i64, 3, 0, 1]),
        )],
        split_labels: vec![(
            DEFAULT_NODE_TYPE.into(),
            "train".into(),
            files.npy("ty.npy", &[], &[10i64, 1000, 77, 10]),
        )],
        memory: 1 << 26,
        ..Default::default()
    };
    check(&heterogeneous_npy(&options, &files.path("typed")).unwrap());

    files.gz("g/raw/edge.csv.gz", "0,1\n1,2\n3,4\n");
    files.gz("g/raw/num-node-list.csv.gz", "5\n");
    files.gz("g/raw/node-label.csv.gz", "77\n10\nnan\n1000\n10\n");
    check(&ogb(&OgbOptions::new(files.path("g")), &files.path("ogb")).unwrap());
}

#[test]
fn classes_of_edges_are_numbered_anew_too() {
    let files = Files::new();
    let mut table = EdgeTable::new(
        Triple::plain(),
        files.text("e.csv", "src,dst,time,y\n0,1,5,500\n1,2,6,30\n2,0,7,\n"),
    );
    table.label = Some("y".into());
    let options = TableOptions { edges: vec![table], ..Default::default() };
    let mut arrays = NpyOptions::new(files.edges("e.npy", &[(0, 1), (1, 2), (2, 0)]));
    arrays.edge_labels = Some(files.npy("y.npy", &[], &[500i64, 30, -1]));
    for made in [tables(&options, &files.out()), npy(&arrays, &files.path("npy"))] {
        let made = made.unwrap();
        let column =
            |name: &str| made.dataset.edge_column(&Triple::plain(), name).unwrap().unwrap();
        assert_eq!(column("label").values::<i32>().unwrap()[..], [1, 0, -1]);
        assert_eq!(&column("class_name.bytes").values::<u8>().unwrap()[..], b"30500");
        assert_eq!(made.dataset.manifest().edge_types[0].classes, Some(2));
        assert_eq!(made.report.renumbered_classes, [Triple::plain().to_string()]);
    }
}

#[test]
fn a_first_label_may_be_missing() {
    let files = Files::new();
    let table = files.text("n.csv", "id,label\n0,\n1,cat\n2,dog\n3,cat\n");
    let made = import(&files, table, Vec::new()).unwrap();
    assert_eq!(labels(&made.dataset), (vec![-1, 0, 1, 0], 2));
    assert_eq!(class_names(&made.dataset), Some((vec![0, 3, 6], "catdog".into())));
}

#[test]
fn schemas_impute_and_symmetrize() {
    let files = Files::new();
    files.text(
        "n.csv",
        "id,age,joined\n0,,1970-01-02\n1,3,1970-01-03\n2,5,1970-01-04\n3,7,1970-01-05\n",
    );
    files.text("e.csv", "src,dst,w\n0,1,true\n1,2,no\n");
    let schema = r#"{ "nodes": [{ "node_type": "user", "files": "n.csv", "node_id_col": "id",
        "features": [{ "feature_col": "age", "impute": "median", "impute_indicator": true },
                     { "feature_col": "joined", "transform": { "name": "max_min_norm" } }] }],
      "edges": [{ "relation": ["user", "knows", "user"], "files": "e.csv", "source_id_col": "src",
        "dest_id_col": "dst", "features": [{ "feature_col": "w" }] }] }"#;
    let path = files.text("graph.json", schema);
    let options = TableOptions { symmetrize: true, ..TableOptions::from_schema(&path).unwrap() };
    let made = tables(&options, &files.out()).unwrap();
    assert!(made.report.symmetric && made.dataset.plain().is_ok());
    let (found, width) = rows(&made.dataset, "user");
    assert_eq!(width, 3);
    assert_eq!(found[..6], [5.0, 1.0, 0.0, 3.0, 0.0, 1.0 / 3.0]);
    let triple: Triple = "user:knows:user".parse().unwrap();
    let column = made.dataset.edge_column(&triple, "features").unwrap().unwrap();
    assert_eq!(column.values::<f32>().unwrap()[..], [1.0, 0.0, 1.0, 0.0]);

    let bad = files.text("bad.json", &schema.replace("\"median\"", "\"modus\""));
    let message = TableOptions::from_schema(&bad).unwrap_err().to_string();
    assert!(message.contains("node type 'user': impute: invalid value 'modus'"), "{message}");
    let two = schema.replace("\"user\", \"knows\", \"user\"", "\"user\", \"knows\", \"item\"");
    let mut options = TableOptions::from_schema(&files.text("two.json", &two)).unwrap();
    options.nodes.push(NodeTable::new("item", files.text("i.csv", "id\n0\n1\n2\n")));
    options.symmetrize = true;
    let message = tables(&options, &files.path("two")).unwrap_err().to_string();
    assert!(message.contains("--symmetrize does nothing to edges of user:knows:item"), "{message}");
}

#[test]
fn times_of_nodes_are_integers_or_dates() {
    let files = Files::new();
    let with_times = |nodes: PathBuf| {
        let mut table = NodeTable::new(DEFAULT_NODE_TYPE, nodes);
        table.time = Some("at".into());
        let edges = EdgeTable::new(Triple::plain(), files.text("edges.csv", EDGES));
        let options = TableOptions { nodes: vec![table], edges: vec![edges], ..Default::default() };
        let _ = std::fs::remove_dir_all(files.out());
        tables(&options, &files.out())
    };
    let times = |text: &str| {
        let dataset = with_times(files.text("n.csv", text)).unwrap().dataset;
        dataset
            .node_column(DEFAULT_NODE_TYPE, "time")
            .unwrap()
            .unwrap()
            .values::<i64>()
            .unwrap()
            .to_vec()
    };
    assert_eq!(times("id,at,label\n0,5,1\n1,-7,0\n2,0,1\n3,9,0\n"), [5, -7, 0, 9]);
    let days = times("id,at\n0,1970-01-02\n1,1970-01-01\n2,1970-01-01T00:01:00Z\n3,1970-01-03\n");
    assert_eq!(days, [86_400, 0, 60, 172_800]);
    for (cell, said) in [("", "missing"), ("1.5", "1.5")] {
        let text = format!("id,at\n0,5\n1,{cell}\n2,0\n3,9\n");
        let error = with_times(files.text("n.csv", &text)).unwrap_err().to_string();
        assert!(error.contains("n.csv") && error.contains(said), "{error}");
        assert!(!files.out().exists(), "nothing is left");
    }
}
