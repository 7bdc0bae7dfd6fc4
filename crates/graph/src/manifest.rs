//! `dataset.json`: the manifest of a dataset directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use gnarl_common::{Error, Result, sealed_json};
use serde::{Deserialize, Serialize};

use crate::column::ColumnSpec;

/// File name of the manifest.
pub const MANIFEST: &str = "dataset.json";
/// Version written by this build; older and newer ones are rejected.
pub const VERSION: u32 = 1;
/// Node type of a homogeneous graph.
pub const DEFAULT_NODE_TYPE: &str = "_N";

/// The manifest of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `gnarl-dataset`.
    pub format: String,
    /// Format version, see [`VERSION`].
    pub version: u32,
    /// Human-readable name.
    pub name: String,
    /// Width of stored ids in bits, 32 or 64.
    pub id_width: u32,
    /// Node types in id order: types are numbered one after the other in the graph-wide id space.
    pub node_types: Vec<NodeType>,
    /// Edge types.
    pub edge_types: Vec<EdgeType>,
    /// Origin of the data: importer, options, generator parameters.
    #[serde(default)]
    pub origin: serde_json::Value,
    /// The dataset section of the run file that created it, for comparison with another run file's.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub request: serde_json::Value,
}

/// A kind of node and its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeType {
    /// Name, [`DEFAULT_NODE_TYPE`] in a homogeneous graph.
    pub name: String,
    /// Number of nodes.
    pub count: u64,
    /// In a part of a partitioned dataset: the number of nodes, first in id order, that the part
    /// owns. The others are HALO copies of nodes owned elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u64>,
    /// Number of label classes (or tasks, when several labels may hold), if labeled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<u64>,
    /// Width of CSR features, which their columns do not determine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csr_width: Option<u64>,
    /// Named columns: `features` or `features.{indptr,indices,values}`, `label`, `user_id`,
    /// `split.<name>`; in parts also `orig_id` (dataset id within the node type) and `degree`
    /// (in-degree in the whole graph).
    pub columns: Vec<ColumnSpec>,
}

/// A kind of edge and its columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeType {
    /// `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// Number of edges.
    pub count: u64,
    /// Facts found by the importer.
    #[serde(default)]
    pub facts: EdgeFacts,
    /// Number of label classes (or tasks, when several labels may hold), if edges have classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<u64>,
    /// Named columns: `src`, `dst`, optional `weight`, `time`, `features`, `relation`, `label`, `split`,
    /// and the built topology `csc.indptr`, `csc.indices`, `csc.edge`, `csc.weight`.
    pub columns: Vec<ColumnSpec>,
}

/// Properties of one edge type, counted while the topology is built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeFacts {
    /// Edges from a node to itself (only within one node type).
    pub self_loops: u64,
    /// Edges that repeat an earlier one.
    pub duplicates: u64,
    /// True if every edge has its reverse, by order-independent 128-bit fingerprint.
    pub symmetric: bool,
    /// Destination nodes without an incoming edge.
    pub without_in_edges: u64,
    /// Largest in-degree.
    pub max_in_degree: u64,
}

/// The name of an edge type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Triple {
    /// Node type of the sources.
    pub src: String,
    /// Relation.
    pub rel: String,
    /// Node type of the destinations.
    pub dst: String,
}

impl Triple {
    /// The edge type of the reversed edges: `destination:rev_relation:source`.
    pub fn reversed(&self) -> Self {
        Self { src: self.dst.clone(), rel: format!("rev_{}", self.rel), dst: self.src.clone() }
    }

    /// The edge type of a homogeneous graph, `_N:_E:_N`.
    pub fn plain() -> Self {
        Self { src: DEFAULT_NODE_TYPE.into(), rel: "_E".into(), dst: DEFAULT_NODE_TYPE.into() }
    }
}

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.src, self.rel, self.dst)
    }
}

impl FromStr for Triple {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s.split(':').collect::<Vec<_>>()[..] {
            [src, rel, dst] if ![src, rel, dst].contains(&"") => {
                Ok(Self { src: src.into(), rel: rel.into(), dst: dst.into() })
            }
            _ => Err(Error::usage(format!("'{s}' is not an edge type"))
                .hint("edge types are written source:relation:destination")),
        }
    }
}

impl TryFrom<String> for Triple {
    type Error = Error;

    fn try_from(s: String) -> Result<Self> {
        s.parse()
    }
}

impl From<Triple> for String {
    fn from(t: Triple) -> Self {
        t.to_string()
    }
}

impl Manifest {
    /// Reads and checks the manifest in `dir`.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        if !path.exists() {
            return Err(Error::invalid(format!("{}: no {MANIFEST} here", dir.display()))
                .hint("make a dataset with 'gnarl import' or 'gnarl generate'"));
        }
        let manifest: Self = sealed_json::read(&path)?;
        if manifest.format != "gnarl-dataset" || manifest.version != VERSION {
            return Err(Error::invalid(format!(
                "{}: format '{}' version {}, this build reads 'gnarl-dataset' version {VERSION}",
                path.display(),
                manifest.format,
                manifest.version
            )));
        }
        for t in &manifest.edge_types {
            manifest
                .node_type(&t.triple.src)
                .and(manifest.node_type(&t.triple.dst))
                .map_err(|e| e.context(format!("{}: edge type {}", path.display(), t.triple)))?;
        }
        manifest.check().map_err(|e| e.context(format!("checking {}", path.display())))?;
        Ok(manifest)
    }

    /// The node type `name`.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn node_type(&self, name: &str) -> Result<&NodeType> {
        self.node_types.iter().find(|t| t.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.node_types.iter().map(|t| t.name.as_str()).collect();
            Error::invalid(format!("unknown node type '{name}'")).hint(format!(
                "{} has: {}",
                self.name,
                known.join(", ")
            ))
        })
    }

    /// The edge type `triple`.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn edge_type(&self, triple: &Triple) -> Result<&EdgeType> {
        self.edge_types.iter().find(|t| t.triple == *triple).ok_or_else(|| {
            let known: Vec<String> = self.edge_types.iter().map(|t| t.triple.to_string()).collect();
            Error::invalid(format!("unknown edge type '{triple}'")).hint(format!(
                "{} has: {}",
                self.name,
                known.join(", ")
            ))
        })
    }

    /// Nodes of all types.
    pub fn num_nodes(&self) -> u64 {
        self.node_types.iter().map(|t| t.count).sum()
    }

    /// Edges of all types.
    pub fn num_edges(&self) -> u64 {
        self.edge_types.iter().map(|t| t.count).sum()
    }

    /// First graph-wide id of each node type: types follow each other in manifest order.
    pub fn node_offsets(&self) -> BTreeMap<String, u64> {
        let mut offset = 0;
        let mut offsets = BTreeMap::new();
        for t in &self.node_types {
            offsets.insert(t.name.clone(), offset);
            offset += t.count;
        }
        offsets
    }
}
