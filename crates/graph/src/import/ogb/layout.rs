//! The contents of a `raw/` folder, whatever its layout.

use std::path::{Path, PathBuf};

use gnarl_common::Error;

use crate::import::extra::Extra;
use crate::import::source::Source;
use crate::manifest::Triple;

/// Numbers in a text table without header, or in an array.
pub(super) enum Values {
    Csv(PathBuf),
    Array(Source),
}

/// A node type and the files of its columns.
pub(super) struct NodePart {
    pub name: String,
    pub count: u64,
    pub features: Option<Values>,
    pub labels: Option<Values>,
    /// Further columns by name.
    pub more: Vec<(String, Values)>,
}

impl NodePart {
    pub fn new(name: impl Into<String>, count: u64) -> Self {
        Self { name: name.into(), count, features: None, labels: None, more: Vec::new() }
    }
}

/// An edge type and the files of its columns.
pub(super) struct EdgePart {
    pub triple: Triple,
    /// Stated number of edges.
    pub count: Option<u64>,
    pub edges: Values,
    pub more: Vec<(Extra, Values)>,
}

/// Contents of a `raw/` folder.
pub(super) struct Layout {
    pub nodes: Vec<NodePart>,
    pub edges: Vec<EdgePart>,
}

/// The error of a folder for graph property prediction.
pub(super) fn many_graphs(path: &Path, rows: u64) -> Error {
    Error::invalid(format!("{}: counts of {rows} graphs, there must be one", path.display()))
        .hint("folders of many small graphs cannot be imported")
}
