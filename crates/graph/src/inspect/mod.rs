//! Description of a dataset: counts, degrees, labels, splits, homophily; and integrity of its
//! files. Parts of a partitioned graph are datasets too.

mod degrees;
mod homophily;
mod overview;
mod render;
mod verify;

use std::collections::BTreeMap;

use gnarl_common::{DType, Result};
use serde::Serialize;

pub use degrees::Degrees;
pub use homophily::Homophily;
pub use overview::{Overview, overview};
pub use render::grouped;
pub use verify::{Verified, verify};

use crate::dataset::Dataset;
use crate::edges::{EdgeChunk, EdgeStream};
use crate::features::{Features, Labels};
use crate::manifest::{EdgeFacts, EdgeType, NodeType, Triple};
use crate::narrow::Narrow;
use homophily::Mixing;

/// Most classes whose nodes are counted: a count of classes, and a label, are numbers of a file.
const MOST_CLASSES: usize = 1 << 20;

/// The description of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The dataset's name.
    pub name: String,
    /// Width of stored ids in bits.
    pub id_width: u32,
    /// True if this is a part: its nodes keep the ids they have in the whole graph.
    pub part: bool,
    /// Node types in id order.
    pub nodes: Vec<NodeReport>,
    /// Edge types.
    pub edges: Vec<EdgeReport>,
}

/// One node type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Number of nodes.
    pub count: u64,
    /// Nodes without an edge of any type, in either direction.
    pub isolated: u64,
    /// Features, if any.
    pub features: Option<FeatureReport>,
    /// Labels, if any.
    pub labels: Option<LabelReport>,
    /// Splits in stored order.
    pub splits: Vec<SplitReport>,
    /// The remaining columns, such as `user_id`, or `orig_id` and `degree` in a part.
    pub other_columns: Vec<String>,
}

/// The features of a node type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeatureReport {
    /// `dense` or `csr`.
    pub kind: &'static str,
    /// Feature width.
    pub width: usize,
    /// Stored type.
    pub dtype: DType,
}

/// The labels of a node type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelReport {
    /// `single`, `multi`, or `values` for numbers.
    pub kind: &'static str,
    /// Number of classes or tasks.
    pub classes: usize,
    /// Number of labeled nodes (with any label in multi-label data).
    pub labelled: u64,
    /// Nodes of each class; empty of more than a million classes.
    pub histogram: Vec<u64>,
}

/// A split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitReport {
    /// Its name.
    pub name: String,
    /// Nodes in it.
    pub count: u64,
    /// Share of them that have a label; `None` without labels.
    pub labelled: Option<f64>,
}

/// One edge type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeReport {
    /// `source:relation:destination`.
    #[serde(rename = "type")]
    pub triple: Triple,
    /// Number of edges.
    pub count: u64,
    /// Self-loops, repeated edges, symmetry, as found when the topology was built.
    pub facts: EdgeFacts,
    /// In-degrees of the destinations.
    pub in_degrees: Degrees,
    /// Label agreement along edges; `None` unless both endpoints are of one node type with one
    /// label per node, of at most a million classes.
    pub homophily: Option<Homophily>,
    /// Columns besides the endpoints and the topology.
    pub other_columns: Vec<String>,
}

/// Describes a dataset. Edges are read once, in chunks; memory is one bit for each node.
///
/// # Errors
/// If a column is missing or damaged.
pub fn inspect(dataset: &Dataset) -> Result<Report> {
    let manifest = dataset.manifest();
    let mut touched: BTreeMap<&str, Bits> =
        manifest.node_types.iter().map(|t| (t.name.as_str(), Bits::new(t.count))).collect();
    let edge_types = manifest.edge_types.iter();
    let edges: Vec<EdgeReport> =
        edge_types.map(|t| edge_report(dataset, t, &mut touched)).collect::<Result<_>>()?;
    let node_types = manifest.node_types.iter();
    let nodes: Vec<NodeReport> = node_types
        .map(|t| node_report(dataset, t, t.count - touched[t.name.as_str()].ones()))
        .collect::<Result<_>>()?;
    let part = manifest.node_types.iter().any(|t| t.columns.iter().any(|c| c.name == "orig_id"));
    Ok(Report { name: manifest.name.clone(), id_width: manifest.id_width, part, nodes, edges })
}

fn node_report(dataset: &Dataset, t: &NodeType, isolated: u64) -> Result<NodeReport> {
    let features = dataset.features(&t.name)?.map(|f| FeatureReport {
        kind: if matches!(f, Features::Dense(_)) { "dense" } else { "csr" },
        width: f.width(),
        dtype: f.dtype(),
    });
    let labels = dataset.labels(&t.name)?.or(dataset.values(&t.name)?);
    let mut splits = Vec::new();
    for name in dataset.split_names(&t.name)? {
        let ids = dataset.split(&t.name, &name)?.unwrap_or_default();
        let labelled = labels.as_ref().map(|labels| {
            let with = ids.iter().filter(|&&v| is_labelled(labels, v as usize)).count();
            with as f64 / ids.len().max(1) as f64
        });
        splits.push(SplitReport { name, count: ids.len() as u64, labelled });
    }
    let known = |name: &str| {
        ["label", "value"].contains(&name)
            || name.starts_with("features")
            || name.starts_with("split.")
    };
    let other = t.columns.iter().filter(|c| !known(&c.name)).map(|c| c.name.clone());
    Ok(NodeReport {
        name: t.name.clone(),
        count: t.count,
        isolated,
        features,
        labels: labels.as_ref().map(label_report),
        splits,
        other_columns: other.collect(),
    })
}

fn is_labelled(labels: &Labels, node: usize) -> bool {
    match labels {
        Labels::Single { .. } | Labels::Values { .. } => labels.has(node),
        Labels::Multi { values, tasks } => values
            .get(node * tasks..(node + 1) * tasks)
            .is_some_and(|row| row.iter().any(|&v| v != 0)),
    }
}

fn label_report(labels: &Labels) -> LabelReport {
    let counted = labels.outputs() <= MOST_CLASSES;
    let mut histogram = vec![0u64; if counted { labels.outputs() } else { 0 }];
    match labels {
        Labels::Single { classes, .. } => {
            let mut labelled = 0;
            for class in classes.iter().filter_map(|&class| usize::try_from(class).ok()) {
                labelled += 1;
                // A label beyond the stated classes is counted all the same, to be seen.
                if counted && class < MOST_CLASSES {
                    histogram.resize(histogram.len().max(class + 1), 0);
                    histogram[class] += 1;
                }
            }
            LabelReport { kind: "single", classes: labels.outputs(), labelled, histogram }
        }
        Labels::Multi { values, tasks } => {
            let mut labelled = 0;
            for row in values.chunks_exact((*tasks).max(1)) {
                labelled += u64::from(row.iter().any(|&v| v != 0));
                histogram.iter_mut().zip(row).for_each(|(h, &v)| *h += u64::from(v != 0));
            }
            LabelReport { kind: "multi", classes: *tasks, labelled, histogram }
        }
        Labels::Values { values } => {
            let labelled = values.iter().filter(|value| !value.is_nan()).count() as u64;
            LabelReport { kind: "values", classes: 1, labelled, histogram: Vec::new() }
        }
    }
}

fn edge_report(
    dataset: &Dataset,
    t: &EdgeType,
    touched: &mut BTreeMap<&str, Bits>,
) -> Result<EdgeReport> {
    let labels = if t.triple.src == t.triple.dst { dataset.labels(&t.triple.src)? } else { None };
    let mut mixing = match &labels {
        Some(Labels::Single { classes, count }) if *count <= MOST_CLASSES => {
            Some(Mixing::new(classes, *count))
        }
        _ => None,
    };
    let mut edges = dataset.edges_of(&t.triple)?;
    let mut chunk = EdgeChunk::default();
    while edges.next_chunk(&mut chunk)? {
        if let Some(bits) = touched.get_mut(t.triple.src.as_str()) {
            chunk.src.iter().for_each(|&v| bits.set(v));
        }
        if let Some(bits) = touched.get_mut(t.triple.dst.as_str()) {
            chunk.dst.iter().for_each(|&v| bits.set(v));
        }
        if let Some(mixing) = &mut mixing {
            mixing.add(&chunk);
        }
    }
    let indptr = match dataset.edge_column(&t.triple, "csc.indptr")? {
        Some(column) => Narrow::of(&column)?,
        None => Vec::<u32>::new().into(),
    };
    let known = |name: &str| matches!(name, "src" | "dst") || name.starts_with("csc.");
    let other = t.columns.iter().filter(|c| !known(&c.name)).map(|c| c.name.clone());
    Ok(EdgeReport {
        triple: t.triple.clone(),
        count: t.count,
        facts: t.facts.clone(),
        in_degrees: Degrees::of(indptr.as_slice()),
        homophily: mixing.and_then(|m| m.finish()),
        other_columns: other.collect(),
    })
}

/// A set of nodes, one bit each.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: u64) -> Self {
        Self(vec![0; count.div_ceil(64) as usize])
    }

    fn set(&mut self, v: u64) {
        if let Some(word) = self.0.get_mut((v / 64) as usize) {
            *word |= 1 << (v % 64);
        }
    }

    fn ones(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}
