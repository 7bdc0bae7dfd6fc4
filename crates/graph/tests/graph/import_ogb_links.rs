//! OGB folders whose splits torch saved: edges become one edge type with a column `split`.

use std::path::PathBuf;

use crate::common::{Files, edges};
use gnarl_graph::import::{OgbOptions, ogb};
use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, Triple};

fn fixture(name: &str) -> Vec<u8> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/torch");
    std::fs::read(dir.join(name)).unwrap()
}

/// The splits of a fixture beside a homogeneous graph of 4 nodes and so many edges.
fn plain(splits: &str, graph: &str) -> Files {
    let files = Files::new();
    files.gz("g/raw/edge.csv.gz", graph);
    files.gz("g/raw/num-node-list.csv.gz", "4\n");
    files.gz("g/raw/num-edge-list.csv.gz", &format!("{}\n", graph.lines().count()));
    files.gz("g/raw/node-feat.csv.gz", "0.5\n2\n4\n6\n");
    copy(&files, splits);
    files
}

fn copy(files: &Files, splits: &str) {
    for name in ["train", "valid", "test"] {
        files.bytes(&format!("g/split/time/{name}.pt"), &fixture(&format!("{splits}/{name}.pt")));
    }
}

/// As ogbl-biokg: two node types, of 2 nodes each.
fn typed() -> Files {
    let files = Files::new();
    files.gz("g/raw/num-node-dict.csv.gz", "disease,drug\n2,2\n");
    files.gz("g/raw/triplet-type-list.csv.gz", "drug,treats,disease\ndrug,like,drug\n");
    for relation in ["drug___treats___disease", "drug___like___drug"] {
        files.gz(&format!("g/raw/relations/{relation}/edge.csv.gz"), "0,1\n");
        files.gz(&format!("g/raw/relations/{relation}/num-edge-list.csv.gz"), "1\n");
    }
    copy(&files, "biokg");
    files
}

const COLLAB: &str = "0,1\n1,2\n2,3\n";

fn import(files: &Files) -> gnarl_common::Result<Dataset> {
    ogb(&OgbOptions::new(files.path("g")), &files.out()).map(|made| made.dataset)
}

/// The values of an edge column.
fn column<T: gnarl_common::Element>(dataset: &Dataset, name: &str) -> Vec<T> {
    let triple = &dataset.manifest().edge_types[0].triple;
    dataset.edge_column(triple, name).unwrap().unwrap().values::<T>().unwrap().to_vec()
}

#[test]
fn pairs_are_told_apart_by_their_split() {
    let files = plain("collab", COLLAB);
    let dataset = import(&files).unwrap();
    let (node, edge) = dataset.plain().unwrap();
    assert_eq!((node.name.as_str(), node.count), (DEFAULT_NODE_TYPE, 4));
    assert_eq!((&edge.triple, edge.count), (&Triple::plain(), 6));
    assert_eq!(edges(&dataset), [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]);
    assert_eq!(column::<u8>(&dataset, "split"), [0, 0, 0, 1, 2, 2]);
    assert_eq!(column::<f32>(&dataset, "weight"), [1.0, 2.0, 1.0, 1.0, 3.0, 1.0]);
    assert_eq!(column::<i64>(&dataset, "time"), [2010, 2011, 2012, 2018, 2019, 2019]);
    assert!(dataset.features(DEFAULT_NODE_TYPE).unwrap().is_some());
    let files = plain("citation", "0,1\n1,2\n");
    let dataset = import(&files).unwrap();
    assert_eq!(edges(&dataset), [(0, 1), (1, 2), (2, 0), (2, 3)]);
    assert_eq!(column::<u8>(&dataset, "split"), [0, 0, 1, 2]);
    // One file for all splits.
    let files = plain("collab", "0,1\n");
    files.bytes("g/split/time/split_dict.pt", &fixture("edges.pt"));
    let dataset = import(&files).unwrap();
    assert_eq!(edges(&dataset), [(0, 1), (1, 2), (3, 0)]);
}

#[test]
fn triples_are_edges_of_entities() {
    let files = plain("wikikg", COLLAB);
    let dataset = import(&files).unwrap();
    let edge = dataset.plain().unwrap().1;
    assert_eq!(edge.triple.to_string(), "entity:to:entity");
    assert_eq!(edges(&dataset), [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)]);
    assert_eq!(column::<u32>(&dataset, "relation"), [0, 1, 0, 1, 0]);
    assert_eq!(column::<u8>(&dataset, "split"), [0, 0, 0, 1, 2]);
    assert!(dataset.features("entity").unwrap().is_some());
}

#[test]
fn entities_of_several_types_are_numbered_one_type_after_the_other() {
    let files = typed();
    let made = ogb(&OgbOptions::new(files.path("g")), &files.out()).unwrap();
    assert_eq!(made.report.renumbered, ["entity"]);
    let dataset = made.dataset;
    assert_eq!(edges(&dataset), [(3, 0), (2, 3), (1, 3), (3, 2)]);
    assert_eq!(column::<u32>(&dataset, "relation"), [0, 1, 0, 1]);
    let bytes = dataset.node_column("entity", "user_id.bytes").unwrap().unwrap();
    let names = String::from_utf8(bytes.values::<u8>().unwrap().to_vec()).unwrap();
    assert_eq!(names, "disease:0disease:1drug:0drug:1");
    let offsets = dataset.node_column("entity", "user_id.offsets").unwrap().unwrap();
    assert_eq!(offsets.values::<u64>().unwrap()[..], [0, 9, 18, 24, 30]);
}

#[test]
fn bad_splits_of_edges_are_named() {
    for (name, part) in [
        ("end", "valid.pt[edge]: row 0: id 4 is not below the number of _N nodes, 4"),
        ("negative_end", "valid.pt[edge]: row 0: id -1 is negative"),
        ("weights", "valid.pt[weight]: has shape [2], one value for each of 1 edges"),
        ("no_year", "valid.pt: has no 'year'\nhint: it has: edge, weight"),
        ("wide", "valid.pt[edge_neg]: has shape [1, 3], pairs without an edge are [N, 2]"),
        ("shape", "valid.pt[edge]: has shape [1, 3], edges are [N, 2]"),
        ("float", "valid.pt[edge]: holds floating-point numbers"),
    ] {
        refuse(plain("collab", COLLAB), name, part);
    }
    for (name, part) in [
        ("gap", "train.pt[relation]: relation 2 occurs in no split, though 3 does"),
        ("candidates", "valid.pt[head_neg]: has shape [2, 2], a row of candidates for each of 1"),
        ("flat", "valid.pt[tail_neg]: has shape [1], a row of candidates"),
        ("tails", "valid.pt[tail]: has shape [2], one value for each of 1 edges"),
    ] {
        refuse(plain("wikikg", COLLAB), name, part);
    }
    for (name, part) in [
        ("type", "valid.pt[head]: row 0: unknown node type 'gene'\nhint: there is: disease, drug"),
        ("types", "valid.pt[head_type]: has 2 types for 1 edges"),
        ("beyond", "valid.pt[head]: row 0: id 2 is not below the number of disease nodes, 2"),
    ] {
        refuse(typed(), name, part);
    }
}

fn refuse(files: Files, name: &str, part: &str) {
    files.bytes("g/split/time/valid.pt", &fixture(&format!("bad/{name}.pt")));
    let message = files.refusal(import(&files));
    assert!(message.starts_with("importing ogb: "), "{message}");
    assert!(message.contains(part), "no '{part}' in: {message}");
}

#[test]
fn folders_that_do_not_fit_their_splits_are_refused() {
    let files = plain("collab", "0,1\n1,2\n");
    let message = files.refusal(import(&files));
    assert!(message.contains("train.pt: has 3 edges, the graph in raw/ has 2"), "{message}");

    let files = plain("collab", COLLAB);
    let inverse = OgbOptions { add_inverse: true, ..OgbOptions::new(files.path("g")) };
    let message = files.refusal(ogb(&inverse, &files.out()));
    assert!(message.contains("leave --add-inverse out"), "{message}");

    std::fs::remove_file(files.path("g/split/time/test.pt")).unwrap();
    let message = files.refusal(import(&files));
    assert!(message.contains("test.pt: No such file"), "{message}");
    files.bytes("g/split/time/train.pt", &fixture("evil.pt"));
    let message = files.refusal(import(&files));
    assert!(message.contains("train.pt: holds posix.system, which is not a tensor"), "{message}");
    files.bytes("g/split/time/split_dict.pt", &fixture("wikikg/train.pt"));
    let message = files.refusal(import(&files));
    assert!(message.contains("split_dict.pt: has no 'train'"), "{message}");

    let files = typed();
    copy(&files, "wikikg");
    let message = files.refusal(import(&files));
    assert!(message.contains("train.pt: has no 'head_type'"), "{message}");
}

#[test]
fn splits_of_nodes_are_read_too() {
    let files = plain("collab", COLLAB);
    files.bytes("g/split/time/split_dict.pt", &fixture("nodes.pt"));
    let dataset = import(&files).unwrap();
    for (name, expected) in [("train", &[0, 2][..]), ("valid", &[1]), ("test", &[3])] {
        assert_eq!(dataset.split(DEFAULT_NODE_TYPE, name).unwrap().unwrap()[..], *expected);
    }
    files.bytes("g/split/time/split_dict.pt", &fixture("typed_nodes.pt"));
    let message = ogb(&OgbOptions::new(files.path("g")), &files.path("out2")).unwrap_err();
    assert!(message.to_string().contains("'drug'"), "{message}");
    let files = typed();
    files.bytes("g/split/time/split_dict.pt", &fixture("typed_nodes.pt"));
    let dataset = import(&files).unwrap();
    for (name, expected) in [("train", &[1][..]), ("valid", &[0]), ("test", &[])] {
        assert_eq!(dataset.split("drug", name).unwrap().unwrap()[..], *expected);
    }
}
