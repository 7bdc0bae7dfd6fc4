//! OGB folders of all four layouts become the datasets that arrays and tables make.

use crate::common::{Files, assert_same, counts, sorted_edges};
use gnarl_graph::import::{
    EdgeTable, NodeTable, NpyOptions, OgbOptions, TableOptions, WeightType, npy, ogb, tables,
};
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, Labels, Triple};
use half::{bf16, f16};

const EDGES: [(i64, i64); 4] = [(0, 1), (1, 2), (2, 2), (3, 0)];
const FEATURES: [f32; 8] = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5];

/// A homogeneous graph as text.
fn plain_text() -> Files {
    let files = Files::new();
    files.gz("g/raw/edge.csv.gz", "0,1\n1,2\n2,2\n3,0\n");
    files.gz("g/raw/num-node-list.csv.gz", "4\n");
    files.gz("g/raw/num-edge-list.csv.gz", "4\n");
    files.gz("g/raw/node-feat.csv.gz", "0.5,1\n2,3\n4,5\n6,7.5\n");
    files.gz("g/raw/node-label.csv.gz", "0\n2.0\nnan\n1\n");
    splits(&files, "g/split/time");
    files
}

fn splits(files: &Files, dir: &str) {
    files.gz(&format!("{dir}/train.csv.gz"), "2\n0\n");
    files.gz(&format!("{dir}/valid.csv.gz"), "1\n");
    files.gz(&format!("{dir}/test.csv.gz"), "3\n");
}

fn options(files: &Files) -> OgbOptions {
    OgbOptions::new(files.path("g"))
}

/// The homogeneous graph from arrays.
fn expected(files: &Files, symmetrize: bool) -> Dataset {
    let split =
        |name: &str, ids: &[i64]| (name.into(), files.npy(&format!("{name}.npy"), &[], ids));
    let options = NpyOptions {
        features: Some(files.npy("x.npy", &[2], &FEATURES)),
        labels: Some(files.npy("y.npy", &[], &[0.0f32, 2.0, f32::NAN, 1.0])),
        splits: vec![split("train", &[2, 0]), split("valid", &[1]), split("test", &[3])],
        symmetrize,
        coalesce: Some(false),
        ..NpyOptions::new(files.edges("e.npy", &EDGES))
    };
    npy(&options, &files.fresh("expected")).unwrap().dataset
}

#[test]
fn plain_text_equals_the_arrays() {
    let files = plain_text();
    let made = ogb(&options(&files), &files.fresh("out")).unwrap();
    assert_same(&made.dataset, &expected(&files, false));
    assert_eq!(counts(&made.report), [4, 4, 0, 1, 0]);
    let inverse = OgbOptions { add_inverse: true, ..options(&files) };
    let made = ogb(&inverse, &files.fresh("out")).unwrap();
    assert!(made.report.symmetric && made.report.edges == 7);
    let plain = Triple::plain();
    assert_eq!(sorted_edges(&made.dataset, &plain), sorted_edges(&expected(&files, true), &plain));
}

#[test]
fn plain_binary_equals_the_arrays() {
    for deflate in [false, true] {
        let files = Files::new();
        let data = [
            ("edge_index", files.edges("a.npy", &EDGES)),
            ("num_nodes_list", files.npy("b.npy", &[], &[4i64])),
            ("num_edges_list", files.npy("c.npy", &[], &[4i64])),
            ("node_feat", files.npy("d.npy", &[2], &FEATURES)),
        ];
        files.npz("g/raw/data.npz", &data, deflate);
        let label = files.npy("l.npy", &[1], &[0.0f32, 2.0, f32::NAN, 1.0]);
        files.npz("g/raw/node-label.npz", &[("node_label", label)], deflate);
        splits(&files, "g/split/time");
        let made = ogb(&options(&files), &files.out()).unwrap();
        assert_same(&made.dataset, &expected(&files, false));
    }
}

#[test]
fn further_columns_are_kept() {
    let files = plain_text();
    files.gz("g/raw/node_year.csv.gz", "2001\n2002\n2003\n2004\n");
    files.gz("g/raw/edge_weight.csv.gz", "1\n2\n3\n0.5\n");
    files.gz("g/raw/edge_year.csv.gz", "7\n8\n9\n10\n");
    files.gz("g/raw/node-label.csv.gz", "0,1\n1,1\n0,0\n1,0\n");
    let made = ogb(&OgbOptions { add_inverse: true, ..options(&files) }, &files.out()).unwrap();
    let year = made.dataset.node_column(DEFAULT_NODE_TYPE, "node_year").unwrap().unwrap();
    assert_eq!(year.values::<i64>().unwrap()[..], [2001, 2002, 2003, 2004]);
    let column = |name: &str| made.dataset.edge_column(&Triple::plain(), name).unwrap().unwrap();
    let weights = [1.0, 2.0, 3.0, 0.5, 1.0, 2.0, 0.5];
    assert_eq!(column("weight").values::<f32>().unwrap()[..], weights);
    assert_eq!(column("time").values::<i64>().unwrap()[..], [7, 8, 9, 10, 7, 8, 10]);
    let Some(Labels::Multi { values, tasks }) = made.dataset.labels(DEFAULT_NODE_TYPE).unwrap()
    else {
        panic!()
    };
    assert_eq!((&values[..4], tasks), (&[0, 1, 1, 1][..], 2));
}

#[test]
fn weights_are_stored_in_the_type_asked_for() {
    let (text, binary) = (plain_text(), Files::new());
    text.gz("g/raw/edge_weight.csv.gz", "1\n2\n3\n70000\n");
    let half = OgbOptions { weight_type: WeightType::F16, ..options(&text) };
    let message = text.refusal(ogb(&half, &text.out()));
    let expected = "edge_weight.csv.gz: line 4: the weight 70000 is inf in f16";
    assert!(message.contains(expected), "{message}");
    let weight_type = WeightType::BF16;
    let made = ogb(&OgbOptions { weight_type, ..options(&text) }, &text.out()).unwrap();
    let weight = made.dataset.edge_column(&Triple::plain(), "weight").unwrap().unwrap();
    let expected = [1.0, 2.0, 3.0, 70_000.0].map(bf16::from_f32);
    assert_eq!(weight.values::<bf16>().unwrap()[..], expected);

    let members = [
        ("num_nodes_list", binary.npy("n.npy", &[], &[2i64])),
        ("num_edges_list", binary.npy("m.npy", &[], &[1i64])),
        ("edge_index", binary.edges("e.npy", &[(0, 1)])),
        ("edge_weight", binary.npy("w.npy", &[1], &[0.1f32])),
    ];
    binary.npz("g/raw/data.npz", &members, false);
    let half =
        OgbOptions { weight_type: WeightType::F16, split: Some("none".into()), ..options(&binary) };
    let made = ogb(&half, &binary.out()).unwrap();
    let weight = made.dataset.edge_column(&Triple::plain(), "weight").unwrap().unwrap();
    assert_eq!(weight.values::<f16>().unwrap()[..], [f16::from_f32(0.1)]);
}

/// A graph of two node types as text.
fn typed_text() -> Files {
    let files = Files::new();
    files.gz("g/raw/num-node-dict.csv.gz", "author,paper\n2,4\n");
    files.gz("g/raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,cites,paper\n");
    for (relation, edges) in [("author___writes___paper", "0,3\n1,0\n"), CITES] {
        files.gz(&format!("g/raw/relations/{relation}/edge.csv.gz"), edges);
        files.gz(&format!("g/raw/relations/{relation}/num-edge-list.csv.gz"), "2\n");
    }
    files.gz("g/raw/node-feat/paper/node-feat.csv.gz", "0.5,1\n2,3\n4,5\n6,7.5\n");
    files.gz("g/raw/node-label/paper/node-label.csv.gz", "0\n2\n-1\n1\n");
    files.gz("g/split/time/nodetype-has-split.csv.gz", "author,paper\nFalse,True\n");
    splits(&files, "g/split/time/paper");
    files
}

const CITES: (&str, &str) = ("paper___cites___paper", "0,1\n2,1\n");

/// The graph of two node types from tables.
fn expected_typed(files: &Files) -> Dataset {
    let papers =
        "id,label,split,x0,x1\n0,0,train,0.5,1\n1,2,valid,2,3\n2,-1,train,4,5\n3,1,test,6,7.5\n";
    let mut paper = NodeTable::new("paper", files.text("p.csv", papers));
    paper.features = vec!["x*".into()];
    let author = NodeTable::new("author", files.text("a.csv", "id\n0\n1\n"));
    let table = |triple: &str, name: &str, text: &str| {
        EdgeTable::new(triple.parse().unwrap(), files.text(name, text))
    };
    let options = TableOptions {
        nodes: vec![author, paper],
        edges: vec![
            table("author:writes:paper", "w.csv", "0,3\n1,0\n"),
            table("paper:cites:paper", "c.csv", CITES.1),
        ],
        ..Default::default()
    };
    tables(&options, &files.path("expected")).unwrap().dataset
}

/// Both hold the same; their columns may stand in another order.
fn assert_same_columns(a: &Dataset, b: &Dataset) {
    let sorted = |dataset: &Dataset| {
        let mut types = dataset.manifest().node_types.clone();
        types.iter_mut().for_each(|t| t.columns.sort_by(|a, b| a.name.cmp(&b.name)));
        types
    };
    assert_eq!(sorted(a), sorted(b));
    assert_eq!(a.manifest().edge_types, b.manifest().edge_types);
}

#[test]
fn typed_text_equals_the_tables() {
    let files = typed_text();
    let made = ogb(&options(&files), &files.out()).unwrap();
    assert_same_columns(&made.dataset, &expected_typed(&files));
    let inverse = OgbOptions { add_inverse: true, ..options(&files) };
    let message = ogb(&inverse, &files.path("out2")).unwrap_err().to_string();
    assert!(message.contains("author:writes:paper"), "{message}");
}

#[test]
fn typed_binary_equals_the_tables() {
    let files = Files::new();
    let nodes =
        [("author", files.npy("a.npy", &[], &[2i64])), ("paper", files.npy("b.npy", &[], &[4i64]))];
    files.npz("g/raw/num_nodes_dict.npz", &nodes, false);
    let edges = [
        ("author___writes___paper", files.edges("c.npy", &[(0, 3), (1, 0)])),
        ("paper___cites___paper", files.edges("d.npy", &[(0, 1), (2, 1)])),
    ];
    files.npz("g/raw/edge_index_dict.npz", &edges, true);
    let features = files.npy("e.npy", &[2], &FEATURES);
    files.npz("g/raw/node_feat_dict.npz", &[("paper", features)], false);
    let labels = files.npy("f.npy", &[1], &[0i64, 2, -1, 1]);
    files.npz("g/raw/node-label.npz", &[("paper", labels)], false);
    splits(&files, "g/split/time/paper");
    let made = ogb(&options(&files), &files.out()).unwrap();
    assert_same_columns(&made.dataset, &expected_typed(&files));
    let wrong = files.npy("h.npy", &[], &[3i64]);
    files.npz("g/raw/num_edges_dict.npz", &[("paper___cites___paper", wrong)], false);
    let message = ogb(&options(&files), &files.path("out2")).unwrap_err().to_string();
    assert!(message.contains("2 edges, 3 are stated"), "{message}");
}

#[test]
fn bad_plain_folders_are_named() {
    type Spoil = fn(&Files);
    let cases: [(Spoil, &[&str]); 11] = [
        (
            |f| std::fs::remove_file(f.path("g/raw/edge.csv.gz")).unwrap(),
            &["edge.csv.gz", "No such"],
        ),
        (|f| std::fs::remove_dir_all(f.path("g/raw")).unwrap(), &["raw", "no graph", "hint"]),
        (
            |f| drop(f.gz("g/raw/num-edge-list.csv.gz", "5\n")),
            &["edge.csv.gz: 4 edges, 5 are stated"],
        ),
        (
            |f| drop(f.gz("g/raw/num-node-list.csv.gz", "4\n4\n")),
            &["num-node-list.csv.gz", "2 graphs"],
        ),
        (
            |f| drop(f.gz("g/raw/edge.csv.gz", "0,1\n1,4\n")),
            &["edge.csv.gz: line 2: id 4 is not below"],
        ),
        (
            |f| drop(f.gz("g/raw/node-feat.csv.gz", "1,2\n3,\n5,6\n7,8\n")),
            &["node-feat.csv.gz: row 1, column 1: the feature is NaN"],
        ),
        (
            |f| drop(f.gz("g/raw/node-label.csv.gz", "1\n0\n")),
            &["node-label.csv.gz: has 2 rows, there are 4"],
        ),
        (
            |f| drop(f.gz("g/raw/edge_weight.csv.gz", "1\n2\n")),
            &["edge_weight.csv.gz: fewer rows than edges"],
        ),
        (
            |f| drop(f.gz("g/split/time/test.csv.gz", "3\n9\n")),
            &["test.csv.gz: line 2: id 9 is not below"],
        ),
        (
            |f| drop(f.text("g/split/time/split_dict.pt", "")),
            &["split_dict.pt: not a readable file of torch"],
        ),
        (|f| splits(f, "g/split/random"), &["several kinds", "random, time"]),
    ];
    for (spoil, parts) in cases {
        let files = plain_text();
        spoil(&files);
        let message = files.refusal(ogb(&options(&files), &files.out()));
        assert!(message.starts_with("importing ogb: "), "{message}");
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
    }
}

#[test]
fn splits_can_be_chosen_or_left_out() {
    let files = plain_text();
    splits(&files, "g/split/random");
    files.text("g/split/time/split_dict.pt", "");
    for (split, expected) in [("random", 3), ("none", 0)] {
        let options = OgbOptions { split: Some(split.into()), ..options(&files) };
        let dataset = ogb(&options, &files.fresh("out")).unwrap().dataset;
        assert_eq!(dataset.split_names(DEFAULT_NODE_TYPE).unwrap().len(), expected);
    }
    let options = OgbOptions { split: Some("tiem".into()), ..options(&files) };
    let message = ogb(&options, &files.path("out2")).unwrap_err().to_string();
    assert!(message.contains("there is: random, time"), "{message}");
}

#[test]
fn bad_typed_folders_are_named() {
    let files = typed_text();
    files.gz("g/raw/triplet-type-list.csv.gz", "paper,cites,paper\npaper,in,venue\n");
    let message = files.refusal(ogb(&options(&files), &files.out()));
    assert!(
        message.contains("triplet-type-list.csv.gz: line 2: unknown node type 'venue'"),
        "{message}"
    );
    let files = typed_text();
    splits(&files, "g/split/time/venue");
    let message = files.refusal(ogb(&options(&files), &files.out()));
    assert!(message.contains("venue"), "{message}");
}
