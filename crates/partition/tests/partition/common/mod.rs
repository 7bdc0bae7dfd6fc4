//! Small datasets for tests.

use std::path::Path;

use gnarl_graph::{Dataset, DatasetWriter, FinishOptions, IdWidth, Triple};

/// A node type: name and number of nodes.
pub type Nodes<'a> = (&'a str, u64);
/// An edge type and its edges.
pub type Edges<'a> = (&'a str, Vec<(u64, u64)>);

/// Writes a dataset. Each node gets features `[graph-wide id, 2 · graph-wide id]`, ragged user ids,
/// a label and a place in a split by its id; each edge its row as `weight`.
pub fn dataset(out: &Path, width: IdWidth, nodes: &[Nodes], edges: &[Edges]) -> Dataset {
    let mut writer = DatasetWriter::create(out, width).unwrap();
    let mut first = 0;
    for &(name, count) in nodes {
        writer.add_node_type(name, count).classes = Some(3);
        let mut features = writer.node_column::<f32>(name, "features", &[2]).unwrap();
        let mut label = writer.node_column::<i32>(name, "label", &[]).unwrap();
        let mut offsets = writer.node_column::<u64>(name, "user_id.offsets", &[]).unwrap();
        let mut bytes = writer.node_column::<u8>(name, "user_id.bytes", &[]).unwrap();
        let mut end = 0;
        offsets.push(&[0]).unwrap();
        for v in 0..count {
            features.push(&[(first + v) as f32, 2.0 * (first + v) as f32]).unwrap();
            label.push(&[(v % 3) as i32]).unwrap();
            let text = user_id(name, v);
            end += text.len() as u64;
            offsets.push(&[end]).unwrap();
            bytes.push(text.as_bytes()).unwrap();
        }
        let columns = [
            features.finish().unwrap(),
            label.finish().unwrap(),
            offsets.finish().unwrap(),
            bytes.finish().unwrap(),
        ];
        writer.node_type(name).unwrap().columns.extend(columns);
        writer.add_split(name, "train", (0..count).filter(|v| v % 4 < 2).collect()).unwrap();
        writer.add_split(name, "test", (0..count).filter(|v| v % 4 == 3).collect()).unwrap();
        first += count;
    }
    for (triple, list) in edges {
        let triple: Triple = triple.parse().unwrap();
        let count = |name: &str| nodes.iter().find(|(n, _)| *n == name).unwrap().1;
        let limits = (count(&triple.src), count(&triple.dst));
        let mut ends = writer.edge_writer(&triple, Some(limits)).unwrap();
        let (src, dst): (Vec<u64>, Vec<u64>) = list.iter().copied().unzip();
        ends.push(&src, &dst).unwrap();
        let mut columns = ends.finish().unwrap();
        let mut weight = writer.edge_column::<f32>(&triple, "weight", &[]).unwrap();
        (0..list.len()).for_each(|row| weight.push(&[row as f32]).unwrap());
        columns.push(weight.finish().unwrap());
        writer.add_edge_type(triple, columns);
    }
    writer.finish(FinishOptions::default()).unwrap()
}

/// The user id of a node, of varying length.
pub fn user_id(ntype: &str, v: u64) -> String {
    format!("{ntype}{}", "x".repeat((v % 5) as usize))
}
