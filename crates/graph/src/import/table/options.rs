//! Options of imports from tables.

use std::path::PathBuf;

use gnarl_common::{Error, Result};

use super::{CsvFormat, Feature};
use crate::import::WeightType;
use crate::manifest::{DEFAULT_NODE_TYPE, Triple};

/// The kind of ids in tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdKind {
    /// Integers if the first row's is one, else strings. Integers with leading zeros are rejected.
    #[default]
    Auto,
    /// Integers.
    Integer,
    /// Strings.
    String,
}

/// A table of the nodes of one type; row `i` becomes node `i`.
#[derive(Debug, Clone)]
pub struct NodeTable {
    /// Node type.
    pub ntype: String,
    /// CSV or TSV, plain or compressed with gzip, or Parquet, detected by its first bytes.
    pub path: PathBuf,
    /// Column of ids; by default `id`, or the first without a header. A table with a header but
    /// without an `id`, or another unambiguous id column, numbers its nodes by row.
    pub id: Option<String>,
    /// Column of classes; by default `label`, if there and no `value` is named.
    pub label: Option<String>,
    /// Instead a column of numbers to be learned by regression; an empty cell is a node without one.
    pub value: Option<String>,
    /// Column of times: integers, or dates, as seconds since 1970-01-01 UTC.
    pub time: Option<String>,
    /// Number of classes; by default from the largest label.
    pub num_classes: Option<u64>,
    /// Column that names the split of each node, or is empty; by default `split`, if there.
    pub split: Option<String>,
    /// Columns that form the features.
    pub features: Vec<Feature>,
    /// Shares of the labeled nodes in random splits `train`, `valid` and `test`.
    pub shares: Option<[f64; 3]>,
}

impl NodeTable {
    /// The table at `path` with the default columns.
    pub fn new(ntype: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            ntype: ntype.into(),
            path: path.into(),
            id: None,
            label: None,
            value: None,
            time: None,
            num_classes: None,
            split: None,
            features: Vec::new(),
            shares: None,
        }
    }
}

/// A table of the edges of one type.
#[derive(Debug, Clone)]
pub struct EdgeTable {
    /// Edge type.
    pub triple: Triple,
    /// CSV or TSV, plain or compressed with gzip, or Parquet, detected by its first bytes.
    pub path: PathBuf,
    /// Column of sources; by default `src`, or the first without a header.
    pub src: Option<String>,
    /// Column of destinations; by default `dst`, or the second without a header.
    pub dst: Option<String>,
    /// Column of weights; by default `weight`, if there.
    pub weight: Option<String>,
    /// Column of integer times, or of dates, which become seconds since 1970-01-01; by default `time`,
    /// if there.
    pub time: Option<String>,
    /// Columns that form edge features.
    pub features: Vec<Feature>,
    /// Column of classes, as numbers or names; an empty cell is an edge without one.
    pub label: Option<String>,
    /// Alternatively a column of numbers to be learned by regression.
    pub value: Option<String>,
    /// Column that names the split of each edge, `train`, `valid` or `test`, or is empty.
    pub split: Option<String>,
    /// Shares of the labeled edges in random splits, if no column names the splits.
    pub shares: Option<[f64; 3]>,
}

impl EdgeTable {
    /// The table at `path` with the columns `src` and `dst`.
    pub fn new(triple: Triple, path: impl Into<PathBuf>) -> Self {
        Self {
            triple,
            path: path.into(),
            src: None,
            dst: None,
            weight: None,
            time: None,
            features: Vec::new(),
            label: None,
            value: None,
            split: None,
            shares: None,
        }
    }
}

/// Tables and options of [`tables`](super::tables).
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// Node tables, at most one per type.
    pub nodes: Vec<NodeTable>,
    /// Edge tables, one per edge type.
    pub edges: Vec<EdgeTable>,
    /// Node types without a table whose nodes are the ids that edges mention; all without one are, if no type has any.
    pub mentioned: Vec<String>,
    /// Stated numbers of nodes: these types keep their integer ids 0..N-1.
    pub num_nodes: Vec<(String, u64)>,
    /// Kind of ids.
    pub ids: IdKind,
    /// Field delimiter of text tables; detected from the first line by default.
    pub delimiter: Option<u8>,
    /// True if text tables have a header. By default they do when columns are requested by name, a
    /// usual name is in the first line, or that line looks like names.
    pub header: Option<bool>,
    /// The type of the edge column `weight`.
    pub weight_type: WeightType,
    /// Store the reverse of every edge too (self loops once), where both endpoints are of one type.
    pub symmetrize: bool,
    /// Store the reverse of every edge too, as an edge of the type [`Triple::reversed`].
    pub reverse: bool,
    /// Drop repeated edges; by default when symmetrizing edges without columns.
    pub coalesce: Option<bool>,
    /// Memory limit in bytes, for id maps, then for the topology.
    pub memory: u64,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            mentioned: Vec::new(),
            num_nodes: Vec::new(),
            ids: IdKind::Auto,
            delimiter: None,
            header: None,
            weight_type: WeightType::default(),
            symmetrize: false,
            reverse: false,
            coalesce: None,
            memory: 1 << 30,
        }
    }
}

impl TableOptions {
    /// A homogeneous graph from one table of edges.
    pub fn plain(edges: impl Into<PathBuf>) -> Self {
        Self { edges: vec![EdgeTable::new(Triple::plain(), edges)], ..Self::default() }
    }

    /// Adds a table of the homogeneous graph's nodes.
    #[must_use]
    pub fn with_nodes(mut self, path: impl Into<PathBuf>) -> Self {
        self.nodes.push(NodeTable::new(DEFAULT_NODE_TYPE, path));
        self
    }

    pub(super) fn format(&self) -> CsvFormat {
        CsvFormat { delimiter: self.delimiter, header: self.header }
    }
}

/// Rejects invalid shares.
pub(super) fn check_shares(shares: [f64; 3]) -> Result<()> {
    let sum: f64 = shares.iter().sum();
    match shares.iter().any(|share| !(0.0..=1.0).contains(share)) || sum > 1.000_001 {
        true => {
            Err(Error::invalid(format!("invalid shares {shares:?}: their sum must be at most 1")))
        }
        false => Ok(()),
    }
}
