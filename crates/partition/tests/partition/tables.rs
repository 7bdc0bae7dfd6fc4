//! Columns that are no rows of nodes or edges, the names of classes and of relations, reach every part.

use gnarl_graph::{DEFAULT_NODE_TYPE, Dataset, DatasetWriter, FinishOptions, IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, Parts, partition_dataset};

fn knowledge_graph(out: &std::path::Path) -> Dataset {
    let triple = Triple::plain();
    let mut writer = DatasetWriter::create(out, IdWidth::U32).unwrap();
    writer.add_node_type(DEFAULT_NODE_TYPE, 30);
    let mut ends = writer.node_column::<u64>(DEFAULT_NODE_TYPE, "class_name.offsets", &[]).unwrap();
    ends.push(&[0, 3, 10]).unwrap();
    let mut names = writer.node_column::<u8>(DEFAULT_NODE_TYPE, "class_name.bytes", &[]).unwrap();
    names.push(b"artphysics").unwrap();
    let classes = [ends.finish().unwrap(), names.finish().unwrap()];
    writer.node_type(DEFAULT_NODE_TYPE).unwrap().columns.extend(classes);
    let mut ends = writer.edge_writer(&triple, Some((30, 30))).unwrap();
    let (src, dst): (Vec<u64>, Vec<u64>) = (0..90).map(|i| (i % 30, i * i % 29)).unzip();
    ends.push(&src, &dst).unwrap();
    let mut columns = ends.finish().unwrap();
    let mut relation = writer.edge_column::<u32>(&triple, "relation", &[]).unwrap();
    (0..90).for_each(|row| relation.push(&[row % 2]).unwrap());
    let mut offsets = writer.edge_column::<u64>(&triple, "relation_name.offsets", &[]).unwrap();
    offsets.push(&[0, 4, 9]).unwrap();
    let mut bytes = writer.edge_column::<u8>(&triple, "relation_name.bytes", &[]).unwrap();
    bytes.push(b"likesknows").unwrap();
    let tables = [offsets.finish().unwrap(), bytes.finish().unwrap()];
    columns.extend([relation.finish().unwrap()].into_iter().chain(tables));
    writer.add_edge_type(triple, columns);
    writer.finish(FinishOptions::default()).unwrap()
}

#[test]
fn names_reach_every_part() {
    let dir = tempfile::tempdir().unwrap();
    let source = knowledge_graph(&dir.path().join("graph"));
    for layout in PartLayout::ALL {
        let config = PartitionConfig {
            algorithm: "dbh".into(),
            parts: Parts::Count(2),
            layout,
            buckets: true,
            ..Default::default()
        };
        let out = dir.path().join(layout.name());
        let (made, _) = partition_dataset(&source, &config, &out).unwrap();
        let name = "relation_name.bytes";
        let mut columns = vec![made.buckets().unwrap().column(0, name).unwrap()];
        for part in 0..2 {
            columns.push(match layout {
                PartLayout::EdgeCut => {
                    made.part(part).unwrap().edge_column(&Triple::plain(), name).unwrap()
                }
                PartLayout::VertexCut => made.topology(part).unwrap().edge_column(0, name).unwrap(),
                // Edges are in buckets alone.
                PartLayout::Storage => continue,
            });
        }
        for part in 0..2 {
            let part = made.part(part).unwrap();
            let column = part.node_column(DEFAULT_NODE_TYPE, "class_name.bytes").unwrap();
            assert_eq!(column.expect("a table").bytes(), b"artphysics");
        }
        for column in columns {
            assert_eq!(column.expect("a table").bytes(), b"likesknows");
        }
    }
}
