//! What the import tests share: small files, and comparison of datasets.

use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyWriter;
use gnarl_common::{Element, Result};
use gnarl_graph::import::ImportReport;
use gnarl_graph::{Dataset, EdgeStream, Triple};
use tempfile::TempDir;

/// A directory of input files, with a place for the dataset.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn out(&self) -> PathBuf {
        self.path("out")
    }

    /// A place for a dataset, without the one that was made there before.
    pub fn fresh(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    pub fn text(&self, name: &str, text: &str) -> PathBuf {
        self.bytes(name, text.as_bytes())
    }

    pub fn bytes(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn gz(&self, name: &str, text: &str) -> PathBuf {
        self.bytes(name, &gzip(text.as_bytes()))
    }

    /// An npy file of rows of the shape `row`.
    pub fn npy<T: Element>(&self, name: &str, row: &[u64], values: &[T]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_npy(&path, row, values);
        path
    }

    /// An npy file of edges `[2, E]`.
    pub fn edges(&self, name: &str, edges: &[(i64, i64)]) -> PathBuf {
        let mut values: Vec<i64> = edges.iter().map(|e| e.0).collect();
        values.extend(edges.iter().map(|e| e.1));
        self.npy(name, &[edges.len() as u64], &values)
    }

    /// An npz archive of npy files made before.
    pub fn npz(&self, name: &str, members: &[(&str, PathBuf)], deflate: bool) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let method = match deflate {
            true => zip::CompressionMethod::Deflated,
            false => zip::CompressionMethod::Stored,
        };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for (member, file) in members {
            archive.start_file(format!("{member}.npy"), options).unwrap();
            std::io::Write::write_all(&mut archive, &std::fs::read(file).unwrap()).unwrap();
        }
        archive.finish().unwrap();
        path
    }

    /// Nothing but input files: no dataset and no temporary directory.
    pub fn assert_nothing_left(&self) {
        for entry in std::fs::read_dir(self.0.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with("out") && !name.contains("tmp"), "{name} was left behind");
        }
    }

    /// The message of an import that must fail and leave nothing.
    pub fn refusal<T>(&self, result: Result<T>) -> String {
        let message = result.err().expect("the import must be refused").to_string();
        self.assert_nothing_left();
        message
    }
}

pub fn write_npy<T: Element>(path: &Path, row: &[u64], values: &[T]) {
    // A two-row array of E columns has rows of E values.
    let mut writer = NpyWriter::<T>::create(path, row).unwrap();
    writer.push(values).unwrap();
    writer.finish().unwrap();
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// All edges of a dataset in stored order, in graph-wide ids.
pub fn edges(dataset: &Dataset) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    dataset.edges().unwrap().for_each(&mut |s, d| all.push((s, d))).unwrap();
    all
}

/// The edges of one type, sorted.
pub fn sorted_edges(dataset: &Dataset, triple: &Triple) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    dataset.edges_of(triple).unwrap().for_each(&mut |s, d| all.push((s, d))).unwrap();
    all.sort_unstable();
    all
}

/// Two datasets hold the same columns with the same values.
pub fn assert_same(a: &Dataset, b: &Dataset) {
    let (a, b) = (a.manifest(), b.manifest());
    assert_eq!(a.node_types, b.node_types);
    assert_eq!(a.edge_types, b.edge_types);
}

/// `nodes`, `edges`, `isolated`, `self_loops`, `duplicates`.
pub fn counts(report: &ImportReport) -> [u64; 5] {
    [report.nodes, report.edges, report.isolated, report.self_loops, report.duplicates]
}
