//! The datasets of the nodes that parts own: one pass over each column for all parts, so that columns larger than memory are
//! read once and in order.

use std::path::Path;

use gnarl_common::error::{Context, Error, Result};
use gnarl_common::{Buf, Element};
use gnarl_graph::{
    ColumnSpec, ColumnWriter, Dataset, DatasetWriter, EdgeType, FinishOptions, IdWidth, Narrow,
    NodeType,
};
use rayon::prelude::*;
use serde_json::json;

use super::distribute::OPEN_FILES;
use super::layout::{Layout, TypeSpan};
use super::nodes::{self, Target, degree_column, is_below, offsets};
use super::rows::{Rows, rows};
use crate::dataset::part_dir;

/// Nodes that all parts take their own from before any goes on.
const BLOCK: u64 = 1 << 15;
/// Values buffered in a column: pushing single ones would each start a checksum.
const BATCH: usize = 1 << 10;

/// Writes the dataset of the nodes that each part owns, without edges, below `out`.
pub(crate) fn write(source: &Dataset, layout: &Layout, out: &Path) -> Result<()> {
    let create = |part: usize| {
        let width = IdWidth::for_nodes(layout.part_nodes(part));
        let mut writer = DatasetWriter::create(out.join(part_dir(part)), width)?;
        writer.name(format!("{}, part {part}", source.manifest().name));
        writer.origin(json!({ "part": part, "of": source.manifest().name }));
        Ok(writer)
    };
    let mut writers = (0..layout.parts).map(create).collect::<Result<Vec<_>>>()?;
    for (span, info) in layout.types.iter().zip(&source.manifest().node_types) {
        for (part, writer) in writers.iter_mut().enumerate() {
            let target = writer.add_node_type(&info.name, span.core(part));
            target.core = Some(span.core(part));
            target.classes = info.classes;
            target.csr_width = info.csr_width;
        }
        let pass = Pass { source, layout, span, info };
        let written = pass.columns(&mut writers);
        written.while_doing(|| format!("writing the nodes {} of parts", info.name))?;
    }
    let finish = |writer: DatasetWriter| writer.finish(FinishOptions::default()).map(drop);
    writers.into_par_iter().try_for_each(finish)
}

/// The nodes of one type.
struct Pass<'a> {
    source: &'a Dataset,
    layout: &'a Layout,
    span: &'a TypeSpan,
    info: &'a NodeType,
}

/// A column of a part, or several of one row structure, that nodes are appended to.
trait Sink: Send {
    /// Appends a node, by its dataset id.
    fn take(&mut self, node: u64) -> Result<()>;

    /// Releases the memory of the source's rows of some nodes.
    fn forget(&self, _nodes: std::ops::Range<u64>) {}

    /// Completes the columns.
    fn finish(self: Box<Self>) -> Result<Vec<ColumnSpec>>;
}

type MakeSink<'a> = dyn Fn(&mut DatasetWriter) -> Result<Box<dyn Sink>> + 'a;

impl Pass<'_> {
    fn columns(&self, writers: &mut [DatasetWriter]) -> Result<()> {
        let Self { source, info, layout, span } = *self;
        let ntype = &info.name;
        self.run(writers, &|writer| {
            Ok(Box::new(Values::create(writer, ntype, "orig_id", |node| node)?))
        })?;
        self.degrees(writers)?;
        for writer in writers.iter_mut() {
            nodes::copy_tables(source, info, writer)?;
        }
        let columns = || info.columns.iter().filter(|column| !nodes::is_table(column));
        let ragged: Vec<(&str, &str)> = columns().filter_map(|c| offsets(&c.name)).collect();
        for &(prefix, name) in &ragged {
            let siblings = columns().filter(|c| c.name != name && is_below(&c.name, prefix));
            let siblings: Vec<&ColumnSpec> = siblings.collect();
            self.run(writers, &|writer| {
                Ok(Box::new(Ragged::create(source, ntype, (name, &siblings), writer)?))
            })?;
        }
        for spec in columns().filter(|spec| nodes::is_copied(spec, &ragged)) {
            let column = source.node_column(ntype, &spec.name)?.expect("listed in the manifest");
            self.run(writers, &|writer| {
                Ok(Box::new(Copied(rows(&column, &Target(writer, ntype))?)))
            })?;
        }
        for (part, writer) in writers.iter_mut().enumerate() {
            nodes::splits(source, (layout, span), part, writer)?;
        }
        Ok(())
    }

    /// In-degrees in the whole graph, as of parts with lists.
    fn degrees(&self, writers: &mut [DatasetWriter]) -> Result<()> {
        let manifest = self.source.manifest();
        let into: Vec<&EdgeType> =
            manifest.edge_types.iter().filter(|t| t.triple.dst == self.info.name).collect();
        let offsets = into.iter().map(|t| {
            let column = self.source.edge_column(&t.triple, "csc.indptr")?;
            let lacks = || {
                let dir = self.source.dir().display();
                Error::invalid(format!("{dir}: {}: no csc.indptr", t.triple))
            };
            Narrow::of(&column.ok_or_else(lacks)?)
        });
        let offsets = offsets.collect::<Result<Vec<_>>>()?;
        let degree = |of: &Narrow, node: u64| {
            (of.get(node + 1) - of.get(node)).min(u64::from(u32::MAX)) as u32
        };
        if manifest.edge_types.len() > 1 {
            for (t, of) in into.iter().zip(&offsets) {
                let name = degree_column(manifest.edge_types.len(), &t.triple);
                self.run(writers, &|writer| {
                    let of = of.clone();
                    let value = move |node| degree(&of, node);
                    Ok(Box::new(Values::create(writer, &self.info.name, &name, value)?))
                })?;
            }
        }
        self.run(writers, &|writer| {
            let offsets = offsets.clone();
            let sum = move |node| {
                offsets.iter().fold(0u32, |sum, of| sum.saturating_add(degree(of, node)))
            };
            Ok(Box::new(Values::create(writer, &self.info.name, "degree", sum)?))
        })
    }

    /// Appends every node to the columns that `make` makes for its part, as many parts at a time as files may be open.
    fn run(&self, writers: &mut [DatasetWriter], make: &MakeSink<'_>) -> Result<()> {
        let Self { layout, span, info, .. } = *self;
        for (group, writers) in writers.chunks_mut(OPEN_FILES / 4).enumerate() {
            let first_part = group * (OPEN_FILES / 4);
            let mut sinks = writers.iter_mut().map(make).collect::<Result<Vec<_>>>()?;
            for first in span.ids.clone().step_by(BLOCK as usize) {
                let block = first..(first + BLOCK).min(span.ids.end);
                sinks.par_iter_mut().enumerate().try_for_each(|(i, sink)| {
                    let of = &layout.of[block.start as usize..block.end as usize];
                    let own = (block.start..).zip(of);
                    let own = own.filter(|&(_, &part)| part as usize == first_part + i);
                    own.map(|(node, _)| node - span.ids.start).try_for_each(|node| sink.take(node))
                })?;
                if let Some(sink) = sinks.first() {
                    sink.forget(block.start - span.ids.start..block.end - span.ids.start);
                }
            }
            for (writer, sink) in writers.iter_mut().zip(sinks) {
                let specs = sink.finish()?;
                writer.node_type(&info.name)?.columns.extend(specs);
            }
        }
        Ok(())
    }
}

/// A column of a value per node.
struct Values<T, F> {
    column: ColumnWriter<T>,
    pending: Vec<T>,
    value: F,
}

impl<T: Element, F: Fn(u64) -> T + Send> Values<T, F> {
    fn create(writer: &DatasetWriter, ntype: &str, name: &str, value: F) -> Result<Self> {
        let column = writer.node_column::<T>(ntype, name, &[])?;
        Ok(Self { column, pending: Vec::with_capacity(BATCH), value })
    }
}

impl<T: Element, F: Fn(u64) -> T + Send> Sink for Values<T, F> {
    fn take(&mut self, node: u64) -> Result<()> {
        self.pending.push((self.value)(node));
        if self.pending.len() == BATCH {
            self.column.push(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Vec<ColumnSpec>> {
        self.column.push(&self.pending)?;
        Ok(vec![self.column.finish()?])
    }
}

/// A column of a row per node.
struct Copied(Box<dyn Rows>);

impl Sink for Copied {
    fn take(&mut self, node: u64) -> Result<()> {
        self.0.row(node)
    }

    fn forget(&self, nodes: std::ops::Range<u64>) {
        self.0.forget(nodes);
    }

    fn finish(self: Box<Self>) -> Result<Vec<ColumnSpec>> {
        Ok(vec![self.0.finish()?])
    }
}

/// Offsets, and the columns they point into.
struct Ragged {
    old: Buf<u64>,
    offsets: Values<u64, fn(u64) -> u64>,
    end: u64,
    siblings: Vec<Box<dyn Rows>>,
}

impl Ragged {
    fn create(
        source: &Dataset,
        ntype: &str,
        (name, siblings): (&str, &[&ColumnSpec]),
        writer: &DatasetWriter,
    ) -> Result<Self> {
        let column = source.node_column(ntype, name)?.expect("listed in the manifest");
        let mut offsets = Values::create(writer, ntype, name, (|end| end) as fn(u64) -> u64)?;
        offsets.take(0)?;
        let siblings = siblings.iter().map(|sibling| {
            let column = source.node_column(ntype, &sibling.name)?.expect("in the manifest");
            rows(&column, &Target(writer, ntype))
        });
        let siblings = siblings.collect::<Result<_>>()?;
        Ok(Self { old: column.values()?, offsets, end: 0, siblings })
    }
}

impl Sink for Ragged {
    fn take(&mut self, node: u64) -> Result<()> {
        let list = nodes::list(&self.old, node)?;
        self.end += list.end - list.start;
        self.offsets.take(self.end)?;
        self.siblings.iter_mut().try_for_each(|copy| copy.values(list.clone()))
    }

    fn finish(self: Box<Self>) -> Result<Vec<ColumnSpec>> {
        let mut specs = Box::new(self.offsets).finish()?;
        for sibling in self.siblings {
            specs.push(sibling.finish()?);
        }
        Ok(specs)
    }
}
