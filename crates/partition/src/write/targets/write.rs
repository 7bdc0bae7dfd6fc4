//! Writing target edges.

use std::path::Path;

use gnarl_common::error::{Context, Error, Result};
use gnarl_graph::{Column, Dataset};

use super::pass::Pass;
use super::{Targets, TargetsManifest};
use crate::write::distribute::{COLUMN_BYTES, OPEN_FILES};
use crate::write::layout::Layout;

/// Writes the target edges beside the parts in `dir`, the partition's directory. Parts are taken together as far as
/// `memory` and open files allow; the edges are streamed once per such group.
///
/// # Errors
/// If heads are not nodes of `graph`, an edge is out of range, or edges lack the features that are asked for.
pub(crate) fn write(
    graph: &Dataset,
    layout: &Layout,
    targets: Targets<'_>,
    dir: &Path,
    memory: u64,
) -> Result<TargetsManifest> {
    let triple = targets.triple.clone();
    write_groups(graph, layout, targets, dir, memory)
        .while_doing(|| format!("writing the target edges {triple}"))
}

fn write_groups(
    graph: &Dataset,
    layout: &Layout,
    targets: Targets<'_>,
    dir: &Path,
    memory: u64,
) -> Result<TargetsManifest> {
    let heads = check_heads(graph, &targets)?;
    let features = if targets.with_features { Some(features(&targets)?) } else { None };
    let tails = targets.source.manifest().node_type(&targets.triple.dst)?.count;
    let feature_width = features.as_ref().map_or(0, Column::width) as u64;
    let pass = Pass {
        dir,
        layout,
        labels: targets.labels,
        features,
        times: targets.with_times,
        first: layout.types[layout.type_index(&targets.triple.src)].ids.start,
        limits: [heads, targets.relations.max(1), tails],
    };
    let together = together(pass.files(), memory);
    let mut parts = Vec::new();
    let mut total = None;
    while parts.len() < layout.parts {
        let group = parts.len()..(parts.len() + together).min(layout.parts);
        let (mut specs, counts) = pass.run(group, targets.each)?;
        parts.append(&mut specs);
        if *total.get_or_insert(counts) != counts {
            return Err(Error::invalid("the target edges differ between two passes"));
        }
    }
    let count = |split: usize| parts.iter().map(|part| part[split][0].shape[0]).collect();
    Ok(TargetsManifest {
        counts: [count(0), count(1), count(2)],
        labels: targets.labels.map(|(kind, _)| kind),
        triple: targets.triple,
        settings: targets.settings,
        relations: targets.relations,
        relation_names: targets.relation_names,
        feature_width,
        times: targets.with_times,
        parts,
    })
}

/// Number of parts whose files are open together, of so many `files` each.
fn together(files: usize, memory: u64) -> usize {
    let by_memory = memory / (files as u64 * COLUMN_BYTES);
    by_memory.clamp(1, (OPEN_FILES / files).max(1) as u64) as usize
}

/// Number of possible heads, of which each has a part.
fn check_heads(graph: &Dataset, targets: &Targets<'_>) -> Result<u64> {
    let name = &targets.triple.src;
    let heads = targets.source.manifest().node_type(name)?.count;
    let found = graph.manifest().node_type(name)?.count;
    if found == heads {
        return Ok(heads);
    }
    Err(Error::invalid(format!(
        "the graph has {found} nodes of type '{name}', the target edges are of {heads}"
    )))
}

fn features(targets: &Targets<'_>) -> Result<Column> {
    let column = targets.source.edge_column(&targets.triple, "features")?;
    column.ok_or_else(|| {
        let (dir, triple) = (targets.source.dir().display(), &targets.triple);
        Error::invalid(format!("{dir}: {triple}: edges have no features"))
            .hint("import with --edge-features")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_and_memory_bound_a_group() {
        assert_eq!(together(18, 1 << 30), 28);
        assert_eq!(together(12, 4 * 12 * COLUMN_BYTES), 4);
        assert_eq!(together(18, 1), 1);
        assert_eq!(together(2 * OPEN_FILES, u64::MAX), 1);
    }
}
