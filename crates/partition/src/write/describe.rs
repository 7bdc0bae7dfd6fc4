//! The manifest of a partition, and the id map.

use std::path::Path;
use std::time::Instant;

use gnarl_common::error::Result;
use gnarl_common::rng::mix;
use gnarl_graph::{Dataset, Manifest};

use crate::config::PartitionConfig;
use crate::dataset::{
    PARTITION_VERSION, PartCounts, PartitionManifest, PartitionedEdges, PartitionedType, SourceInfo,
};
use crate::part_layout::PartLayout;
use crate::report::PartitionReport;
use crate::write::columns::NamedColumn;
use crate::write::layout::{Layout, TypeSpan};

/// Parts that have been written.
pub(super) struct Written {
    pub layout: Layout,
    pub report: PartitionReport,
    /// When writing began.
    pub start: Instant,
    /// Edges by part and edge type.
    pub edges: Vec<Vec<u64>>,
}

/// Writes the id map of `graph` to `dir`; returns the manifest of its parts, which says that they are of `source`.
pub(super) fn describe(
    graph: &Dataset,
    source: &Dataset,
    config: &PartitionConfig,
    written: Written,
    dir: &Path,
) -> Result<PartitionManifest> {
    let Written { layout, report, edges, .. } = written;
    let layout = &layout;
    let node_types = layout.types.iter().enumerate();
    let held = config.layout != PartLayout::Storage;
    let node_types = node_types.map(|(i, span)| id_map((layout, held), i, span, dir));
    let counts = edges.into_iter().enumerate().map(|(part, edges)| PartCounts {
        core: layout.types.iter().map(|t| t.core(part)).collect(),
        halo: layout.types.iter().map(|t| t.halo(&layout.halo.nodes[part])).collect(),
        edges,
    });
    let edge_types = graph.manifest().edge_types.iter();
    Ok(PartitionManifest {
        format: "gnarl-partition".into(),
        version: PARTITION_VERSION,
        source: SourceInfo {
            path: source.dir().to_path_buf(),
            name: source.manifest().name.clone(),
            fingerprint: fingerprint(source.manifest()),
        },
        algorithm: report.algorithm.clone(),
        parameters: config.parameters(),
        seed: config.seed,
        parts: layout.parts,
        layout: config.layout,
        hops: if config.layout == PartLayout::EdgeCut { config.hops } else { 0 },
        node_types: node_types.collect::<Result<_>>()?,
        edge_types: edge_types.map(|t| PartitionedEdges::new(&t.triple, &t.columns)).collect(),
        part_counts: counts.collect(),
        cut: layout.halo.cut.clone(),
        report,
        targets: None,
    })
}

/// Writes the id-map columns of a node type, with those that hold it as HALO where nodes are `held` so.
fn id_map(
    (layout, held): (&Layout, bool),
    index: usize,
    span: &TypeSpan,
    dir: &Path,
) -> Result<PartitionedType> {
    let stem = format!("map-{index}");
    let bytes = layout.parts.div_ceil(8);
    let mut assignment = NamedColumn::<u32>::create(dir, &stem, "assignment", &[])?;
    let mut new_id = NamedColumn::<u64>::create(dir, &stem, "new_id", &[])?;
    let holders = || NamedColumn::<u8>::create(dir, &stem, "holders", &[bytes as u64]);
    let mut holders = held.then(holders).transpose()?;
    let mut row = vec![0u8; bytes];
    for v in span.ids.clone() {
        assignment.push(&[layout.of[v as usize] as u32])?;
        new_id.push(&[layout.new_id(span, v)])?;
        let Some(holders) = &mut holders else { continue };
        row.fill(0);
        for part in (0..layout.parts).filter(|&p| layout.halo.nodes[p].contains(v)) {
            row[part / 8] |= 1 << (part % 8);
        }
        holders.push(&row)?;
    }
    let columns = [assignment.finish()?, new_id.finish()?];
    let holders = holders.map(NamedColumn::finish).transpose()?;
    Ok(PartitionedType {
        name: span.name.clone(),
        count: span.ids.end - span.ids.start,
        ranges: span.starts.clone(),
        columns: columns.into_iter().chain(holders).collect(),
    })
}

/// A hash of the manifest's types: names, counts and the checksum of every column.
pub fn fingerprint(manifest: &Manifest) -> String {
    let text = serde_json::to_vec(&(&manifest.node_types, &manifest.edge_types));
    let fold = |hash: u64, &byte: &u8| mix(hash ^ byte as u64);
    format!("{:016x}", text.expect("manifests serialise").iter().fold(0x67_6e61_726c, fold))
}
