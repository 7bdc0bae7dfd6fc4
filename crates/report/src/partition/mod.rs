//! Report of a partition.

mod charts;

use std::path::Path;

use gnarl_common::Result;
use gnarl_partition::PartitionManifest;

pub(crate) use charts::charts;

use crate::page::text::escape;
use crate::page::{page_of, section, write};

/// Writes the page of a partition to `report.html` in `dir`, entirely or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_partition_report(dir: &Path, manifest: &PartitionManifest) -> Result<()> {
    write(dir, &page(manifest))
}

/// The page of a partition.
fn page(manifest: &PartitionManifest) -> String {
    let (graph, by) = (escape(&manifest.source.name), escape(&manifest.algorithm));
    let head = format!(
        "<header><h1>{graph} <span>in {} parts</span></h1><p>by {by}, seed {}</p></header>\n",
        manifest.parts, manifest.seed
    );
    let title = format!("{} in {} parts", manifest.source.name, manifest.parts);
    page_of(&title, &(head + &section("Partition", &charts(manifest))))
}
