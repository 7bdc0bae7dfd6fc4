//! CSV tables and triples become the same datasets as arrays do, and bad lines are named.

use crate::common::{Files, assert_same, counts, edges, sorted_edges};
use gnarl_graph::import::{
    EdgeTable, IdKind, NodeTable, NpyOptions, TableOptions, TriplesOptions, WeightType, npy,
    tables, triples,
};
use gnarl_graph::{DEFAULT_NODE_TYPE, Labels, Triple};
use half::f16;

#[test]
fn integer_tables_equal_the_arrays() {
    let files = Files::new();
    let list = [(0, 1), (1, 2), (2, 2), (0, 1), (3, 0)];
    let array = npy(&NpyOptions::new(files.edges("e.npy", &list)), &files.path("npy")).unwrap();
    let text = "0,1\n1,2\n2,2\n0,1\n3,0";
    for (name, content) in [
        ("a.csv", text.to_string()),
        ("b.csv", format!("src,dst\n{text}\n")),
        ("c.tsv", format!("# comment\n\n{}\r\n", text.replace(',', "\t").replace('\n', "\r\n"))),
        ("d.csv", text.replace("0,1", "\"0\",1")),
    ] {
        let made =
            tables(&TableOptions::plain(files.text(name, &content)), &files.fresh("out")).unwrap();
        assert_same(&made.dataset, &array.dataset);
        assert_eq!(made.report, array.report, "{name}");
    }
    let made =
        tables(&TableOptions::plain(files.gz("e.csv.gz", text)), &files.fresh("out")).unwrap();
    assert_same(&made.dataset, &array.dataset);
}

#[test]
fn sparse_integer_ids_are_mapped_and_reported() {
    let files = Files::new();
    for (text, expected) in [
        ("7,100\n100,5\n", vec![5i64, 7, 100]),
        ("-7,9000000000000\n9000000000000,5\n", vec![-7, 5, 9_000_000_000_000]),
    ] {
        let options = TableOptions::plain(files.text("e.csv", text));
        let made = tables(&options, &files.fresh("out")).unwrap();
        assert_eq!(made.report.renumbered, [DEFAULT_NODE_TYPE]);
        let column = made.dataset.node_column(DEFAULT_NODE_TYPE, "user_id").unwrap().unwrap();
        let user = column.values::<i64>().unwrap();
        assert_eq!(user[..], expected);
        let back: Vec<String> = edges(&made.dataset)
            .iter()
            .map(|&(s, d)| format!("{},{}\n", user[s as usize], user[d as usize]))
            .collect();
        assert_eq!(back.concat(), text);
    }
}

#[test]
fn string_ids_round_trip() {
    let files = Files::new();
    let options = TableOptions::plain(files.text("e.csv", "src,dst\nann,bob\n\"bob, jr\",ann\n"));
    let dataset = tables(&options, &files.out()).unwrap().dataset;
    assert_eq!(edges(&dataset), [(0, 1), (2, 0)]);
    let bytes = dataset.node_column(DEFAULT_NODE_TYPE, "user_id.bytes").unwrap().unwrap();
    assert_eq!(&bytes.values::<u8>().unwrap()[..], b"annbobbob, jr");
    let offsets = dataset.node_column(DEFAULT_NODE_TYPE, "user_id.offsets").unwrap().unwrap();
    assert_eq!(offsets.values::<u64>().unwrap()[..], [0, 3, 6, 13]);
}

#[test]
fn typed_tables_carry_features_labels_splits_and_weights() {
    let files = Files::new();
    let papers = "id,label,split,x0,x1\np1,0,train,1,2\np2,1,test,3,4\np3,,,5,6\n";
    let mut paper = NodeTable::new("paper", files.text("papers.csv", papers));
    paper.features = vec!["x*".into()];
    let author = NodeTable::new("author", files.text("authors.csv", "id\n10\n20\n"));
    let triple: Triple = "author:writes:paper".parse().unwrap();
    let writes = files.text("w.csv", "src,dst,weight\n20,p1,0.5\n10,p3,2\n");
    let options = TableOptions {
        nodes: vec![author, paper],
        edges: vec![EdgeTable::new(triple.clone(), writes)],
        ..Default::default()
    };
    let made = tables(&options, &files.out()).unwrap();
    assert_eq!(counts(&made.report), [5, 2, 1, 0, 0]);
    assert_eq!(sorted_edges(&made.dataset, &triple), [(0, 2), (1, 0)]);
    let column = |name: &str| made.dataset.node_column("paper", name).unwrap().unwrap();
    assert_eq!(column("features").values::<f32>().unwrap()[2..], [3.0, 4.0, 5.0, 6.0]);
    assert_eq!(column("label").values::<i32>().unwrap()[..], [0, 1, -1]);
    assert_eq!(made.dataset.split("paper", "test").unwrap().unwrap()[..], [1]);
    let weight = made.dataset.edge_column(&triple, "weight").unwrap().unwrap();
    assert_eq!(weight.values::<f32>().unwrap()[..], [0.5, 2.0]);
}

#[test]
fn labels_may_be_names() {
    let files = Files::new();
    let import = |labels: [&str; 4], num_classes| {
        let rows = labels.iter().enumerate().map(|(id, label)| format!("{id},{label}\n"));
        let text = format!("id,label\n{}", rows.collect::<String>());
        let mut nodes = NodeTable::new("paper", files.text("papers.csv", &text));
        nodes.num_classes = num_classes;
        let triple: Triple = "paper:cites:paper".parse().unwrap();
        let edges = EdgeTable::new(triple, files.text("cites.csv", "src,dst\n0,1\n"));
        let options = TableOptions { nodes: vec![nodes], edges: vec![edges], ..Default::default() };
        tables(&options, &files.out())
    };
    let made = import(["physics", "art", "", "physics"], None).unwrap();
    let Some(Labels::Single { classes, count: 2 }) = made.dataset.labels("paper").unwrap() else {
        panic!("two classes")
    };
    assert_eq!(classes[..], [0, 1, -1, 0]);
    let column = |name: &str| made.dataset.node_column("paper", name).unwrap().unwrap();
    assert_eq!(&column("class_name.bytes").values::<u8>().unwrap()[..], b"physicsart");
    assert_eq!(column("class_name.offsets").values::<u64>().unwrap()[..], [0, 7, 10]);

    std::fs::remove_dir_all(files.out()).unwrap();
    let message = files.refusal(import(["physics", "art", "law", ""], Some(2)));
    assert!(message.contains("papers.csv: line 4: label 'law'"), "{message}");
    let message = files.refusal(import(["1", "0", "law", ""], None));
    assert!(message.contains("line 4") && message.contains("'law' is not a number"), "{message}");
}

#[test]
fn weights_of_tables_are_stored_in_the_type_asked_for() {
    let files = Files::new();
    let options = |weight: &str| TableOptions {
        weight_type: WeightType::F16,
        ..TableOptions::plain(
            files.text("w.csv", &format!("src,dst,weight\n0,1,0.1\n1,2,{weight}\n")),
        )
    };
    let message = files.refusal(tables(&options("65520"), &files.out()));
    let expected = "w.csv: line 3: column 'weight': the weight 65520 is inf in f16";
    assert!(message.contains(expected) && message.contains("--weight-type"), "{message}");
    let made = tables(&options("65504"), &files.out()).unwrap();
    let weight = made.dataset.edge_column(&Triple::plain(), "weight").unwrap().unwrap();
    assert_eq!(weight.values::<f16>().unwrap()[..], [f16::from_f32(0.1), f16::MAX]);
}

#[test]
fn bad_tables_are_named_by_line() {
    let files = Files::new();
    let plain = |name: &str, text: &str| TableOptions::plain(files.text(name, text));
    let unicode = TableOptions {
        ids: IdKind::String,
        ..TableOptions::plain(files.bytes("u.csv", b"a,b\nc,\xff\n"))
    };
    let stated = |name: &str, text: &str| TableOptions {
        num_nodes: vec![(DEFAULT_NODE_TYPE.into(), 3)],
        ..plain(name, text)
    };
    let nodes =
        |name: &str, text: &str| plain("ok.csv", "0,1\n").with_nodes(files.text(name, text));
    let mut features = nodes("x.csv", "id,x\n0,1\n1,\n");
    features.nodes[0].features = vec!["x".into()];
    let unknown_type = TableOptions {
        nodes: vec![NodeTable::new("a", files.text("n.csv", "id\n0\n"))],
        edges: vec![EdgeTable::new("a:to:b".parse().unwrap(), files.text("t.csv", "0,0\n"))],
        ..Default::default()
    };
    let many: String = (0..100_000).map(|i| format!("node{i},node{}\n", i + 1)).collect();
    let cases: Vec<(TableOptions, &[&str])> = vec![
        (plain("r.csv", "0,1\n1,2,3\n"), &["r.csv: line 2", "3 fields"]),
        (plain("i.csv", "0,1\n1,x\n"), &["i.csv: line 2", "'x' is not an integer"]),
        (unicode, &["u.csv: line 2", "UTF-8"]),
        (stated("o.csv", "0,1\n0,3\n"), &["o.csv: line 2", "id 3", "3"]),
        (stated("m.csv", "0,1\n-1,2\n"), &["m.csv: line 2", "-1 is negative"]),
        (plain("e.csv", ""), &["e.csv", "empty"]),
        (plain("h.csv", "src,dst\n"), &["h.csv", "empty"]),
        (TableOptions::plain(files.path("none.csv")), &["none.csv", "No such file"]),
        (features, &["x.csv: line 3: column 'x': the feature is missing", "--impute"]),
        (nodes("d.csv", "id\na\na\n"), &["d.csv: line 3", "'a' appears twice"]),
        (nodes("k.csv", "id\n5\n1\n"), &["ok.csv: line 1", "no id '0'"]),
        (unknown_type, &["unknown node type 'b'"]),
        (TableOptions { memory: 1 << 20, ..plain("big.csv", &many) }, &["--memory"]),
    ];
    for (options, parts) in cases {
        let message = files.refusal(tables(&options, &files.out()));
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}' in: {message}"));
    }
}

#[test]
fn triples_become_one_edge_type_with_relations() {
    let files = Files::new();
    let options = TriplesOptions {
        train: files.text("train.txt", "a\tlikes\tb\nb\thates\tc\n"),
        valid: Some(files.text("valid.txt", "c\tlikes\ta\n")),
        test: None,
        num_entities: None,
        entities: None,
        relations: None,
        delimiter: None,
        memory: 1 << 26,
    };
    let made = triples(&options, &files.out()).unwrap();
    assert_eq!(edges(&made.dataset), [(0, 1), (1, 2), (2, 0)]);
    let triple: Triple = "entity:to:entity".parse().unwrap();
    let column = |name: &str| made.dataset.edge_column(&triple, name).unwrap().unwrap();
    assert_eq!(column("relation").values::<u32>().unwrap()[..], [0, 1, 0]);
    assert_eq!(column("split").values::<u8>().unwrap()[..], [0, 0, 1]);
    assert_eq!(&column("relation_name.bytes").values::<u8>().unwrap()[..], b"likeshates");
    let bad = TriplesOptions { valid: Some(files.text("bad.txt", "a\tb\n")), ..options };
    let message = triples(&bad, &files.path("out2")).unwrap_err().to_string();
    assert!(message.contains("bad.txt") && message.contains("3 columns"), "{message}");
}

#[test]
fn triples_of_arrays_are_those_of_text() {
    let files = Files::new();
    let array = |name: &str, rows: &[[i64; 3]], width: u64| {
        let mut writer = gnarl_common::npy::NpyWriter::create(files.path(name), &[width]).unwrap();
        writer.push(&rows.concat()).unwrap();
        writer.finish().unwrap();
        files.path(name)
    };
    let options = TriplesOptions {
        train: array("train.npy", &[[0, 1, 3], [3, 0, 2]], 3),
        valid: Some(files.text("valid.txt", "2\t1\t0\n")),
        test: Some(array("test.npy", &[[1, 0, 0]], 3)),
        num_entities: Some(5),
        entities: None,
        relations: None,
        delimiter: None,
        memory: 1 << 26,
    };
    let made = triples(&options, &files.out()).unwrap();
    assert_eq!(edges(&made.dataset), [(0, 3), (3, 2), (2, 0), (1, 0)]);
    let triple: Triple = "entity:to:entity".parse().unwrap();
    let column = |name: &str| made.dataset.edge_column(&triple, name).unwrap().unwrap();
    assert_eq!(column("relation").values::<u32>().unwrap()[..], [1, 0, 1, 0]);
    assert_eq!(column("split").values::<u8>().unwrap()[..], [0, 0, 1, 2]);
    let fails = |test: std::path::PathBuf| {
        let options = TriplesOptions { test: Some(test), ..options.clone() };
        triples(&options, &files.path("bad")).unwrap_err().to_string()
    };
    let error = fails(array("far.npy", &[[0, 0, 1], [0, 0, 9]], 3));
    assert!(error.contains("far.npy: row 1") && error.contains('9'), "{error}");
    let error = fails(array("negative.npy", &[[0, 0, 1], [0, -4, 2]], 3));
    assert!(error.contains("row 1: id -4 is negative"), "{error}");
    let error = fails(array("wide.npy", &[[0, 0, 1], [0, 1, 2]], 2));
    assert!(error.contains("2 columns, triples have 3"), "{error}");
}

#[test]
fn integers_of_triples_have_the_names_in_their_files() {
    let files = Files::new();
    let options = TriplesOptions {
        relations: Some(files.text("r.txt", "likes\nhates\nknows\n")),
        entities: Some(files.text("e.txt", "ann\nbob\ncid\ndora\n")),
        ..TriplesOptions::new(files.text("t.txt", "0\t2\t1\n2\t0\t0\n"))
    };
    let made = triples(&options, &files.out()).unwrap();
    assert_eq!(edges(&made.dataset), [(0, 1), (2, 0)]);
    assert!(made.report.renumbered.is_empty() && made.report.nodes == 4);
    let triple: Triple = "entity:to:entity".parse().unwrap();
    let column = |name: &str| made.dataset.edge_column(&triple, name).unwrap().unwrap();
    // Numbered in order of appearance, as strings are, so that there are no gaps.
    assert_eq!(column("relation").values::<u32>().unwrap()[..], [0, 1]);
    assert_eq!(&column("relation_name.bytes").values::<u8>().unwrap()[..], b"knowslikes");
    let names = made.dataset.node_column("entity", "user_id.bytes").unwrap().unwrap();
    assert_eq!(&names.values::<u8>().unwrap()[..], b"annbobciddora");
}

#[test]
fn numbers_of_nodes_come_from_a_column() {
    let files = Files::new();
    let import = |cells: [&str; 4]| {
        let rows = cells.iter().enumerate().map(|(id, cell)| format!("{id},{id}.5,{cell}\n"));
        let text = format!("id,x,size\n{}", rows.collect::<String>());
        let mut nodes = NodeTable::new("paper", files.text("papers.csv", &text));
        nodes.value = Some("size".into());
        nodes.features = vec!["x".into()];
        nodes.shares = Some([1.0, 0.0, 0.0]);
        let triple: Triple = "paper:cites:paper".parse().unwrap();
        let edges = EdgeTable::new(triple, files.text("cites.csv", "src,dst\n0,1\n"));
        let options = TableOptions { nodes: vec![nodes], edges: vec![edges], ..Default::default() };
        tables(&options, &files.out())
    };
    let made = import(["1.5", "", "-2", "0"]).unwrap();
    let Some(Labels::Values { values }) = made.dataset.values("paper").unwrap() else { panic!() };
    assert!(values[..1] == [1.5] && values[1].is_nan() && values[2..] == [-2.0, 0.0]);
    let column = made.dataset.node_column("paper", "features").unwrap().unwrap();
    assert_eq!(column.values::<f32>().unwrap()[..], [0.5, 1.5, 2.5, 3.5]);
    // Shares are of the nodes that have a number.
    assert_eq!(made.dataset.split("paper", "train").unwrap().unwrap()[..], [0, 2, 3]);

    std::fs::remove_dir_all(files.out()).unwrap();
    let message = files.refusal(import(["1.5", "2", "much", "0"]));
    assert!(message.contains("line 4") && message.contains("'much'"), "{message}");
}
