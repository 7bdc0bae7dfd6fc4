//! Descriptions of partitions, fetched from their servers.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use gnarl_common::Kind;
use gnarl_graph::Dataset;
use gnarl_graph::generate::{CommunityOptions, community};
use gnarl_partition::{
    CATALOG_MANIFEST, PARTITION, PartLayout, PartitionConfig, PartitionedDataset, Parts,
    describing_files, partition_dataset,
};
use gnarl_serve::{Access, ServedPart, Server, ServerConfig, find_description};

fn cut(
    dir: &Path,
    name: &str,
    (layout, nodes): (PartLayout, u64),
    seed: u64,
) -> PartitionedDataset {
    let graph = dir.join(format!("graph of {name}"));
    let options =
        CommunityOptions { nodes, communities: 4, average_degree: 1.0, ..Default::default() };
    community(&options, &graph).unwrap();
    let algorithm = if layout == PartLayout::VertexCut { "dbh" } else { "random" };
    let config = PartitionConfig {
        algorithm: algorithm.into(),
        parts: Parts::Count(2),
        layout,
        seed,
        ..Default::default()
    };
    partition_dataset(&Dataset::open(graph).unwrap(), &config, &dir.join(name)).unwrap().0
}

fn serve(cut: &PartitionedDataset, which: &[usize]) -> Server {
    let held = which.iter().map(|&part| Arc::new(ServedPart::open(cut, part).unwrap()));
    Server::of_partition(cut, held.collect(), None, &ServerConfig::default()).unwrap()
}

#[test]
fn files_come_whole_and_stay_those_of_the_parts_that_are_served() {
    for layout in [PartLayout::EdgeCut, PartLayout::VertexCut] {
        let dir = tempfile::tempdir().unwrap();
        // Files of more than one piece of 4 MiB.
        let parts = cut(dir.path(), "parts", (layout, 1_200_000), 1);
        let names = describing_files(&parts).unwrap();
        assert!(names.iter().any(|name| name == PARTITION));
        assert!(names.iter().any(|name| name == CATALOG_MANIFEST));
        assert_eq!(
            layout == PartLayout::VertexCut,
            names.iter().any(|name| name.contains("holders"))
        );
        let expected: Vec<Vec<u8>> =
            names.iter().map(|name| std::fs::read(parts.dir().join(name)).unwrap()).collect();
        let server = serve(&parts, &[0, 1]);
        // Another partition takes the folder's name, as `gnarl partition --force` does it.
        std::fs::rename(parts.dir(), dir.path().join("old")).unwrap();
        let description = find_description(&[server.uri()], &Access::default(), "").unwrap();
        let bytes: usize = expected.iter().map(Vec::len).sum();
        assert_eq!(description.bytes(), bytes as u64);
        let copy = dir.path().join("copy");
        description.write(&copy).unwrap();
        for (name, expected) in names.iter().zip(expected) {
            assert!(std::fs::read(copy.join(name)).unwrap() == expected, "{name}");
        }
    }
}

#[test]
fn a_damaged_description_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let parts = cut(dir.path(), "parts", (PartLayout::EdgeCut, 2000), 1);
    for name in describing_files(&parts).unwrap().iter().filter(|name| name.ends_with(".npy")) {
        let path = parts.dir().join(name);
        let good = std::fs::read(&path).unwrap();
        // The catalog may share its files with the dataset.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &good).unwrap();
        let server = serve(&parts, &[0]);
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::End(-1)).unwrap();
        file.write_all(&[good[good.len() - 1] ^ 4]).unwrap();
        let description = find_description(&[server.uri()], &Access::default(), "").unwrap();
        let copy = dir.path().join("copy");
        let error = description.write(&copy).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidInput);
        let text = error.to_string();
        let file = name.rsplit('/').next().unwrap();
        assert!(
            text.contains("checksum") && text.contains(file) && text.contains(&server.uri()),
            "{text}"
        );
        std::fs::write(&path, good).unwrap();
    }
}

#[test]
fn servers_are_of_one_partition_and_one_has_its_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let parts = cut(dir.path(), "parts", (PartLayout::EdgeCut, 2000), 1);
    let other = cut(dir.path(), "other", (PartLayout::EdgeCut, 2000), 2);
    let [whole, stranger] = [&parts, &other].map(|parts| serve(parts, &[0]));
    std::fs::rename(parts.dir().join("nodes"), dir.path().join("nodes")).unwrap();
    let lean = serve(&parts, &[1]);
    let find = |servers: &[&Server]| {
        let addresses: Vec<String> = servers.iter().map(|server| server.uri()).collect();
        find_description(&addresses, &Access::default(), "")
    };
    for servers in [[&lean, &whole], [&whole, &lean]] {
        assert!(find(&servers).unwrap().has_catalog());
    }
    let refused = |servers: &[&Server], text: &str| {
        let error = find(servers).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(&[&lean], "no catalog of the nodes");
    refused(&[&lean, &stranger], "parts of another partition");
    refused(&[&stranger, &whole], "parts of another partition");
    refused(&[], "no servers are named");
    let plain = Server::start(vec![], &ServerConfig::default()).unwrap();
    refused(&[&plain], "does not describe its partition");
}
