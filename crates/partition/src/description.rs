//! The files of a partition that describe it, without its parts.

use std::path::Path;

use gnarl_common::folders::is_inside;
use gnarl_common::{Context, Error, Result, fnv1a};
use gnarl_graph::ColumnSpec;
use gnarl_graph::inspect::verify;

use crate::dataset::{PARTITION, PartitionManifest, PartitionedDataset, PartitionedType};
use crate::part_layout::PartLayout;
use crate::write::catalog::CATALOG;

/// The manifest of the catalog of nodes, if there is one.
pub const CATALOG_MANIFEST: &str = "nodes/dataset.json";

/// The columns of a node type that say where its nodes are.
fn places<'a>(
    manifest: &PartitionManifest,
    of: &'a PartitionedType,
) -> impl Iterator<Item = &'a ColumnSpec> + use<'a> {
    let shared = manifest.layout == PartLayout::VertexCut;
    of.columns.iter().filter(move |column| match column.name.as_str() {
        "assignment" => true,
        "holders" => shared,
        _ => false,
    })
}

/// Names of the files by which batches of parts elsewhere are made: the manifest, the part of each node, and the catalog of
/// nodes if it is here. Ascending, with slashes.
///
/// # Errors
/// If the catalog is damaged, or a manifest names a file that is not in its folder.
pub fn describing_files(parts: &PartitionedDataset) -> Result<Vec<String>> {
    let manifest = parts.manifest();
    let places = manifest.node_types.iter().flat_map(|of| places(manifest, of));
    let mut files: Vec<String> = places.map(|column| column.file.clone()).collect();
    files.push(PARTITION.into());
    if let Some(catalog) = parts.catalog()? {
        files.push(CATALOG_MANIFEST.into());
        let columns = catalog.manifest().node_types.iter().flat_map(|of| &of.columns);
        files.extend(columns.map(|column| format!("{CATALOG}/{}", column.file)));
    }
    if let Some(outside) = files.iter().find(|name| !is_inside(name)) {
        let place = parts.dir().display();
        return Err(Error::invalid(format!(
            "{place}: '{outside}' is not the name of a file there"
        )));
    }
    files.sort();
    Ok(files)
}

/// Compares the checksums of the describing files in `dir`, which were copied there.
///
/// # Errors
/// If one is missing or differs, naming it.
pub fn verify_description(dir: &Path) -> Result<()> {
    let check = || {
        let parts = PartitionedDataset::open(dir)?;
        for of in &parts.manifest().node_types {
            let mut places = places(parts.manifest(), of);
            places.try_for_each(|column| parts.column(&of.name, &column.name)?.verify())?;
        }
        parts.catalog()?.map(|catalog| verify(&catalog)).transpose().map(drop)
    };
    check().while_doing(|| format!("verifying the description of a partition in {}", dir.display()))
}

impl PartitionManifest {
    /// A number of the parts, wherever and whenever they were made; others have other checksums.
    pub fn key(&self) -> u64 {
        let Self { source, parts, layout, hops, node_types, edge_types, part_counts, .. } = self;
        let all = (&source.fingerprint, parts, layout, hops, node_types, edge_types, part_counts);
        fnv1a(serde_json::to_vec(&all).unwrap_or_default())
    }

    /// Returns whether it describes the same parts, wherever and whenever they were made.
    pub fn is_of_same_parts(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_told() {
        for name in ["partition.json", "nodes/_N.label.npy", "map-0.assignment.npy"] {
            assert!(is_inside(name), "{name}");
        }
        for name in ["", "/etc/passwd", "../token", "nodes/../../x", "a//b", "c:\\x", "nodes/."] {
            assert!(!is_inside(name), "{name}");
        }
    }
}
