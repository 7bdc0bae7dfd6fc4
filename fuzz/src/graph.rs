//! Datasets as their readers see them: everything that training and inspection touch, and edges out and in again.

use std::path::Path;

use gnarl_common::Result;
use gnarl_common::npy::NpyWriter;
use gnarl_graph::inspect::{inspect, verify};
use gnarl_graph::splits::Roles;
use gnarl_graph::times::{edge_times, node_times};
use gnarl_graph::{Dataset, EdgeStream, EdgeType, Features, Labels, NodeType, UserIdKind, UserIds};

use crate::memory::within;

/// Bytes of memory beside the budget of an import: buffers of files and chunks, see the documentation of
/// `gnarl_graph::import`.
pub const SLACK: usize = 40 << 20;

/// Bytes of memory of the readers of a dataset of some kilobytes.
const READING: usize = 16 << 20;

/// Reads everything of a dataset that training, inspection and partitioning read.
///
/// # Errors
/// For what a reader rejects.
///
/// # Panics
/// If a reader does.
pub fn touch(dataset: &Dataset) -> Result<()> {
    inspect(dataset)?;
    let manifest = dataset.manifest();
    manifest.node_types.iter().try_for_each(|of| touch_nodes(dataset, of))?;
    manifest.edge_types.iter().try_for_each(|of| touch_edges(dataset, of))?;
    dataset.edges()?.for_each(&mut |_, _| ())
}

fn touch_nodes(dataset: &Dataset, of: &NodeType) -> Result<()> {
    if let Some(features) = dataset.features(&of.name)? {
        touch_features(&features);
    }
    if let Some(labels) = dataset.labels(&of.name)? {
        let labeled = (0..of.count as usize).filter(|&node| labels.has(node)).count();
        assert!(labeled as u64 <= of.count);
        if let Labels::Single { classes, count } = &labels {
            // The loss and the metrics index by them.
            let mut classes = classes.iter().filter_map(|&class| usize::try_from(class).ok());
            assert!(classes.all(|class| class < *count), "a label is no class");
        }
    }
    dataset.values(&of.name)?;
    node_times(dataset, &of.name)?;
    Roles::given(dataset, &of.name)?;
    let ids = UserIds::open(dataset, &of.name)?;
    for node in 0..ids.len() as u64 {
        match ids.kind() {
            UserIdKind::Integer => drop(ids.integer(node)),
            UserIdKind::Text => drop(ids.text(node).len()),
        }
    }
    Ok(())
}

fn touch_features(features: &Features) {
    if let Features::Csr { indptr, indices, values, width } = features {
        for row in 0..features.rows() {
            let range = indptr[row] as usize..indptr[row + 1] as usize;
            assert!(indices[range.clone()].iter().all(|&column| (column as usize) < *width));
            assert_eq!(values[range.clone()].len(), range.len());
        }
    }
}

fn touch_edges(dataset: &Dataset, of: &EdgeType) -> Result<()> {
    let triple = &of.triple;
    let sources = dataset.manifest().node_type(&triple.src)?.count;
    edge_times(dataset, triple)?;
    for column in ["weight", "features", "label", "split", "relation"] {
        dataset.edge_column(triple, column)?;
    }
    let lists = dataset.csc(triple)?;
    let mut edges = 0;
    for node in 0..lists.num_dst() as u32 {
        edges += u64::from(lists.degree(node));
        let inside = lists.sources(node).iter().all(|&source| u64::from(source) < sources);
        assert!(inside, "a neighbor of node {node} of {triple} is no node");
    }
    assert!(edges <= lists.num_edges() as u64);
    Ok(())
}

/// Checks the dataset that an import has accepted: what it wrote opens, has the checksums it says, and holds no id
/// without a node.
///
/// # Panics
/// If not.
pub fn check(dataset: &Dataset) {
    within(READING, || checked(dataset));
}

fn checked(dataset: &Dataset) {
    let again = Dataset::open(dataset.dir()).expect("the import can be opened");
    verify(&again).expect("the import has its own checksums");
    touch(&again).expect("the import can be read");
    for of in &again.manifest().edge_types {
        let count = |name: &str| again.manifest().node_type(name).expect("its type").count;
        let sources = count(&of.triple.src);
        let destinations = count(&of.triple.dst);
        let mut edges = again.edges_of(&of.triple).expect("its edges");
        let inside = &mut |src, dst| assert!(src < sources && dst < destinations, "{src} → {dst}");
        edges.for_each(inside).expect("its edges");
    }
}

/// All edges of a dataset in stored order.
///
/// # Panics
/// If they cannot be read.
pub fn edges(dataset: &Dataset) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let mut edges = dataset.edges().expect("the import has edges");
    edges.for_each(&mut |src, dst| all.push((src, dst))).expect("the import has edges");
    all
}

/// Writes edges as the importer of arrays reads them: sources, then destinations.
///
/// # Panics
/// If they cannot be written.
pub fn write_edges(path: &Path, edges: &[(u64, u64)]) {
    let mut writer = NpyWriter::<u64>::create(path, &[edges.len() as u64]).expect("a file");
    let sources: Vec<u64> = edges.iter().map(|edge| edge.0).collect();
    let destinations: Vec<u64> = edges.iter().map(|edge| edge.1).collect();
    writer.push(&sources).and_then(|()| writer.push(&destinations)).expect("a file");
    writer.finish().expect("a file");
}
