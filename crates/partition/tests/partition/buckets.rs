//! Edge buckets against the edges they group.

use crate::common::dataset;
use gnarl_graph::{IdWidth, Triple};
use gnarl_partition::{PartLayout, PartitionConfig, PartitionedDataset, Parts, partition_dataset};
use proptest::prelude::*;

type Edges = Vec<(u64, u64)>;

const NODES: [(&str, u64); 2] = [("author", 23), ("paper", 40)];

fn list(sources: u64, targets: u64) -> impl Strategy<Value = Edges> {
    prop::collection::vec((0..sources, 0..targets), 0..120)
}

/// Every edge is in the bucket of its ends' parts, as rows of what these own; the edges of a bucket ascend by destination
/// and source, equal ones in their order.
fn check(made: &PartitionedDataset, types: &[(&str, Edges)]) {
    let buckets = made.buckets().unwrap();
    buckets.verify().unwrap();
    let parts = made.num_parts();
    for (name, edges) in types {
        let triple: Triple = name.parse().unwrap();
        let kind = buckets.edge_type(&triple).unwrap();
        let weight = buckets.column(kind, "weight").unwrap().unwrap().values::<f32>().unwrap();
        let place = |ntype: &str, v: u64| {
            let part = made.assignment(ntype).unwrap()[v as usize] as usize;
            let first = made.node_type(ntype).unwrap().ranges[part];
            (part, (made.new_ids(ntype).unwrap()[v as usize] - first) as u32)
        };
        let mut expected = vec![Vec::new(); parts * parts];
        for (row, &(u, v)) in edges.iter().enumerate() {
            let ((i, src), (j, dst)) = (place(&triple.src, u), place(&triple.dst, v));
            expected[i * parts + j].push((src, dst, row as f32));
        }
        for (at, mut expected) in expected.into_iter().enumerate() {
            expected.sort_by_key(|&(src, dst, _)| (dst, src));
            let bucket = buckets.bucket(kind, at / parts, at % parts).unwrap();
            let ends = bucket.src.iter().zip(bucket.dst);
            let found = ends.zip(bucket.rows.clone());
            let found: Vec<_> = found.map(|((&s, &d), r)| (s, d, weight[r as usize])).collect();
            assert_eq!(found, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn buckets_are_the_graph(
        wrote in list(23, 40),
        cites in list(40, 40),
        parts in 1usize..6,
        layout in prop::sample::select(PartLayout::ALL.to_vec()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let types = [("author:wrote:paper", wrote), ("paper:cites:paper", cites)];
        let source = dataset(&dir.path().join("source"), IdWidth::U64, &NODES, &types);
        let config = PartitionConfig {
            algorithm: if layout == PartLayout::VertexCut { "dbh" } else { "random" }.into(),
            layout,
            parts: Parts::Count(parts),
            buckets: layout != PartLayout::Storage,
            ..Default::default()
        };
        let (made, _) = partition_dataset(&source, &config, &dir.path().join("parts")).unwrap();
        check(&made, &types);
    }
}

#[test]
fn missing_and_damaged_buckets_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let edges = (0..300u64).map(|i| (i * i % 40, i * 7 % 40)).collect();
    let types = [("paper:cites:paper", edges)];
    let source = dataset(&dir.path().join("source"), IdWidth::U32, &NODES, &types);
    let cut = |name: &str, buckets: bool| {
        let config = PartitionConfig { parts: Parts::Count(3), buckets, ..Default::default() };
        partition_dataset(&source, &config, &dir.path().join(name)).unwrap().0
    };
    let text = cut("without", false).buckets().unwrap_err().to_string();
    assert!(text.contains("buckets.json") && text.contains("--buckets"), "{text}");
    let made = cut("with", true);
    assert_eq!(made.buckets().unwrap().bucket(0, 1, 3).unwrap_err().exit_code(), 2);
    assert_eq!(made.buckets().unwrap().bucket(1, 0, 0).unwrap_err().exit_code(), 2);
    for name in ["0.offsets", "0.src", "0.dst"] {
        let path = made.dir().join("buckets").join(format!("{name}.npy"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let text = made.buckets().unwrap_err().to_string();
        assert!(text.contains(&format!("{name}.npy: truncated")), "{text}");
        let mut flipped = whole.clone();
        flipped[140] ^= 1;
        std::fs::write(&path, flipped).unwrap();
        let text = made.buckets().and_then(|b| b.verify()).unwrap_err().to_string();
        assert!(text.contains(&format!("{name}.npy: checksum")), "{text}");
        std::fs::write(&path, whole).unwrap();
    }
}
