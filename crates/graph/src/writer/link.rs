//! Nodes and edge types of another dataset, taken over by their files.

use std::path::Path;

use gnarl_common::{Context, Result, ResultExt};

use super::DatasetWriter;
use crate::column::ColumnSpec;
use crate::dataset::Dataset;
use crate::manifest::Triple;

impl DatasetWriter {
    /// Adds all node types of `source`, with all their columns. Files are linked where the file system can, else copied.
    ///
    /// # Errors
    /// If a file cannot be linked or copied.
    pub fn link_nodes(&mut self, source: &Dataset) -> Result<()> {
        self.link_columns(source, |_| true)
    }

    /// Adds all node types of `source` without their features: with ids, labels, splits and names, likewise.
    ///
    /// # Errors
    /// As [`DatasetWriter::link_nodes`].
    pub fn link_nodes_without_features(&mut self, source: &Dataset) -> Result<()> {
        self.link_columns(source, |name| name != "features" && !name.starts_with("features."))
    }

    fn link_columns(&mut self, source: &Dataset, takes: impl Fn(&str) -> bool) -> Result<()> {
        for t in &source.manifest().node_types {
            let mut t = t.clone();
            t.columns.retain(|column| takes(&column.name));
            link(source, &t.columns, self.tmp_dir())?;
            self.manifest.node_types.push(t);
        }
        Ok(())
    }

    /// Adds an edge type of `source` with all its columns, likewise. Its topology is built anew.
    ///
    /// # Errors
    /// If there is no such type, or a file cannot be linked or copied.
    pub fn link_edges(&mut self, source: &Dataset, triple: &Triple) -> Result<()> {
        let mut t = source.manifest().edge_type(triple)?.clone();
        t.columns.retain(|column| !column.name.starts_with("csc."));
        link(source, &t.columns, self.tmp_dir())?;
        self.manifest.edge_types.push(t);
        Ok(())
    }
}

fn link(source: &Dataset, columns: &[ColumnSpec], dir: &Path) -> Result<()> {
    for column in columns {
        let from = source.dir().join(&column.file);
        let to = dir.join(&column.file);
        if std::fs::hard_link(&from, &to).is_err() {
            let copied = std::fs::copy(&from, &to).at(&from);
            copied.while_doing(|| format!("copying to {}", to.display()))?;
        }
    }
    Ok(())
}
