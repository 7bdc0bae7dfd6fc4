//! Numpy arrays with types become datasets, and bad ones are named.

use std::path::PathBuf;

use crate::common::{Files, sorted_edges};
use gnarl_common::Kind;
use gnarl_graph::import::{
    EdgeTable, HeteroNpyOptions, NodeTable, TableOptions, heterogeneous_npy, tables,
};
use gnarl_graph::{Features, Labels, Triple};

fn triple(name: &str) -> Triple {
    name.parse().unwrap()
}

/// Three actors in two movies, one of which has a director.
fn movies(files: &Files) -> HeteroNpyOptions {
    let acts = files.edges("acts.npy", &[(0, 0), (1, 0), (1, 1), (2, 1)]);
    let directs = files.edges("directs.npy", &[(0, 1)]);
    HeteroNpyOptions {
        edges: vec![
            (triple("actor:acted_in:movie"), acts),
            (triple("director:directed_in:movie"), directs),
        ],
        memory: 1 << 30,
        ..HeteroNpyOptions::default()
    }
}

#[test]
fn types_are_counted_each_by_itself() {
    let files = Files::new();
    let features = files.npy("f.npy", &[2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let options = HeteroNpyOptions {
        features: vec![("movie".into(), features)],
        labels: vec![("movie".into(), files.npy("l.npy", &[], &[2i64, -1, 0]))],
        splits: vec![("movie".into(), "train".into(), files.npy("s.npy", &[], &[2i64]))],
        num_nodes: vec![("director".into(), 4)],
        ..movies(&files)
    };
    let dataset = heterogeneous_npy(&options, &files.out()).unwrap().dataset;
    let counts: Vec<_> =
        dataset.manifest().node_types.iter().map(|t| (t.name.as_str(), t.count)).collect();
    assert_eq!(counts, [("actor", 3), ("movie", 3), ("director", 4)]);
    let acts = sorted_edges(&dataset, &triple("actor:acted_in:movie"));
    assert_eq!(acts, [(0, 0), (1, 0), (1, 1), (2, 1)]);
    let Some(Labels::Single { classes, count: 3 }) = dataset.labels("movie").unwrap() else {
        panic!("labels of movies")
    };
    assert_eq!(classes[..], [2, -1, 0]);
    assert_eq!(dataset.split("movie", "train").unwrap().unwrap()[..], [2]);
    let Some(Features::Dense(rows)) = dataset.features("movie").unwrap() else {
        panic!("features of movies")
    };
    assert_eq!(rows.values::<f32>().unwrap()[..], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(dataset.features("actor").unwrap().is_none());
}

#[test]
fn reverses_are_types_of_their_own() {
    let files = Files::new();
    let weights = files.npy("w.npy", &[], &[1.0f32, 2.0, 3.0, 4.0]);
    let options = HeteroNpyOptions {
        weights: vec![(triple("actor:acted_in:movie"), weights)],
        reverse: true,
        ..movies(&files)
    };
    let dataset = heterogeneous_npy(&options, &files.fresh("out")).unwrap().dataset;
    assert_eq!(dataset.manifest().edge_types.len(), 4);
    let reversed = triple("movie:rev_acted_in:actor");
    assert_eq!(sorted_edges(&dataset, &reversed), [(0, 0), (0, 1), (1, 1), (1, 2)]);
    let weights = dataset.edge_column(&reversed, "weight").unwrap().unwrap();
    assert_eq!(weights.values::<f32>().unwrap()[..], [1.0, 2.0, 3.0, 4.0]);

    let mut table = TableOptions {
        edges: vec![EdgeTable::new(
            triple("a:likes:b"),
            files.text("e.csv", "src,dst,weight\nx,1,0.5\ny,1,2\n"),
        )],
        reverse: true,
        ..TableOptions::default()
    };
    let dataset = tables(&table, &files.fresh("out")).unwrap().dataset;
    let reversed = triple("b:rev_likes:a");
    assert_eq!(sorted_edges(&dataset, &reversed), [(0, 0), (0, 1)]);
    assert!(dataset.edge_column(&reversed, "weight").unwrap().is_some());
    table.symmetrize = true;
    let error = tables(&table, &files.path("again")).err().unwrap();
    assert_eq!(error.kind(), Kind::Usage);
}

/// Heads, relations and tails, over three relations.
const TRIPLES: [i64; 12] = [0, 1, 2, 2, 0, 1, 1, 1, 0, 3, 2, 3];

fn graph(files: &Files) -> HeteroNpyOptions {
    HeteroNpyOptions {
        triples: Some(("entity".into(), files.npy("t.npy", &[3], &TRIPLES))),
        memory: 1 << 30,
        ..HeteroNpyOptions::default()
    }
}

#[test]
fn every_relation_of_triples_is_an_edge_type() {
    let files = Files::new();
    let ids = |name: &str, ids: &[i64]| files.npy(name, &[], ids);
    let split = |name: &str, path: PathBuf| ("entity".to_string(), name.to_string(), path);
    let names = "<http://a.org/x#knows>\n<http://b.org/knows>\nhttp://c.org/lives in/\nunused\n";
    let options = HeteroNpyOptions {
        relations: Some(files.text("names.txt", names)),
        splits: vec![
            split("train", ids("train.npy", &[3, 0])),
            split("test", ids("test.npy", &[1])),
        ],
        split_labels: vec![
            split("train", ids("train-labels.npy", &[1, 0])),
            split("test", ids("test-labels.npy", &[2])),
        ],
        reverse: true,
        ..graph(&files)
    };
    let dataset = heterogeneous_npy(&options, &files.out()).unwrap().dataset;
    let types: Vec<String> =
        dataset.manifest().edge_types.iter().map(|t| t.triple.to_string()).collect();
    assert_eq!(
        types,
        [
            "entity:knows:entity",
            "entity:rev_knows:entity",
            "entity:knows_1:entity",
            "entity:rev_knows_1:entity",
            "entity:lives_in:entity",
            "entity:rev_lives_in:entity",
        ]
    );
    let of = |name: &str| sorted_edges(&dataset, &triple(name));
    assert_eq!(of("entity:knows_1:entity"), [(0, 2), (1, 0)]);
    assert_eq!(of("entity:rev_knows_1:entity"), [(0, 1), (2, 0)]);
    let Some(Labels::Single { classes, count: 3 }) = dataset.labels("entity").unwrap() else {
        panic!("labels of entities")
    };
    assert_eq!(classes[..], [0, 2, -1, 1]);
    assert_eq!(dataset.split("entity", "train").unwrap().unwrap()[..], [0, 3]);
}

#[test]
fn many_relations_are_written_in_several_passes() {
    let files = Files::new();
    let rows: Vec<i64> = (0..1000i64).flat_map(|i| [i % 50, i % 150, (7 * i) % 50]).collect();
    let options = HeteroNpyOptions {
        triples: Some(("e".into(), files.npy("t.npy", &[3], &rows))),
        memory: 1 << 30,
        ..HeteroNpyOptions::default()
    };
    let dataset = heterogeneous_npy(&options, &files.out()).unwrap().dataset;
    assert_eq!(dataset.manifest().edge_types.len(), 150);
    for relation in [0i64, 63, 64, 149] {
        let expected = (0..1000i64).filter(|i| i % 150 == relation);
        let mut expected: Vec<(u64, u64)> =
            expected.map(|i| ((i % 50) as u64, ((7 * i) % 50) as u64)).collect();
        expected.sort_unstable();
        assert_eq!(sorted_edges(&dataset, &triple(&format!("e:r{relation}:e"))), expected);
    }
}

#[test]
fn bad_arrays_are_named() {
    let files = Files::new();
    let refuse = |options: HeteroNpyOptions, parts: &[&str]| {
        let message = files.refusal(heterogeneous_npy(&options, &files.out()));
        parts.iter().for_each(|part| assert!(message.contains(part), "no '{part}': {message}"));
    };
    let vector = |name: &str, values: &[i64]| files.npy(name, &[], values);
    let array = || vector("x.npy", &[0, 1]);
    let of = |name: &str| vec![(name.to_string(), array())];
    refuse(
        HeteroNpyOptions { labels: of("film"), ..movies(&files) },
        &["--labels", "unknown node type 'film'"],
    );
    let weights = vec![(triple("a:b:c"), array())];
    refuse(
        HeteroNpyOptions { weights, ..movies(&files) },
        &["--weights", "unknown edge type 'a:b:c'"],
    );
    let twice = vec![("movie".to_string(), array()), ("movie".to_string(), array())];
    refuse(HeteroNpyOptions { labels: twice, ..movies(&files) }, &["duplicate node type 'movie'"]);
    let num_nodes = vec![("movie".to_string(), 1)];
    refuse(
        HeteroNpyOptions { num_nodes, ..movies(&files) },
        &["acts.npy: row 2: destination id 1", "number of nodes, 1"],
    );
    let labels = vec![("movie".to_string(), vector("y.npy", &[0]))];
    let num_nodes = vec![("movie".to_string(), 2)];
    refuse(
        HeteroNpyOptions { labels, num_nodes, ..movies(&files) },
        &["y.npy: has 1 rows, --num-nodes is 2"],
    );
    let mut same = movies(&files);
    same.edges.push(same.edges[0].clone());
    refuse(same, &["duplicate edge type actor:acted_in:movie"]);
    refuse(HeteroNpyOptions::default(), &["missing edges"]);

    let triples = |rows: &[i64]| Some(("e".to_string(), files.npy("g.npy", &[3], rows)));
    let base = || HeteroNpyOptions { memory: 1 << 30, ..HeteroNpyOptions::default() };
    let gaps = triples(&[0, 0, 1, 1, 2, 0]);
    refuse(HeteroNpyOptions { triples: gaps, ..base() }, &["relation 1 has no triple", "g.npy"]);
    let pairs = Some(("e".to_string(), files.npy("p.npy", &[2], &[0i64, 1])));
    refuse(HeteroNpyOptions { triples: pairs, ..base() }, &["p.npy: has shape [1, 2]"]);
    let relations = Some(files.text("names.txt", "one\n"));
    let unnamed = HeteroNpyOptions { triples: triples(&[0, 0, 1, 1, 1, 0]), relations, ..base() };
    refuse(unnamed, &["row 1: relation 1 has no name"]);
    let split = vec![("entity".to_string(), "train".to_string(), vector("s.npy", &[0, 1, 2]))];
    let labels = vec![("entity".to_string(), "train".to_string(), vector("z.npy", &[0, 1]))];
    let short = HeteroNpyOptions { splits: split, split_labels: labels.clone(), ..graph(&files) };
    refuse(short, &["z.npy: 2 labels for the 3 nodes of split train"]);
    refuse(
        HeteroNpyOptions { split_labels: labels, ..graph(&files) },
        &["'entity' has no split 'train'"],
    );
}

#[test]
fn tables_name_unknown_ends_and_columns_there_twice() {
    let files = Files::new();
    let options = |edges: &str| TableOptions {
        nodes: vec![
            NodeTable::new("a", files.text("a.csv", "id,x\nann,1\nbob,2\n")),
            NodeTable::new("b", files.text("b.csv", "id\nbook\n")),
        ],
        edges: vec![EdgeTable::new(triple("a:reads:b"), files.text("e.csv", edges))],
        ..TableOptions::default()
    };
    let refuse = |options: &TableOptions| files.refusal(tables(options, &files.out()));
    let message = refuse(&options("src,dst\nann,book\ncid,book\n"));
    assert!(message.contains("e.csv: line 3") && message.contains("'cid'"), "{message}");
    let message = refuse(&options("src,dst,dst\nann,book,book\n"));
    assert!(message.contains("e.csv: column 'dst' is there twice"), "{message}");
    let mut unknown = options("src,dst\nann,book\n");
    unknown.edges[0].triple = triple("a:reads:c");
    let message = refuse(&unknown);
    assert!(message.contains("unknown node type 'c'"), "{message}");
}
