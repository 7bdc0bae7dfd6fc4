//! Ids that the user gave: read by node and found by text, whole and in parts.

use std::path::Path;

use gnarl_common::{Element, Kind};
use gnarl_graph::{
    DEFAULT_NODE_TYPE, Dataset, DatasetWriter, FinishOptions, IdWidth, Names, Triple, UserIdKind,
    UserIds,
};

const IDS: [&str; 5] = ["Zürich", "", "東京", "a b", "0"];

fn push<T: Element>(writer: &mut DatasetWriter, node_type: &str, name: &str, values: &[T]) {
    let mut column = writer.node_column::<T>(node_type, name, &[]).unwrap();
    column.push(values).unwrap();
    let spec = column.finish().unwrap();
    writer.node_type(node_type).unwrap().columns.push(spec);
}

/// Offsets and bytes of texts.
fn ragged(texts: &[&str]) -> (Vec<u64>, Vec<u8>) {
    let mut offsets = vec![0];
    for text in texts {
        offsets.push(offsets[offsets.len() - 1] + text.len() as u64);
    }
    (offsets, texts.concat().into_bytes())
}

/// A dataset of `count` nodes of one type, without edges, with the columns that `add` adds.
fn dataset(
    dir: &Path,
    node_type: &str,
    count: u64,
    add: impl FnOnce(&mut DatasetWriter),
) -> Dataset {
    written(dir, node_type, count, add).unwrap()
}

/// [`dataset`], or why it cannot be opened.
fn written(
    dir: &Path,
    node_type: &str,
    count: u64,
    add: impl FnOnce(&mut DatasetWriter),
) -> gnarl_common::Result<Dataset> {
    let mut writer = DatasetWriter::create(dir, IdWidth::U32).unwrap();
    writer.add_node_type(node_type, count);
    add(&mut writer);
    let triple: Triple = format!("{node_type}:to:{node_type}").parse().unwrap();
    let mut edges = writer.edge_writer(&triple, Some((count, count))).unwrap();
    edges.push(&[], &[]).unwrap();
    let columns = edges.finish().unwrap();
    writer.add_edge_type(triple, columns);
    writer.finish(FinishOptions::default())
}

fn texts(dir: &Path, offsets: &[u64], bytes: &[u8]) -> Dataset {
    dataset(dir, "city", 5, |writer| {
        push(writer, "city", "user_id.offsets", offsets);
        push(writer, "city", "user_id.bytes", bytes);
    })
}

fn message(ids: &UserIds, lines: &[&str]) -> String {
    let error = ids.find(lines).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidInput);
    error.to_string()
}

#[test]
fn texts_are_read_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let (offsets, bytes) = ragged(&IDS);
    let ids = UserIds::open(&texts(&dir.path().join("g"), &offsets, &bytes), "city").unwrap();
    assert_eq!((ids.kind(), ids.len(), ids.is_empty()), (UserIdKind::Text, 5, false));
    let read: Vec<_> = (0..5).map(|node| ids.text(node)).collect();
    assert_eq!(read, IDS);
    assert_eq!(ids.find(&["東京", "0", "", "東京", "Zürich"]).unwrap(), [2, 4, 1, 2, 0]);
    assert!(ids.find(&[]).unwrap().is_empty());
    let text = message(&ids, &["0", "Kyōto", "00"]);
    assert!(text.starts_with("line 2: unknown city id 'Kyōto'"), "{text}");
}

#[test]
fn integers_are_read_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let given = [i64::MIN, 70, -3, 0];
    let dataset = dataset(&dir.path().join("g"), DEFAULT_NODE_TYPE, 4, |writer| {
        push(writer, DEFAULT_NODE_TYPE, "user_id", &given);
    });
    let ids = UserIds::open(&dataset, DEFAULT_NODE_TYPE).unwrap();
    assert_eq!(ids.kind(), UserIdKind::Integer);
    assert_eq!([0, 1, 2, 3].map(|node| ids.integer(node)), given);
    assert_eq!(ids.find(&["0", " 70 ", "-9223372036854775808"]).unwrap(), [3, 1, 0]);
    assert!(message(&ids, &["70", "-3", "1", "2"]).starts_with("line 3: unknown node id '1'"));
    assert!(message(&ids, &["seventy"]).contains("line 1: unknown node id 'seventy'"));
}

#[test]
fn nodes_that_were_not_renumbered_are_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dataset(&dir.path().join("g"), "v", 4, |_| {});
    let ids = UserIds::open(&whole, "v").unwrap();
    assert_eq!((ids.kind(), ids.integer(3)), (UserIdKind::Integer, 3));
    assert_eq!(ids.find(&["3", "0"]).unwrap(), [3, 0]);
    assert!(message(&ids, &["0", "4"]).contains("line 2: unknown v id '4': expected an integer"));
    assert!(message(&ids, &["-1"]).contains("below 4"));

    let part = dataset(&dir.path().join("part"), "v", 3, |writer| {
        push(writer, "v", "orig_id", &[2u64, 9, 4]);
    });
    let ids = UserIds::open(&part, "v").unwrap();
    assert_eq!([0, 1, 2].map(|node| ids.integer(node)), [2, 9, 4], "ids in the whole graph");
    assert_eq!(ids.find(&["4", "2"]).unwrap(), [2, 0]);
    assert!(message(&ids, &["0"]).contains("unknown v id '0'"));
}

#[test]
fn ids_of_many_pieces_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let count = 200_000;
    let given: Vec<i64> = (0..count).map(|node| 3 * (count - node)).collect();
    let dataset = dataset(&dir.path().join("g"), "v", count as u64, |writer| {
        push(writer, "v", "user_id", &given);
    });
    let ids = UserIds::open(&dataset, "v").unwrap();
    assert_eq!(ids.find(&["3", "600000", "300000"]).unwrap(), [199_999, 0, 100_000]);
    assert!(message(&ids, &["3", "4"]).contains("line 2: unknown v id '4'"));
}

#[test]
fn damaged_texts_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (offsets, bytes) = ragged(&IDS);
    let mut cut = offsets.clone();
    // In the middle of `ü`.
    cut[1] = 2;
    let mut beyond = offsets.clone();
    beyond[5] = 100;
    let mut back = offsets.clone();
    back[3] = 1;
    let cases = [
        (&cut[..], "text 0 is not UTF-8"),
        (&beyond[..], "row 4: 16..100 is no range of 17 bytes"),
        (&back[..], "user_id.offsets: row 2"),
    ];
    for (i, (offsets, expected)) in cases.into_iter().enumerate() {
        let dataset = texts(&dir.path().join(i.to_string()), offsets, &bytes);
        let text = UserIds::open(&dataset, "city").unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn fewer_offsets_than_nodes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (offsets, bytes) = ragged(&IDS);
    for count in [0, 5] {
        let opened = written(&dir.path().join(count.to_string()), "city", 5, |writer| {
            push(writer, "city", "user_id.offsets", &offsets[..count]);
            push(writer, "city", "user_id.bytes", &bytes);
        });
        let text = opened.unwrap_err().to_string();
        assert!(text.contains(&format!("city: user_id.offsets has {count} rows for 6")), "{text}");
    }
}

#[test]
fn names_of_classes_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (offsets, bytes) = ragged(&["cat", "Hündin"]);
    let named = dataset(&dir.path().join("g"), "v", 1, |writer| {
        push(writer, "v", "class_name.offsets", &offsets);
        push(writer, "v", "class_name.bytes", &bytes);
    });
    let names = Names::of_nodes(&named, "v", "class_name").unwrap().unwrap();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["cat", "Hündin"]);
    assert_eq!((names.len(), names.is_empty(), names.get(1)), (2, false, "Hündin"));
    assert!(Names::of_nodes(&named, "v", "other_name").unwrap().is_none());
    let triple = named.manifest().edge_types[0].triple.clone();
    assert!(Names::of_edges(&named, &triple, "class_name").unwrap().is_none());

    let half = dataset(&dir.path().join("h"), "v", 1, |writer| {
        push(writer, "v", "class_name.offsets", &offsets);
    });
    let text = Names::of_nodes(&half, "v", "class_name").unwrap_err().to_string();
    assert!(text.contains("column class_name.bytes is missing"), "{text}");
}
