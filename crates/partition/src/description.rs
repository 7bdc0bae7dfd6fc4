//! The files of a partition that describe it, without its parts.

use std::path::Path;

use gnarl_common::{Context, Result, ResultExt};
use gnarl_graph::ColumnSpec;
use gnarl_graph::inspect::verify;

use crate::dataset::{PARTITION, PartitionedDataset, PartitionedType};
use crate::part_layout::PartLayout;
use crate::write::catalog::CATALOG;

/// The columns of a node type that say where its nodes are.
fn places<'a>(
    cut: &PartitionedDataset,
    of: &'a PartitionedType,
) -> impl Iterator<Item = &'a ColumnSpec> + use<'a> {
    let shared = cut.manifest().layout == PartLayout::VertexCut;
    of.columns.iter().filter(move |column| match column.name.as_str() {
        "assignment" => true,
        "holders" => shared,
        _ => false,
    })
}

/// The manifest of the catalog of nodes, if there is one.
pub const CATALOG_MANIFEST: &str = "nodes/dataset.json";

/// Names of the files by which batches of parts elsewhere are made: the manifest, the part of each node, and the catalog of
/// nodes if it is here. Ascending, with slashes.
///
/// # Errors
/// If the catalog cannot be listed.
pub fn describing_files(cut: &PartitionedDataset) -> Result<Vec<String>> {
    let places = cut.manifest().node_types.iter().flat_map(|of| places(cut, of));
    let mut files: Vec<String> = places.map(|column| column.file.clone()).collect();
    files.push(PARTITION.into());
    let catalog = cut.dir().join(CATALOG);
    if catalog.exists() {
        for entry in std::fs::read_dir(&catalog).at(&catalog)? {
            let entry = entry.at(&catalog)?;
            if entry.path().is_file() {
                files.push(format!("{CATALOG}/{}", entry.file_name().to_string_lossy()));
            }
        }
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
        let cut = PartitionedDataset::open(dir)?;
        for of in &cut.manifest().node_types {
            places(&cut, of).try_for_each(|column| cut.column(&of.name, &column.name)?.verify())?;
        }
        cut.catalog()?.map(|catalog| verify(&catalog)).transpose().map(drop)
    };
    check().while_doing(|| format!("verifying the description of a partition in {}", dir.display()))
}
