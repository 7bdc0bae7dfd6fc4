//! The quality report of a partition.

use gnarl_common::error::Result;
use gnarl_graph::Dataset;
use serde::{Deserialize, Serialize};

use crate::read::degrees::for_each_degree;
use crate::write::layout::Layout;

/// The quality of a partition and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// Name of the partitioner.
    pub algorithm: String,
    /// Number of parts.
    pub parts: usize,
    /// Seconds the partitioner took.
    pub seconds: f64,
    /// Seconds for writing the parts after that.
    pub write_seconds: f64,
    /// Largest resident memory of the process so far, in bytes.
    pub peak_rss_bytes: u64,
    /// Nodes stored over nodes: `Σ|V_i| / |V|`, HALO nodes included (CATGNN §5.1).
    pub replication_factor: f64,
    /// Share of edges between different parts.
    pub edge_cut: f64,
    /// Core nodes: largest part over mean.
    pub node_balance: f64,
    /// In-edges of core nodes: largest part over mean. In a vertex cut: edges of the part.
    pub edge_balance: f64,
    /// Training nodes: largest part over mean; 1 without any.
    pub train_balance: f64,
    /// Core nodes of each part.
    pub part_sizes: Vec<u64>,
    /// HALO nodes of each part.
    pub halo_sizes: Vec<u64>,
    /// Training nodes of each part.
    #[serde(default)]
    pub train_sizes: Vec<u64>,
    /// Nodes that have an edge into another part or from one, by in-degree: entry 0 counts degree
    /// 0, entry `i` the degrees from `2^(i-1)` to below `2^i`.
    #[serde(default)]
    pub cut_degrees: Vec<u64>,
    /// Metrics of vertex cuts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertex_cut: Option<VertexCutReport>,
}

/// Metrics of a vertex cut: of the parts as produced by the edge partitioner, regardless of node
/// owners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VertexCutReport {
    /// Nodes of all parts over nodes that have an edge (RF of GLISP Table II).
    pub replication_factor: f64,
    /// Nodes of a part: largest over mean (VB).
    pub vertex_balance: f64,
    /// Edges: largest part over mean (EB).
    pub edge_balance: f64,
    /// Edges of each part.
    pub part_edges: Vec<u64>,
    /// Bytes of each part's topology; 0 if nothing was written.
    pub topology_bytes: Vec<u64>,
    /// Bytes of topology over edges.
    pub bytes_per_edge: f64,
}

impl PartitionReport {
    pub(crate) fn measure(algorithm: &str, layout: &Layout, train: &[u64]) -> Self {
        let mut part_sizes = vec![0; layout.parts];
        layout.of.iter().for_each(|&p| part_sizes[p as usize] += 1);
        let held = (0..layout.parts).map(|p| layout.part_nodes(p));
        let halo_sizes: Vec<u64> = held.zip(&part_sizes).map(|(all, core)| all - core).collect();
        let mut trained = vec![0; layout.parts];
        train.iter().for_each(|&v| trained[layout.of[v as usize] as usize] += 1);
        let cut = &layout.halo.cut;
        let column = |p: usize| cut.iter().map(|row| row[p]).sum();
        let owned: Vec<u64> = (0..layout.parts).map(column).collect();
        let edges: u64 = owned.iter().sum();
        let inside: u64 = (0..layout.parts).map(|p| cut[p][p]).sum();
        let nodes = layout.of.len() as f64;
        Self {
            algorithm: algorithm.into(),
            parts: layout.parts,
            seconds: 0.0,
            write_seconds: 0.0,
            peak_rss_bytes: 0,
            replication_factor: 1.0 + halo_sizes.iter().sum::<u64>() as f64 / nodes,
            edge_cut: (edges - inside) as f64 / edges.max(1) as f64,
            node_balance: balance(&part_sizes),
            edge_balance: balance(&owned),
            train_balance: balance(&trained),
            part_sizes,
            halo_sizes,
            train_sizes: trained,
            cut_degrees: Vec::new(),
            vertex_cut: None,
        }
    }
}

/// Largest over mean; 1 if there is nothing to balance.
pub(crate) fn balance(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let largest = counts.iter().max().copied().unwrap_or(0);
    if total == 0 { 1.0 } else { largest as f64 * counts.len() as f64 / total as f64 }
}

/// The histogram [`PartitionReport::cut_degrees`].
pub(crate) fn cut_degrees(dataset: &Dataset, layout: &Layout) -> Result<Vec<u64>> {
    let mut histogram = Vec::new();
    for_each_degree(dataset, |v, degree| {
        if layout.halo.cut_nodes.contains(v) {
            let bin = (u64::BITS - degree.leading_zeros()) as usize;
            histogram.resize(histogram.len().max(bin + 1), 0);
            histogram[bin] += 1;
        }
    })?;
    Ok(histogram)
}
