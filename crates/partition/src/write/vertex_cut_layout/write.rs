//! Writing a vertex cut: rows of owned nodes, then the edges.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gnarl_common::error::{Context, Result, ResultExt};
use gnarl_graph::{ColumnSpec, Dataset};
use rayon::prelude::*;

use super::cut::Cut;
use super::dealt::Job;
use super::degrees::GlobalDegrees;
use super::manifest::{TOPOLOGY, VertexCutManifest};
use crate::dataset::part_dir;
use crate::write::deal::{Deal, place_each};
use crate::write::edge_order::ByRow;
use crate::write::owned;

/// Writes every part's rows and topology below `out`. `spool` has the part of every edge, and
/// `work` is a directory for intermediate files: the edges once more, 8 bytes each.
///
/// Memory: buffers up to an eighth of `memory` while edges are dealt; then, for as many parts as
/// there are threads, 24 bytes a node of the part and lists that fill what is left of `memory`.
pub(crate) fn write(
    dataset: &Dataset,
    cut: &Cut,
    spool: &Path,
    work: &Path,
    out: &Path,
    memory: u64,
) -> Result<Vec<VertexCutManifest>> {
    let parts = cut.layout.parts;
    owned::write(dataset, &cut.layout, out)?;
    let degrees = GlobalDegrees::count(dataset, &cut.layout, work)?;
    let dealt = deal(dataset, cut, spool, work, memory / 8)?;
    let share = memory / rayon::current_num_threads().min(parts) as u64;
    let job = Job { dataset, cut, degrees: &degrees, dealt: &dealt, dir: work };
    let build = |part: usize| {
        let dir = out.join(part_dir(part)).join(TOPOLOGY);
        std::fs::create_dir_all(&dir).at(&dir)?;
        job.build(part, &dir, share).while_doing(|| format!("building the topology of part {part}"))
    };
    (0..parts).into_par_iter().map(build).collect()
}

/// Distributes the edges of every type to the parts, as local ids. Returns each type's columns.
fn deal(
    dataset: &Dataset,
    cut: &Cut,
    spool: &Path,
    work: &Path,
    memory: u64,
) -> Result<Vec<Vec<ColumnSpec>>> {
    let mut assigned = Assigned::open(spool)?;
    let types = dataset.manifest().edge_types.iter().enumerate();
    let dealt = types.map(|(index, t)| {
        let [src, dst] = [&t.triple.src, &t.triple.dst]
            .map(|name| cut.layout.types[cut.layout.type_index(name)].ids.start);
        let stem = index.to_string();
        let deal = Deal { dir: work, stem: &stem, counts: &cut.counts[index], memory };
        let mut edges = ByRow::new(dataset, &t.triple)?;
        let dealt = deal.run(dataset, t, &mut edges, |chunk, places| {
            let of = assigned.next(chunk.len())?;
            place_each(chunk, places, |i, u, v| {
                let held = &cut.held[of[i] as usize];
                (of[i].into(), held.rank(src + u) as u32, held.rank(dst + v) as u32)
            });
            Ok(())
        });
        let dealt = dealt.while_doing(|| format!("dealing the edges {}", t.triple))?;
        Ok(dealt.columns)
    });
    dealt.collect()
}

/// The parts of edges, read in order.
struct Assigned<'a> {
    path: &'a Path,
    file: File,
    batch: Vec<u16>,
}

impl<'a> Assigned<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        Ok(Self { path, file: File::open(path).at(path)?, batch: Vec::new() })
    }

    /// The parts of the next `count` edges, as this process wrote them.
    fn next(&mut self, count: usize) -> Result<&[u16]> {
        self.batch.resize(count, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.batch);
        self.file.read_exact(bytes).at(self.path)?;
        Ok(&self.batch)
    }
}
