//! The node columns of one part.

use std::ops::Range;

use gnarl_common::Element;
use gnarl_common::error::{Context, Error, Result, ResultExt};
use gnarl_graph::{
    ColumnSpec, ColumnWriter, Dataset, DatasetWriter, EdgeType, Narrow, NodeType, Triple,
};

use crate::write::layout::{Layout, TypeSpan};
use crate::write::rows::{CreateColumn, rows};

/// Adds every node type with its columns, HALO nodes included, to the dataset of `part`.
pub(crate) fn write(
    source: &Dataset,
    layout: &Layout,
    part: usize,
    writer: &mut DatasetWriter,
) -> Result<()> {
    for (span, info) in layout.types.iter().zip(&source.manifest().node_types) {
        let members = layout.members(part, span);
        let target = writer.add_node_type(&info.name, members.len() as u64);
        target.core = Some(span.core(part));
        target.classes = info.classes;
        target.csr_width = info.csr_width;
        let job = Job { source, info, members: &members };
        job.own_columns(writer).while_doing(|| format!("{} of part {part}", info.name))?;
        job.degrees(writer)?;
        job.copied_columns(writer).while_doing(|| format!("{} of part {part}", info.name))?;
        splits(source, (layout, span), part, writer)?;
    }
    Ok(())
}

struct Job<'a> {
    source: &'a Dataset,
    info: &'a NodeType,
    /// Dataset ids within the type, in local order.
    members: &'a [u64],
}

pub(super) struct Target<'a>(pub &'a DatasetWriter, pub &'a str);

impl CreateColumn for Target<'_> {
    type Column<T: Element> = ColumnWriter<T>;

    fn create<T: Element>(&self, name: &str, row: &[u64]) -> Result<ColumnWriter<T>> {
        self.0.node_column(self.1, name, row)
    }
}

impl Job<'_> {
    fn own_columns(&self, writer: &mut DatasetWriter) -> Result<()> {
        let mut ids = writer.node_column::<u64>(&self.info.name, "orig_id", &[])?;
        ids.push(self.members)?;
        let spec = ids.finish()?;
        writer.node_type(&self.info.name)?.columns.push(spec);
        Ok(())
    }

    /// In-degrees in the whole graph: `degree` over all edge types, and one per edge type
    /// where there are several.
    fn degrees(&self, writer: &mut DatasetWriter) -> Result<()> {
        let manifest = self.source.manifest();
        let mut total = vec![0u32; self.members.len()];
        for t in manifest.edge_types.iter().filter(|t| t.triple.dst == self.info.name) {
            let degrees = self.in_degrees(t)?;
            total.iter_mut().zip(&degrees).for_each(|(sum, d)| *sum = sum.saturating_add(*d));
            if manifest.edge_types.len() > 1 {
                self.put(writer, &degree_column(manifest.edge_types.len(), &t.triple), &degrees)?;
            }
        }
        self.put(writer, "degree", &total)
    }

    fn in_degrees(&self, t: &EdgeType) -> Result<Vec<u32>> {
        let indptr = self.source.edge_column(&t.triple, "csc.indptr")?.ok_or_else(|| {
            Error::invalid(format!("{}: {}: no csc.indptr", self.source.dir().display(), t.triple))
        })?;
        let indptr = Narrow::of(&indptr)?;
        let degree = |&v: &u64| indptr.get(v + 1) - indptr.get(v);
        Ok(self.members.iter().map(|v| degree(v).min(u32::MAX as u64) as u32).collect())
    }

    fn put(&self, writer: &mut DatasetWriter, name: &str, values: &[u32]) -> Result<()> {
        let mut column = writer.node_column::<u32>(&self.info.name, name, &[])?;
        column.push(values)?;
        let spec = column.finish()?;
        writer.node_type(&self.info.name)?.columns.push(spec);
        Ok(())
    }

    /// Copies the node columns of the source: one row a node, or offsets into sibling columns.
    fn copied_columns(&self, writer: &mut DatasetWriter) -> Result<()> {
        copy_tables(self.source, self.info, writer)?;
        let columns: Vec<&ColumnSpec> =
            self.info.columns.iter().filter(|column| !is_table(column)).collect();
        let ragged: Vec<(&str, &str)> = columns.iter().filter_map(|c| offsets(&c.name)).collect();
        for &(prefix, name) in &ragged {
            self.copy_ragged(prefix, name, writer)?;
        }
        for spec in columns.into_iter().filter(|spec| is_copied(spec, &ragged)) {
            let column = self.source.node_column(&self.info.name, &spec.name)?;
            let column = column.expect("listed in the manifest");
            let mut copy = rows(&column, &Target(writer, &self.info.name))?;
            self.members.iter().try_for_each(|&v| copy.row(v))?;
            let spec = copy.finish()?;
            writer.node_type(&self.info.name)?.columns.push(spec);
        }
        Ok(())
    }

    fn copy_ragged(&self, prefix: &str, name: &str, writer: &mut DatasetWriter) -> Result<()> {
        let ntype = &self.info.name;
        let column = self.source.node_column(ntype, name)?.expect("listed in the manifest");
        let old = column.values::<u64>()?;
        let mut offsets = writer.node_column::<u64>(ntype, name, &[])?;
        let mut end = 0;
        offsets.push(&[0])?;
        for &v in self.members {
            let list = list(&old, v)?;
            end += list.end - list.start;
            offsets.push(&[end])?;
        }
        let spec = offsets.finish()?;
        writer.node_type(ntype)?.columns.push(spec);
        let siblings = self.info.columns.iter();
        for sibling in siblings.filter(|c| c.name != name && is_below(&c.name, prefix)) {
            let column = self.source.node_column(ntype, &sibling.name)?.expect("in the manifest");
            let mut copy = rows(&column, &Target(writer, ntype))?;
            for &v in self.members {
                copy.values(list(&old, v)?)?;
            }
            let spec = copy.finish()?;
            writer.node_type(ntype)?.columns.push(spec);
        }
        Ok(())
    }
}

/// The range of the values of node `v`, by offsets of which there is one more than nodes.
pub(super) fn list(offsets: &[u64], v: u64) -> Result<Range<u64>> {
    let range = offsets[v as usize]..offsets[v as usize + 1];
    match range.start <= range.end {
        true => Ok(range),
        false => Err(Error::invalid(format!("the offsets of node {v} fall"))
            .hint("the file is damaged, or is not one that gnarl wrote")),
    }
}

/// Writes the splits of the part's core nodes, in local ids.
pub(super) fn splits(
    source: &Dataset,
    (layout, span): (&Layout, &TypeSpan),
    part: usize,
    writer: &mut DatasetWriter,
) -> Result<()> {
    for name in source.split_names(&span.name)? {
        let ids = source.split(&span.name, &name)?.unwrap_or_default();
        let wide = ids.iter().map(|&v| span.ids.start + v);
        let core = wide.filter(|&v| layout.of[v as usize] as usize == part);
        let local = core.map(|v| layout.local(part, span, v)).collect();
        writer.add_split(&span.name, &name, local)?;
    }
    Ok(())
}

/// Copies the tables of a node type, which parts have whole.
pub(super) fn copy_tables(
    source: &Dataset,
    info: &NodeType,
    writer: &mut DatasetWriter,
) -> Result<()> {
    for spec in info.columns.iter().filter(|column| is_table(column)) {
        let from = source.dir().join(&spec.file);
        std::fs::copy(&from, writer.tmp_dir().join(&spec.file)).at(&from)?;
        writer.node_type(&info.name)?.columns.push(spec.clone());
    }
    Ok(())
}

/// Returns whether a column has one row per class, not per node.
pub(super) fn is_table(column: &ColumnSpec) -> bool {
    column.name.starts_with(CLASS_NAMES)
}

/// Returns whether a column has a row per node that parts copy: neither of those that are made for them, nor below one of
/// the columns of offsets `ragged`.
pub(super) fn is_copied(column: &ColumnSpec, ragged: &[(&str, &str)]) -> bool {
    let name = &column.name;
    let own = name == "orig_id" || name.starts_with("degree") || name.starts_with("split.");
    !own && !ragged.iter().any(|(prefix, _)| is_below(name, prefix))
}

/// Prefix of columns with one row per class, not per node, which parts copy whole.
const CLASS_NAMES: &str = "class_name.";

/// Name of the part column with the whole graph's in-degrees over the edge type `triple`, one of `types`: `degree` where
/// it is the only one, `degree.<source type>.<relation>` otherwise.
pub fn degree_column(types: usize, triple: &Triple) -> String {
    match types {
        1 => "degree".into(),
        _ => format!("degree.{}.{}", triple.src, triple.rel),
    }
}

/// Prefix and name of a column of offsets.
pub(super) fn offsets(name: &str) -> Option<(&str, &str)> {
    let prefix = name.strip_suffix(".indptr").or_else(|| name.strip_suffix(".offsets"))?;
    Some((prefix, name))
}

pub(super) fn is_below(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}
