//! Opened datasets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gnarl_common::memory::SparePages;
use gnarl_common::{Buf, Context, Error, Place, Result};

use crate::column::{Column, ColumnSpec};
use crate::csc::Csc;
use crate::edges::{DatasetEdges, IdReader, TypeReader};
use crate::features::{Features, Labels};
use crate::manifest::{EdgeType, Manifest, NodeType, Triple};
use crate::narrow::Narrow;
use crate::validate::{check_lists, check_values};

/// A dataset directory. Columns are mapped on access.
#[derive(Debug, Clone)]
pub struct Dataset {
    dir: PathBuf,
    manifest: Manifest,
    /// The files that columns are read from into memory on access, and pages for them; none if they are mapped.
    place: Option<(Arc<dyn Place>, Arc<SparePages>)>,
}

impl Dataset {
    /// Opens the dataset in `dir`.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        let manifest = Manifest::read(&dir).while_doing(|| {
            // A relative path is meaningless without the folder it is relative to.
            let full = std::path::absolute(&dir).unwrap_or_default();
            match full == dir {
                true => format!("opening dataset {}", dir.display()),
                false => format!("opening dataset {} ({})", dir.display(), full.display()),
            }
        })?;
        Ok(Self { dir, manifest, place: None })
    }

    pub(crate) fn unfinished(dir: PathBuf, manifest: Manifest) -> Self {
        Self { dir, manifest, place: None }
    }

    /// The dataset with columns that are read into memory on access, and checked, in place of mapped: from `place`, which
    /// has the files of its directory, to `spare` pages.
    pub fn in_memory(self, place: Arc<dyn Place>, spare: Arc<SparePages>) -> Self {
        Self { place: Some((place, spare)), ..self }
    }

    /// Directory of the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Contents of `dataset.json`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The only node and edge type of a homogeneous graph.
    ///
    /// # Errors
    /// If the graph has several of either.
    pub fn plain(&self) -> Result<(&NodeType, &EdgeType)> {
        match (&self.manifest.node_types[..], &self.manifest.edge_types[..]) {
            ([node], [edge]) => Ok((node, edge)),
            (nodes, edges) => Err(Error::usage(format!(
                "{} has {} node types and {} edge types; this needs a plain graph",
                self.manifest.name,
                nodes.len(),
                edges.len()
            ))),
        }
    }

    fn column(&self, specs: &[ColumnSpec], name: &str) -> Result<Option<Column>> {
        specs
            .iter()
            .find(|c| c.name == name)
            .map(|spec| match &self.place {
                Some((place, spare)) => Column::load(place.as_ref(), spec, spare),
                None => Column::open(&self.dir, spec),
            })
            .transpose()
            .while_doing(|| format!("reading {} of {}", name, self.dir.display()))
    }

    /// The column `name` of a node type, if it has one.
    pub fn node_column(&self, node_type: &str, name: &str) -> Result<Option<Column>> {
        self.column(&self.manifest.node_type(node_type)?.columns, name)
    }

    /// The column `name` of an edge type, if it has one.
    pub fn edge_column(&self, triple: &Triple, name: &str) -> Result<Option<Column>> {
        self.column(&self.manifest.edge_type(triple)?.columns, name)
    }

    /// The features of a node type, if it has any.
    pub fn features(&self, node_type: &str) -> Result<Option<Features>> {
        if let Some(dense) = self.node_column(node_type, "features")? {
            return Ok(Some(Features::Dense(dense)));
        }
        let Some(indptr) = self.node_column(node_type, "features.indptr")? else { return Ok(None) };
        let part = |name: &str| {
            self.node_column(node_type, name)?
                .ok_or_else(|| Error::invalid(format!("{node_type}: column {name} is missing")))
        };
        let width = self.manifest.node_type(node_type)?.csr_width.unwrap_or(0) as usize;
        Ok(Some(Features::Csr {
            indptr: indptr.values()?,
            indices: part("features.indices")?.values()?,
            values: part("features.values")?.values()?,
            width,
        }))
    }

    /// The labels of a node type, if it has any.
    pub fn labels(&self, node_type: &str) -> Result<Option<Labels>> {
        let Some(column) = self.node_column(node_type, "label")? else { return Ok(None) };
        let count = self.manifest.node_type(node_type)?.classes.unwrap_or(0) as usize;
        Ok(Some(match column.spec().shape.len() {
            1 => {
                let classes: Buf<i32> = column.values()?;
                let expected = format!("-1 or a class below {count}");
                check_values(&column, &classes, &expected, |class| {
                    class >= -1 && i64::from(class) < count as i64
                })?;
                Labels::Single { classes, count }
            }
            _ => Labels::Multi { tasks: column.width(), values: column.values()? },
        }))
    }

    /// The numbers of a node type that a regression learns, if it has any: the column `value`.
    pub fn values(&self, node_type: &str) -> Result<Option<Labels>> {
        let column = self.node_column(node_type, "value")?;
        let values = column.map(|column| column.values()).transpose()?;
        Ok(values.map(|values| Labels::Values { values }))
    }

    /// Names of a node type's splits, in stored order.
    pub fn split_names(&self, node_type: &str) -> Result<Vec<String>> {
        let columns = &self.manifest.node_type(node_type)?.columns;
        Ok(columns.iter().filter_map(|c| c.name.strip_prefix("split.")).map(Into::into).collect())
    }

    /// The nodes of a split, ascending.
    pub fn split(&self, node_type: &str, name: &str) -> Result<Option<Buf<u64>>> {
        let Some(column) = self.node_column(node_type, &format!("split.{name}"))? else {
            return Ok(None);
        };
        let count = self.manifest.node_type(node_type)?.count;
        let nodes = column.ids()?;
        check_values(&column, &nodes, &format!("a node below {count}"), |node| node < count)?;
        Ok(Some(nodes))
    }

    /// The in-neighbor lists of an edge type.
    ///
    /// # Errors
    /// If ids do not fit 32 bits: partition such a graph first. If lists are damaged, naming the file and row.
    pub fn csc(&self, triple: &Triple) -> Result<Csc> {
        let part = |name: &str| {
            self.edge_column(triple, name)?.ok_or_else(|| {
                Error::invalid(format!(
                    "{}: {triple}: column {name} is missing",
                    self.dir.display()
                ))
            })
        };
        let edge = self.edge_column(triple, "csc.edge")?.map(|c| Narrow::of(&c)).transpose()?;
        let columns = [part("csc.indptr")?, part("csc.indices")?];
        let [offsets, indices] = &columns;
        let csc = Csc { indptr: Narrow::of(offsets)?, indices: indices.ids32()?, edge };
        let sources = self.manifest.node_type(&triple.src)?.count;
        check_lists(&csc, sources, [offsets, indices])?;
        Ok(csc)
    }

    /// All edges, type after type, in graph-wide ids (see [`Manifest::node_offsets`]).
    pub fn edges(&self) -> Result<DatasetEdges> {
        let offsets = self.manifest.node_offsets();
        let mut types = Vec::new();
        for t in &self.manifest.edge_types {
            types.push(TypeReader {
                src_offset: offsets[&t.triple.src],
                dst_offset: offsets[&t.triple.dst],
                ..self.type_reader(t)?
            });
        }
        Ok(DatasetEdges::new(self.manifest.num_nodes(), types))
    }

    /// The edges of one type, in the ids of its own node types.
    pub fn edges_of(&self, triple: &Triple) -> Result<DatasetEdges> {
        let t = self.manifest.edge_type(triple)?;
        let count = |name: &str| self.manifest.node_type(name).map(|n| n.count);
        let nodes = count(&triple.src)?.max(count(&triple.dst)?);
        Ok(DatasetEdges::new(nodes, vec![self.type_reader(t)?]))
    }

    fn type_reader(&self, t: &EdgeType) -> Result<TypeReader> {
        let open = |name: &str, of: &str| {
            let spec = t.columns.iter().find(|c| c.name == name);
            let spec = spec.ok_or_else(|| Error::invalid(format!("{}: no {name}", t.triple)))?;
            let nodes = self.manifest.node_type(of)?.count;
            Ok::<_, Error>(IdReader::open(&self.dir, spec)?.checked(spec, nodes))
        };
        let src = open("src", &t.triple.src)?;
        let dst = open("dst", &t.triple.dst)?;
        let reader = TypeReader { src, dst, src_offset: 0, dst_offset: 0 };
        if reader.src.rows() != reader.dst.rows() {
            return Err(Error::invalid(format!("{}: src and dst differ in length", t.triple)));
        }
        Ok(reader)
    }
}
