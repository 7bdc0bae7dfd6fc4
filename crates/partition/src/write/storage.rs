//! The layout `storage`: each part's own nodes once, and all edges in buckets (Armada §3).

use std::path::Path;

use gnarl_common::error::{Context, Result};
use gnarl_graph::Dataset;

use super::buckets::{self, BUCKETS, EdgeBuckets};
use super::layout::Layout;
use super::owned;

/// Writes parts and buckets below `out`. Returns the number of edges into the nodes of each part, by edge type.
///
/// Memory: buffers of at most `memory`.
pub(crate) fn write(
    dataset: &Dataset,
    layout: &Layout,
    out: &Path,
    memory: u64,
) -> Result<Vec<Vec<u64>>> {
    owned::write(dataset, layout, out)?;
    let dir = out.join(BUCKETS);
    let manifest = buckets::write(dataset, layout, &dir, memory)?;
    let written = EdgeBuckets::open(&dir).while_doing(|| "reading the buckets just written")?;
    let into = |part: usize, edge_type: usize| -> Result<u64> {
        let from = (0..layout.parts).map(|source| written.bucket(edge_type, source, part));
        from.map(|bucket| Ok(bucket?.src.len() as u64)).sum()
    };
    let types = manifest.edge_types.len();
    (0..layout.parts).map(|part| (0..types).map(|t| into(part, t)).collect()).collect()
}
