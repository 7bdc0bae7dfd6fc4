//! `part.json`: the manifest of a vertex-cut part's topology.

use std::path::Path;

use gnarl_common::error::{Context, Error, Result, ResultExt};
use gnarl_common::sealed_json;
use gnarl_graph::{ColumnSpec, Triple, check_columns};
use serde::{Deserialize, Serialize};

/// Directory of a part's edges, within the part's.
pub const TOPOLOGY: &str = "topology";
/// The column of times of nodes.
pub(super) const TIMES: &str = "time";
/// Version written and read by this build.
pub const VERTEX_CUT_VERSION: u32 = 1;
const FORMAT: &str = "gnarl-vertex-cut";
const FILE: &str = "part.json";

/// Contents of `part.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VertexCutManifest {
    /// Always `gnarl-vertex-cut`.
    pub format: String,
    /// Format version, see [`VERTEX_CUT_VERSION`].
    pub version: u32,
    /// Part number.
    pub part: usize,
    /// Number of parts.
    pub parts: usize,
    /// Number of nodes.
    pub nodes: u64,
    /// Edges.
    pub edges: u64,
    /// Node types in the order of their ids.
    pub node_types: Vec<CutNodeType>,
    /// Edge types, numbered in this order.
    pub edge_types: Vec<CutEdgeType>,
    /// The topology, see `docs/formats.md`.
    pub columns: Vec<ColumnSpec>,
}

/// A node type in a vertex-cut part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutNodeType {
    /// Name.
    pub name: String,
    /// First graph-wide id.
    pub first: u64,
    /// Number of nodes in the whole graph.
    pub count: u64,
    /// Local ids: from, to below.
    pub local: [u64; 2],
}

/// An edge type in a vertex-cut part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutEdgeType {
    /// `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// Edges of it in the part.
    pub count: u64,
    /// Edge columns, such as `weight`: one row per edge, in the order of edge ids.
    pub columns: Vec<ColumnSpec>,
}

impl VertexCutManifest {
    pub(crate) fn new(part: usize, parts: usize) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERTEX_CUT_VERSION,
            part,
            parts,
            nodes: 0,
            edges: 0,
            node_types: Vec::new(),
            edge_types: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Bytes of the topology's columns, without edge columns.
    pub fn topology_bytes(&self) -> u64 {
        self.columns.iter().map(ColumnSpec::num_bytes).sum()
    }

    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE);
        let text = sealed_json::to_string(self)?;
        std::fs::write(&path, text).at(&path)
    }

    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let manifest: Self = sealed_json::read(&path)?;
        check_columns("the topology", &manifest.columns)
            .while_doing(|| format!("reading {}", path.display()))?;
        for edges in &manifest.edge_types {
            check_columns(&edges.triple.to_string(), &edges.columns)
                .while_doing(|| format!("reading {}", path.display()))?;
        }
        if manifest.format == FORMAT && manifest.version == VERTEX_CUT_VERSION {
            return Ok(manifest);
        }
        Err(Error::invalid(format!(
            "{}: format '{}' version {}, this build reads '{FORMAT}' version {VERTEX_CUT_VERSION}",
            path.display(),
            manifest.format,
            manifest.version
        )))
    }
}
