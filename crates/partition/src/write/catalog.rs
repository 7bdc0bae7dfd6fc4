//! The catalog of a partition: all nodes of the source by their dataset ids, without features and edges, so that
//! predictions over parts have the user's ids and class names.

use std::path::Path;

use gnarl_common::error::{Context, Result};
use gnarl_graph::{Dataset, DatasetWriter, FinishOptions, IdWidth};
use serde_json::json;

/// Directory of the catalog, within the partition's.
pub(crate) const CATALOG: &str = "nodes";

/// Writes the catalog of `source` below `dir`. Files are linked where the file system can, else copied.
pub(crate) fn write(source: &Dataset, dir: &Path) -> Result<()> {
    let manifest = source.manifest();
    let most = manifest.node_types.iter().map(|t| t.count).max().unwrap_or(0);
    let mut writer = DatasetWriter::create(dir.join(CATALOG), IdWidth::for_nodes(most))?;
    writer.name(format!("{}, nodes", manifest.name));
    writer.origin(json!({ "catalog of": manifest.name }));
    let linked = writer.link_nodes_without_features(source);
    linked.while_doing(|| "writing the catalog of nodes")?;
    writer.finish(FinishOptions::default()).map(drop)
}
