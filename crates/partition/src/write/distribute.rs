//! Distribution of the edges to the parts that store them, in one pass.

use gnarl_common::Element;
use gnarl_common::error::{Context, Result};
use gnarl_graph::{
    ColumnWriter, Dataset, DatasetWriter, EdgeChunk, EdgeStream, EdgeType, EdgeWriter, Triple,
};

use rayon::prelude::*;

use crate::write::deal::{copy_tables, extra_columns};
use crate::write::layout::Layout;
use crate::write::rows::{CreateColumn, Rows, rows};

/// Files open at once, well below the usual limit of 1,024.
pub(crate) const OPEN_FILES: usize = 512;
/// Bytes behind an open column: its write buffer.
pub(crate) const COLUMN_BYTES: u64 = 1 << 18;
/// Edges whose places are looked up together; several groups are processed concurrently, as the
/// tables of all nodes are read at random.
const GRAIN: usize = 1 << 13;
/// Prefetch distance in edges.
const AHEAD: usize = 16;
/// Edges buffered per part before they are written.
const BATCH: usize = 1 << 12;

/// Writes the edges of every type into the parts' datasets. Parts are taken together as far as
/// `memory` and open files allow; the edges are read once per such group.
pub(crate) fn write(
    source: &Dataset,
    layout: &Layout,
    writers: &mut [DatasetWriter],
    memory: u64,
) -> Result<()> {
    for t in &source.manifest().edge_types {
        let columns = extra_columns(t).count() + 2;
        let bytes = columns as u64 * COLUMN_BYTES + 16 * BATCH as u64;
        let group = (memory / bytes).clamp(1, (OPEN_FILES / columns).max(1) as u64) as usize;
        for start in (0..layout.parts).step_by(group) {
            let end = (start + group).min(layout.parts);
            let specs = Group::open(source, layout, t, start, &writers[start..end])
                .and_then(|group| group.run(source))
                .while_doing(|| format!("distributing the edges {}", t.triple))?;
            for (writer, mut columns) in writers[start..end].iter_mut().zip(specs) {
                columns.extend(copy_tables(source, t, writer.tmp_dir())?);
                writer.add_edge_type(t.triple.clone(), columns);
                writer.edge_type(&t.triple)?.classes = t.classes;
            }
        }
    }
    Ok(())
}

/// The distribution of an edge type to some consecutive parts.
struct Group<'a> {
    layout: &'a Layout,
    triple: &'a Triple,
    first: usize,
    outlets: Vec<Outlet>,
}

/// An edge of a part, by its local ids there.
#[derive(Clone)]
struct Placed {
    src: u64,
    dst: u64,
    /// Row in the dataset.
    row: u64,
}

/// The output of an edge type in one part.
struct Outlet {
    edges: EdgeWriter,
    columns: Vec<Box<dyn Rows>>,
    pending: EdgeChunk,
}

struct Target<'a>(&'a DatasetWriter, &'a Triple);

impl CreateColumn for Target<'_> {
    type Column<T: Element> = ColumnWriter<T>;

    fn create<T: Element>(&self, name: &str, row: &[u64]) -> Result<ColumnWriter<T>> {
        self.0.edge_column(self.1, name, row)
    }
}

impl<'a> Group<'a> {
    fn open(
        source: &Dataset,
        layout: &'a Layout,
        t: &'a EdgeType,
        first: usize,
        writers: &[DatasetWriter],
    ) -> Result<Self> {
        let mut outlets = Vec::new();
        for writer in writers {
            let mut columns = Vec::new();
            for spec in extra_columns(t) {
                let column = source.edge_column(&t.triple, &spec.name)?.expect("in the manifest");
                columns.push(rows(&column, &Target(writer, &t.triple))?);
            }
            let edges = writer.edge_writer(&t.triple, None)?;
            outlets.push(Outlet { edges, columns, pending: EdgeChunk::default() });
        }
        Ok(Self { layout, triple: &t.triple, first, outlets })
    }

    fn run(mut self, source: &Dataset) -> Result<Vec<Vec<gnarl_graph::ColumnSpec>>> {
        let layout = self.layout;
        let src_type = &layout.types[layout.type_index(&self.triple.src)];
        let dst_type = &layout.types[layout.type_index(&self.triple.dst)];
        let parts = self.first..self.first + self.outlets.len();
        let mut stream = source.edges_of(self.triple)?;
        let mut chunk = EdgeChunk::default();
        let mut tasks: Vec<Vec<Vec<Placed>>> = Vec::new();
        let mut first_row = 0;
        while stream.next_chunk(&mut chunk)? {
            tasks.resize_with(chunk.len().div_ceil(GRAIN), || vec![Vec::new(); parts.len()]);
            tasks.par_iter_mut().enumerate().for_each(|(i, placed)| {
                placed.iter_mut().for_each(Vec::clear);
                for at in i * GRAIN..chunk.len().min((i + 1) * GRAIN) {
                    if let (Some(u), Some(v)) =
                        (chunk.src.get(at + AHEAD), chunk.dst.get(at + AHEAD))
                    {
                        layout.ask(src_type.ids.start + u);
                        layout.ask(dst_type.ids.start + v);
                    }
                    let u = src_type.ids.start + chunk.src[at];
                    let v = dst_type.ids.start + chunk.dst[at];
                    layout.halo.parts_of_edge(&layout.of, (u, v), parts.clone(), |part| {
                        let src = layout.local(part, src_type, u);
                        let dst = layout.local(part, dst_type, v);
                        let row = first_row + at as u64;
                        placed[part - parts.start].push(Placed { src, dst, row });
                    });
                }
            });
            self.outlets.par_iter_mut().enumerate().try_for_each(|(part, outlet)| {
                tasks.iter().flat_map(|placed| &placed[part]).try_for_each(|edge| outlet.take(edge))
            })?;
            first_row += chunk.len() as u64;
        }
        self.outlets.into_iter().map(Outlet::finish).collect()
    }
}

impl Outlet {
    fn take(&mut self, edge: &Placed) -> Result<()> {
        self.pending.src.push(edge.src);
        self.pending.dst.push(edge.dst);
        self.columns.iter_mut().try_for_each(|c| c.row(edge.row))?;
        self.flush(BATCH)
    }

    fn flush(&mut self, least: usize) -> Result<()> {
        if self.pending.len() >= least {
            self.edges.push(&self.pending.src, &self.pending.dst)?;
            self.pending.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<gnarl_graph::ColumnSpec>> {
        self.flush(0)?;
        let mut specs = self.edges.finish()?;
        for column in self.columns {
            specs.push(column.finish()?);
        }
        Ok(specs)
    }
}
