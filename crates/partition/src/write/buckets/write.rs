//! Writing buckets.

use std::path::Path;

use gnarl_common::error::{Context, Error, Kind, Result, ResultExt};
use gnarl_common::sealed_json;
use gnarl_graph::{Dataset, EdgeType, for_each_edge};

use super::{BUCKETS_VERSION, BucketsManifest, BucketsType, FILE, FORMAT};
use crate::write::columns::NamedColumn;
use crate::write::deal::{Deal, copy_tables, place_each};
use crate::write::edge_order::ByList;
use crate::write::layout::Layout;

/// Writes the buckets of every edge type to `dir`, in two passes over the edges: one counts, one
/// distributes list after list, so that buckets are sorted. Memory: 8 bytes a bucket and at most
/// `memory` bytes of buffers. Returns the edge types.
///
/// # Errors
/// [`Kind::Limit`] if buckets do not fit `memory`.
pub(crate) fn write(
    dataset: &Dataset,
    layout: &Layout,
    dir: &Path,
    memory: u64,
) -> Result<BucketsManifest> {
    std::fs::create_dir_all(dir).at(dir)?;
    let types = dataset.manifest().edge_types.iter().enumerate();
    let types = types.map(|(index, t)| {
        of_type(dataset, layout, (index, t), dir, memory)
            .while_doing(|| format!("grouping the edges {} into buckets", t.triple))
    });
    let manifest = BucketsManifest {
        format: FORMAT.into(),
        version: BUCKETS_VERSION,
        parts: layout.parts,
        edge_types: types.collect::<Result<_>>()?,
    };
    let path = dir.join(FILE);
    let text = sealed_json::to_string(&manifest)?;
    std::fs::write(&path, text).at(&path)?;
    Ok(manifest)
}

fn of_type(
    dataset: &Dataset,
    layout: &Layout,
    (index, t): (usize, &EdgeType),
    dir: &Path,
    memory: u64,
) -> Result<BucketsType> {
    let buckets = layout.parts * layout.parts;
    if 8 * buckets as u64 > memory / 4 || u32::try_from(buckets).is_err() {
        let (parts, table) = (layout.parts, buckets >> 17);
        let message = format!("counting {buckets} buckets of {parts} parts requires {table} MiB");
        return Err(Error::new(Kind::Limit, message).hint("raise --memory, or ask for fewer parts"));
    }
    let [from, to] =
        [&t.triple.src, &t.triple.dst].map(|name| layout.types[layout.type_index(name)].ids.start);
    let bucket = |u: u64, v: u64| {
        let [i, j] = [from + u, to + v].map(|end| layout.of[end as usize] as usize);
        i * layout.parts + j
    };
    let mut counts = vec![0u64; buckets];
    for_each_edge(&mut dataset.edges_of(&t.triple)?, &mut |u, v| counts[bucket(u, v)] += 1)?;
    let stem = index.to_string();
    let mut offsets = NamedColumn::<u64>::create(dir, &stem, "offsets", &[])?;
    let mut end = 0;
    offsets.push(&[0])?;
    for count in &counts {
        end += count;
        offsets.push(&[end])?;
    }
    let mut columns = vec![offsets.finish()?];
    let deal = Deal { dir, stem: &stem, counts: &counts, memory: memory / 2 };
    let mut edges = ByList::new(dataset, &t.triple, t.count)?;
    let dealt = deal.run(dataset, t, &mut edges, |chunk, places| {
        place_each(chunk, places, |_, u, v| {
            (bucket(u, v) as u32, layout.core_row(from + u), layout.core_row(to + v))
        });
        Ok(())
    })?;
    let width = [dealt.checksums.len() as u64];
    let mut checksums = NamedColumn::<u32>::create(dir, &stem, "checksums", &width)?;
    for bucket in 0..buckets {
        let row: Vec<u32> = dealt.checksums.iter().map(|of_column| of_column[bucket]).collect();
        checksums.push(&row)?;
    }
    columns.extend(dealt.columns);
    columns.push(checksums.finish()?);
    columns.extend(copy_tables(dataset, t, dir)?);
    Ok(BucketsType { triple: t.triple.clone(), count: t.count, columns })
}
