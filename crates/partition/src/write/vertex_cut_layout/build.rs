//! The topology of one part, from its edges in any order.

use std::path::Path;

use gnarl_common::error::{Error, Kind, Result};
use gnarl_graph::ColumnSpec;
use gnarl_graph::times::node_times;

use super::dealt::{Job, Part};
use super::emit::{Carried, TYPE_SHIFT, Types};
use super::lists::{BATCH, Lists, Words, accumulate, ranges};
use super::manifest::{CutEdgeType, CutNodeType, TIMES, VertexCutManifest};
use super::side::{Columns, Direction, Side};
use crate::write::columns::{NamedColumn, NarrowColumn};
use crate::write::deal::copy_tables;

impl Job<'_> {
    /// Writes the topology of `part` to `dir` with at most `memory` bytes: 24 a node, the rest for
    /// lists; the edges are read once per share of them that fits.
    pub(super) fn build(&self, part: usize, dir: &Path, memory: u64) -> Result<VertexCutManifest> {
        let layout = &self.cut.layout;
        let ids: Vec<u64> = self.cut.held[part].iter(0..layout.of.len() as u64).collect();
        let edges = self.cut.counts.iter().map(|of_type| of_type[part]).sum();
        let mut p = Part { job: self, part, dir, ids, edges, columns: Vec::new() };
        let room = p.room(memory)?;
        p.nodes()?;
        p.times_of_nodes()?;
        let carried = p.incoming(room)?;
        p.outgoing(room)?;
        let mut manifest = VertexCutManifest::new(part, layout.parts);
        manifest.nodes = p.ids.len() as u64;
        manifest.edges = p.edges;
        manifest.node_types = p.node_types();
        let types = self.dataset.manifest().edge_types.iter().zip(carried).enumerate();
        for (kind, (t, mut columns)) in types {
            columns.extend(copy_tables(self.dataset, t, dir)?);
            let count = self.cut.counts[kind][part];
            manifest.edge_types.push(CutEdgeType { triple: t.triple.clone(), count, columns });
        }
        manifest.columns = p.columns;
        manifest.write(dir)?;
        Ok(manifest)
    }
}

impl Part<'_> {
    /// Memory left for lists.
    fn room(&self, memory: u64) -> Result<u64> {
        let fixed = 24 * self.ids.len() as u64 + 16 * BATCH as u64;
        match memory.checked_sub(fixed) {
            Some(room) if room >= 1 << 18 => Ok(room),
            _ => Err(Error::new(
                Kind::Limit,
                format!(
                    "{} nodes require {} MiB, but {} MiB are left for the part",
                    self.ids.len(),
                    fixed.div_ceil(1 << 20),
                    memory >> 20
                ),
            )
            .hint("raise --memory, or ask for more parts")),
        }
    }

    /// Ids, global degrees and part sets.
    fn nodes(&mut self) -> Result<()> {
        let (held, layout) = (&self.job.cut.held, &self.job.cut.layout);
        let largest = (layout.of.len() as u64).saturating_sub(1);
        let mut id = NarrowColumn::create(self.dir, "", "id", largest.max(u8::MAX as u64 + 1))?;
        let width = held.len().div_ceil(8);
        let mut sets = NamedColumn::<u8>::create(self.dir, "", "parts", &[width as u64])?;
        let create = |name: &str| NamedColumn::<u32>::create(self.dir, "", name, &[]);
        let (mut into, mut out) = (create("in.degree")?, create("out.degree")?);
        let mut row = vec![0u8; width];
        for &v in &self.ids {
            id.push(v)?;
            row.fill(0);
            for part in (0..held.len()).filter(|&p| held[p].contains(v)) {
                row[part / 8] |= 1 << (part % 8);
            }
            sets.push(&row)?;
            let (node_type, own) = self.own_id(v);
            into.push(&[self.job.degrees.total(node_type, own, Direction::In)])?;
            out.push(&[self.job.degrees.total(node_type, own, Direction::Out)])?;
        }
        self.columns.extend([id.finish()?, sets.finish()?, into.finish()?, out.finish()?]);
        Ok(())
    }

    /// Times of all nodes, if those of a type have some: edges without times of their own are there from that of their
    /// source on, which may belong to another part. Nodes of types without times have the earliest of all.
    fn times_of_nodes(&mut self) -> Result<()> {
        let dataset = self.job.dataset;
        let types = dataset.manifest().node_types.iter();
        let of = types.map(|of| node_times(dataset, &of.name)).collect::<Result<Vec<_>>>()?;
        if of.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut times = NamedColumn::<i64>::create(self.dir, "", TIMES, &[])?;
        for &v in &self.ids {
            let (node_type, own) = self.own_id(v);
            let time = of[node_type].as_ref().map(|times| times[own as usize]);
            times.push(&[time.unwrap_or(i64::MIN)])?;
        }
        self.columns.push(times.finish()?);
        Ok(())
    }

    fn node_types(&self) -> Vec<CutNodeType> {
        let types = self.job.cut.layout.types.iter();
        let place = |v: u64| self.ids.partition_point(|&id| id < v) as u64;
        let of = types.map(|t| CutNodeType {
            name: t.name.clone(),
            first: t.ids.start,
            count: t.ids.end - t.ids.start,
            local: [place(t.ids.start), place(t.ids.end)],
        });
        of.collect()
    }

    /// In-edges: by destination, type and source. Their order gives edges their ids. Returns the
    /// edge columns of each type.
    fn incoming(&mut self, room: u64) -> Result<Vec<Vec<ColumnSpec>>> {
        let rows = self.carries();
        let mut offsets = vec![0u64; self.ids.len() + 1];
        self.each_edge(|_, _, _, v| offsets[v as usize + 1] += 1)?;
        accumulate(&mut offsets);
        let mut carried = Carried::create(self)?;
        let mut sources = NamedColumn::<u32>::create(self.dir, "", "in.src", &[])?;
        let mut types = Types::create(self, Direction::In)?;
        for range in ranges(&offsets, room / Lists::entry_bytes(rows)) {
            let mut lists = Lists::new(&offsets, range.clone(), rows);
            self.each_edge(|kind, row, u, v| {
                lists.push(v, (kind as u64) << TYPE_SHIFT | u64::from(u), row);
            })?;
            lists.sort();
            for (v, (keys, rows)) in range.zip(lists.iter()) {
                for &key in keys {
                    sources.push(&[key as u32])?;
                }
                types.push(self, v, keys)?;
                carried.push(keys, rows)?;
            }
        }
        self.columns.push(sources.finish()?);
        let specs = types.finish()?;
        self.columns.extend(specs);
        self.offsets(Direction::In, &offsets)?;
        carried.finish()
    }

    /// Out-edges: for each source the ids of its edges, by type and destination.
    fn outgoing(&mut self, room: u64) -> Result<()> {
        let columns = Columns(self.dir, &self.columns);
        let nodes = self.ids.len() as u64;
        let incoming = Side::open(&columns, Direction::In, nodes, self.edges)?;
        let spec = self.columns.iter().find(|c| c.name == "in.src").expect("written before");
        let each_edge = |visit: &mut dyn FnMut(usize, u64, u32)| -> Result<()> {
            let mut sources = Words::open(self.dir, spec, 0, self.edges)?;
            let mut batch = Vec::new();
            let runs = (0..nodes as u32).flat_map(|v| incoming.runs(v));
            let kinds = runs.flat_map(|run| run.slots.map(move |edge| (run.kind, edge)));
            let mut kinds = kinds.peekable();
            while kinds.peek().is_some() && sources.next(&mut batch)? {
                for (&u, (kind, edge)) in batch.iter().zip(&mut kinds) {
                    visit(kind, edge, u);
                }
            }
            Ok(())
        };
        let mut offsets = vec![0u64; self.ids.len() + 1];
        each_edge(&mut |_, _, u| offsets[u as usize + 1] += 1)?;
        accumulate(&mut offsets);
        let largest = self.edges.saturating_sub(1);
        let mut ids = NarrowColumn::create(self.dir, "", "out.edge", largest)?;
        let mut types = Types::create(self, Direction::Out)?;
        for range in ranges(&offsets, room / Lists::entry_bytes(false)) {
            let mut lists = Lists::new(&offsets, range.clone(), false);
            each_edge(&mut |kind, edge, u| lists.push(u, (kind as u64) << TYPE_SHIFT | edge, 0))?;
            lists.sort();
            for (u, (keys, _)) in range.zip(lists.iter()) {
                for &key in keys {
                    ids.push(key & ((1 << TYPE_SHIFT) - 1))?;
                }
                types.push(self, u, keys)?;
            }
        }
        self.columns.push(ids.finish()?);
        let specs = types.finish()?;
        self.columns.extend(specs);
        self.offsets(Direction::Out, &offsets)
    }

    fn offsets(&mut self, direction: Direction, offsets: &[u64]) -> Result<()> {
        let name = format!("{}.indptr", direction.prefix());
        let mut column = NarrowColumn::create(self.dir, "", &name, self.edges)?;
        offsets.iter().try_for_each(|&offset| column.push(offset))?;
        self.columns.push(column.finish()?);
        Ok(())
    }
}
