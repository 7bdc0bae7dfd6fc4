//! The smallest graphs that each task trains on.

use std::path::{Path, PathBuf};

use gnarl_common::npy::NpyWriter;
use gnarl_common::rng::Key;
use gnarl_config::TaskKind;
use gnarl_graph::Triple;
use gnarl_graph::generate::{
    Attributes, CommunityOptions, HeteroOptions, community, heterogeneous,
};
use gnarl_graph::import::{HeteroNpyOptions, NpyOptions, heterogeneous_npy, npy};

use super::table::Task;

const NODES: u64 = 60;
const EDGES: u64 = 400;

pub struct Graphs {
    dir: tempfile::TempDir,
}

impl Graphs {
    pub fn new() -> Self {
        let graphs = Self { dir: tempfile::tempdir().unwrap() };
        let attributes = Attributes {
            features: 6,
            classes: 3,
            train: 0.5,
            valid: 0.2,
            test: 0.3,
            ..Attributes::default()
        };
        let options = CommunityOptions {
            nodes: 120,
            communities: 3,
            average_degree: 6.0,
            attributes: attributes.clone(),
            ..CommunityOptions::default()
        };
        community(&options, &graphs.dir().join("nodes")).unwrap();
        let options = HeteroOptions {
            nodes: 200,
            edges: 800,
            relations: 5,
            communities: 3,
            attributes,
            ..HeteroOptions::default()
        };
        heterogeneous(&options, &graphs.dir().join("types")).unwrap();
        graphs.edges();
        graphs
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The dataset of a task.
    pub fn of(&self, task: &Task) -> PathBuf {
        self.dir().join(match (task.kind, task.heterogeneous) {
            (TaskKind::EdgeClassification, _) => "classes",
            (TaskKind::EdgeRegression, _) => "values",
            (_, false) => "nodes",
            (_, true) => "types",
        })
    }

    fn array<T: gnarl_common::Element>(&self, name: &str, row: &[u64], values: &[T]) -> PathBuf {
        let path = self.dir().join(name);
        let mut writer = NpyWriter::create(path.clone(), row).unwrap();
        writer.push(values).unwrap();
        writer.finish().unwrap();
        path
    }

    /// A graph whose edges have classes, and one of two node types whose edges have numbers.
    fn edges(&self) {
        let draw = |word: u64, row: u64| Key::new(word).below(row, NODES) as u32;
        let ends: Vec<u32> =
            (0..EDGES).map(|row| draw(1, row)).chain((0..EDGES).map(|row| draw(2, row))).collect();
        let edges = self.array("edges.npy", &[EDGES], &ends);
        let classes: Vec<i32> = (0..EDGES as i32).map(|row| row % 3).collect();
        let values: Vec<f32> = (0..EDGES).map(|row| Key::new(3).normal(row) as f32).collect();
        let features: Vec<f32> = (0..4 * NODES).map(|at| Key::new(4).normal(at) as f32).collect();
        let splits: Vec<(String, PathBuf)> =
            [("train", 0, 300), ("valid", 300, 350), ("test", 350, 400)]
                .map(|(name, from, to)| {
                    let mask: Vec<u8> =
                        (0..EDGES).map(|row| u8::from((from..to).contains(&row))).collect();
                    (name.to_string(), self.mask(&format!("{name}.npy"), &mask))
                })
                .into();

        let mut options = NpyOptions::new(edges.clone());
        options.features = Some(self.array("features.npy", &[4], &features));
        options.edge_labels = Some(self.array("classes.npy", &[], &classes));
        options.edge_splits = splits.clone();
        npy(&options, &self.dir().join("classes")).unwrap();

        let rates: Triple = "user:rates:item".parse().unwrap();
        let options = HeteroNpyOptions {
            edges: vec![(rates.clone(), edges)],
            edge_values: vec![(rates.clone(), self.array("values.npy", &[], &values))],
            edge_splits: splits
                .into_iter()
                .map(|(name, path)| (rates.clone(), name, path))
                .collect(),
            reverse: true,
            memory: 1 << 26,
            ..HeteroNpyOptions::default()
        };
        heterogeneous_npy(&options, &self.dir().join("values")).unwrap();
    }

    /// An array of booleans.
    fn mask(&self, name: &str, inside: &[u8]) -> PathBuf {
        let header = format!("{{'descr': '|b1', 'fortran_order': False, 'shape': ({EDGES},), }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let header = format!("{header:<117}\n");
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(inside);
        let path = self.dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
