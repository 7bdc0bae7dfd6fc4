//! Reports agree with a count by hand, and say so to people.

use gnarl_graph::inspect::{inspect, verify};
use gnarl_graph::{DatasetWriter, FinishOptions, IdWidth, Triple};

#[test]
fn a_small_heterogeneous_graph_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = DatasetWriter::create(dir.path().join("h"), IdWidth::U32).unwrap();
    w.add_node_type("author", 3);
    w.add_node_type("paper", 5).classes = Some(3);
    let mut column = w.node_column::<i32>("paper", "label", &[]).unwrap();
    column.push(&[0, 0, 1, -1, 1]).unwrap();
    let spec = column.finish().unwrap();
    w.node_type("paper").unwrap().columns.push(spec);
    let mut column = w.node_column::<u64>("paper", "orig_id", &[]).unwrap();
    column.push(&[50, 51, 52, 53, 54]).unwrap();
    let spec = column.finish().unwrap();
    w.node_type("paper").unwrap().columns.push(spec);
    w.add_split("paper", "train", vec![0, 3]).unwrap();
    for (name, src, dst) in [
        ("author:writes:paper", vec![0, 0, 1], vec![0, 1, 1]),
        ("paper:cites:paper", vec![0, 1, 1, 3, 2], vec![1, 0, 2, 0, 2]),
    ] {
        let triple: Triple = name.parse().unwrap();
        let mut writer = w.edge_writer(&triple, None).unwrap();
        writer.push(&src, &dst).unwrap();
        let columns = writer.finish().unwrap();
        w.add_edge_type(triple, columns);
    }
    let dataset = w.finish(FinishOptions::default()).unwrap();
    let report = inspect(&dataset).unwrap();
    assert!(report.part);

    let [authors, papers] = &report.nodes[..] else { panic!("two node types were written") };
    assert_eq!((authors.isolated, papers.isolated), (1, 1));
    let labels = papers.labels.as_ref().unwrap();
    assert_eq!((labels.labelled, &labels.histogram[..]), (4, &[2, 2, 0][..]));
    assert_eq!((papers.splits[0].count, papers.splits[0].labelled), (2, Some(0.5)));
    assert_eq!(papers.other_columns, ["orig_id"]);

    let [writes, cites] = &report.edges[..] else { panic!("two edge types were written") };
    assert_eq!(
        (writes.homophily, writes.facts.self_loops, writes.facts.symmetric),
        (None, 0, false)
    );
    assert_eq!((cites.count, cites.facts.self_loops), (5, 1));
    assert_eq!(cites.in_degrees.histogram, [2, 1, 2]);
    // 0-1, 1-0 and the loop agree of four with labels; classes have 5 and 3 of 8 ends.
    let homophily = cites.homophily.unwrap();
    let chance = (25.0 + 9.0) / 64.0;
    assert_eq!((homophily.edge, homophily.labelled_edges), (0.75, 4));
    assert!((homophily.adjusted.unwrap() - (0.75 - chance) / (1.0 - chance)).abs() < 1e-12);

    let text = report.to_string();
    for part in
        ["part h (32-bit ids)", "nodes paper: 5", "0.750 (adjusted", "train       2 (40.0 %)"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(verify(&dataset).unwrap().columns, 11);
}
