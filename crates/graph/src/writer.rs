//! Writing datasets: columns go to a temporary directory that takes its name at the end.

mod columns;
mod finish;
mod link;

use std::path::{Path, PathBuf};

#[cfg(doc)]
use gnarl_common::staging::Claim;
use gnarl_common::staging::Staging;
use gnarl_common::{Element, Error, Result};

use crate::column::ColumnSpec;
use crate::manifest::{EdgeFacts, EdgeType, MANIFEST, Manifest, NodeType, Triple, VERSION};
pub(crate) use columns::IdWriter;
pub use columns::{ColumnWriter, EdgeWriter};

/// Width of stored ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdWidth {
    /// Ids below 2^32.
    U32,
    /// Any id.
    U64,
}

impl IdWidth {
    /// The narrowest width for `num_nodes` nodes.
    pub fn for_nodes(num_nodes: u64) -> Self {
        if num_nodes <= 1 << 32 { Self::U32 } else { Self::U64 }
    }
}

/// Options for finishing the topology.
#[derive(Debug, Clone, Copy)]
pub struct FinishOptions {
    /// Memory limit of building the CSC, in bytes.
    pub memory: u64,
    /// Drop repeated edges (edges then carry no columns of their own).
    pub coalesce: bool,
    /// Keep the row of each edge beside the lists even where edges have no columns of their own, so that samplers can tell
    /// which edges they chose. Not with `coalesce`.
    pub edge_rows: bool,
}

impl Default for FinishOptions {
    fn default() -> Self {
        Self { memory: 1 << 30, coalesce: false, edge_rows: false }
    }
}

/// A dataset being written. Nothing appears under its name until [`DatasetWriter::finish`];
/// dropping the writer removes what was written.
#[derive(Debug)]
pub struct DatasetWriter {
    out: PathBuf,
    staging: Staging,
    width: IdWidth,
    manifest: Manifest,
    /// Notes of an importer for its report.
    pub(crate) notes: crate::import::Notes,
}

impl DatasetWriter {
    /// Starts a dataset that will appear at `out`, which must not have one, unless a [`Claim`] of this
    /// process on that place says that it is to be replaced.
    ///
    /// # Errors
    /// As [`Staging::create`].
    pub fn create(out: impl Into<PathBuf>, width: IdWidth) -> Result<Self> {
        let out: PathBuf = out.into();
        let staging = Staging::create(&out, MANIFEST)?;
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = Manifest {
            format: "gnarl-dataset".into(),
            version: VERSION,
            name,
            id_width: if width == IdWidth::U32 { 32 } else { 64 },
            node_types: Vec::new(),
            edge_types: Vec::new(),
            origin: serde_json::Value::Null,
            request: staging.claim().request().clone(),
        };
        let notes = crate::import::Notes::default();
        Ok(Self { out, staging, width, manifest, notes })
    }

    /// Directory of the columns before the end.
    pub fn tmp_dir(&self) -> &Path {
        self.staging.path()
    }

    /// Records the origin of the data.
    pub fn origin(&mut self, origin: serde_json::Value) {
        self.manifest.origin = origin;
    }

    /// Sets a human-readable name; the directory's name by default.
    pub fn name(&mut self, name: impl Into<String>) {
        self.manifest.name = name.into();
    }

    /// Adds a node type of `count` nodes.
    pub fn add_node_type(&mut self, name: &str, count: u64) -> &mut NodeType {
        self.manifest.node_types.push(NodeType {
            name: name.into(),
            count,
            core: None,
            classes: None,
            csr_width: None,
            columns: Vec::new(),
        });
        self.manifest.node_types.last_mut().expect("just pushed")
    }

    /// A node type added before.
    pub fn node_type(&mut self, name: &str) -> Result<&mut NodeType> {
        let known = self.manifest.node_type(name).err();
        let found = self.manifest.node_types.iter_mut().find(|t| t.name == name);
        found.ok_or_else(|| known.unwrap_or_else(|| Error::invalid("node type is missing")))
    }

    /// Adds an edge type; its `src` and `dst` columns come from an [`EdgeWriter`].
    pub fn add_edge_type(&mut self, triple: Triple, columns: Vec<ColumnSpec>) {
        let count = columns.first().and_then(|c| c.shape.first()).copied().unwrap_or(0);
        self.manifest.edge_types.push(EdgeType {
            triple,
            count,
            facts: EdgeFacts::default(),
            classes: None,
            columns,
        });
    }

    /// An edge type added before.
    pub fn edge_type(&mut self, triple: &Triple) -> Result<&mut EdgeType> {
        let known = self.manifest.edge_type(triple).err();
        let found = self.manifest.edge_types.iter_mut().find(|t| t.triple == *triple);
        found.ok_or_else(|| known.unwrap_or_else(|| Error::invalid("edge type is missing")))
    }

    /// Starts a column of a node type; add the result of [`ColumnWriter::finish`] to its columns.
    pub fn node_column<T: Element>(
        &self,
        ntype: &str,
        name: &str,
        row: &[u64],
    ) -> Result<ColumnWriter<T>> {
        ColumnWriter::create(self.tmp_dir(), &safe(ntype), name, row)
    }

    /// Starts a column of an edge type.
    pub fn edge_column<T: Element>(
        &self,
        t: &Triple,
        name: &str,
        row: &[u64],
    ) -> Result<ColumnWriter<T>> {
        ColumnWriter::create(self.tmp_dir(), &edge_stem(t), name, row)
    }

    /// Starts the id columns of an edge type. With `limits` (source and destination node counts),
    /// ids are checked when pushed; without, [`EdgeWriter::largest`] has them at the end.
    pub fn edge_writer(&self, t: &Triple, limits: Option<(u64, u64)>) -> Result<EdgeWriter> {
        let column = |name| self.id_column(&edge_stem(t), name);
        Ok(EdgeWriter::new(t.clone(), column("src")?, column("dst")?, limits))
    }

    fn id_column(&self, stem: &str, name: &str) -> Result<IdWriter> {
        Ok(match self.width {
            IdWidth::U32 => IdWriter::U32(ColumnWriter::create(self.tmp_dir(), stem, name, &[])?),
            IdWidth::U64 => IdWriter::U64(ColumnWriter::create(self.tmp_dir(), stem, name, &[])?),
        })
    }

    /// Writes a whole split of a node type added before; ids are sorted first.
    ///
    /// # Errors
    /// If an id is out of range or listed twice, or the node type has a split of that name.
    pub fn add_split(&mut self, ntype: &str, name: &str, mut ids: Vec<u64>) -> Result<()> {
        let node_type = self.manifest.node_type(ntype)?;
        let count = node_type.count;
        // It is a part of a file's name.
        if name.is_empty() || name != safe(name) {
            return Err(Error::usage(format!("invalid split name '{name}' of {ntype} nodes"))
                .hint("names of splits are of letters, digits, '_' and '-'"));
        }
        if node_type.columns.iter().any(|c| c.name.strip_prefix("split.") == Some(name)) {
            return Err(Error::usage(format!("duplicate split '{name}' of {ntype} nodes"))
                .hint("val, validation and dev are other names of valid"));
        }
        if let Some(row) = ids.iter().position(|&id| id >= count) {
            return Err(Error::invalid(format!(
                "split {name}: row {row}: node {} is not below the number of {ntype} nodes, {count}",
                ids[row]
            )));
        }
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|w| w[0] == w[1]) {
            return Err(Error::invalid(format!("split {name}: node {} is listed twice", twice[0])));
        }
        let mut column = self.split_column(ntype, name)?;
        column.push(&ids)?;
        let spec = column.finish()?;
        self.node_type(ntype)?.columns.push(spec);
        Ok(())
    }

    /// Starts a split's column; the ids pushed must ascend.
    pub(crate) fn split_column(&self, ntype: &str, name: &str) -> Result<IdWriter> {
        self.id_column(&safe(ntype), &format!("split.{name}"))
    }
}

fn safe(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
        .collect()
}

fn edge_stem(t: &Triple) -> String {
    format!("{}.{}.{}", safe(&t.src), safe(&t.rel), safe(&t.dst))
}
