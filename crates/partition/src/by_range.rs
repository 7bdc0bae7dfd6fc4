//! Partitions whose parts are read elsewhere, by ranges.

use crate::dataset::PARTITION;
use crate::write::buckets::{BUCKETS, FILE};

/// Returns whether the file `name` of a partition of layout `storage` is read whole where parts are brought into memory in
/// turns: manifests, the part of each node, and what says where buckets are. Columns of parts and ends of edges are read by
/// ranges ([`PartitionedDataset::open_in`](crate::PartitionedDataset::open_in)), and others not at all.
pub fn is_read_whole(name: &str) -> bool {
    let Some((folder, file)) = name.split_once('/') else {
        return name == PARTITION
            || (name.starts_with("map-") && name.ends_with(".assignment.npy"));
    };
    match folder {
        BUCKETS => {
            file == FILE || [".offsets.npy", ".checksums.npy"].iter().any(|end| file.ends_with(end))
        }
        _ => folder.starts_with("part-") && file == gnarl_graph::MANIFEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_with_features_and_edges_is_read_by_ranges() {
        let whole = ["partition.json", "map-0.assignment.npy", "buckets/0.offsets.npy"];
        for name in whole.into_iter().chain(["part-3/dataset.json", "buckets/buckets.json"]) {
            assert!(is_read_whole(name), "{name}");
        }
        let others = ["part-3/_N.features.npy", "buckets/0.src.npy", "map-0.new_id.npy"];
        for name in others.into_iter().chain(["nodes/_N.id.npy", "part-0/targets/train.head.npy"]) {
            assert!(!is_read_whole(name), "{name}");
        }
    }
}
