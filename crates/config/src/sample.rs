//! Batches and their neighborhoods.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The sampling method of mini-batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Neighbors of the seeds, up to the fan-outs.
    #[default]
    Neighbor,
    /// Neighbors of the seeds, up to the fan-outs, with random numbers shared by all nodes of a
    /// batch.
    Labor,
    /// As `neighbor`, by random numbers per edge, so that parts can sample alone.
    Exact,
    /// Neighbors of the seeds, up to the fan-outs, in proportion to edge weights.
    Weighted,
    /// All neighbors of the seeds.
    Full,
    /// The nodes that random walks visit most.
    Walk,
    /// The nodes of highest personalized PageRank.
    Ppr,
    /// Cluster-GCN: unions of small clusters.
    ClusterGcn,
    /// GraphSAINT with random nodes.
    SaintNode,
    /// GraphSAINT with random edges.
    SaintEdge,
    /// GraphSAINT with random walks.
    SaintWalk,
    /// A custom sampler of neighbors, which a program registers under `sample.name`.
    Custom,
}

impl Method {
    /// Returns whether neighbors are drawn up to the fan-outs.
    pub fn has_fanouts(self) -> bool {
        matches!(self, Self::Neighbor | Self::Labor | Self::Exact | Self::Weighted | Self::Custom)
            || self.is_by_walks()
    }

    /// Returns whether neighborhoods are found by walks, in place of the edges of a node.
    pub fn is_by_walks(self) -> bool {
        matches!(self, Self::Walk | Self::Ppr)
    }
}

/// The source of batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchSource {
    /// Drawn from the graph.
    #[default]
    Graph,
    /// Prepared by `gnarl sample`.
    Batches,
}

/// `[sample]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SampleSection {
    /// Source of the batches.
    pub source: BatchSource,
    /// The folder of prepared batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<PathBuf>,
    /// Sampling method.
    pub method: Method,
    /// `custom`: the name under which a program adds the sampler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Neighbors sampled per node, the seeds' hop first; -1 takes all. One entry per layer.
    pub fanouts: Vec<i64>,
    /// Fan-outs of individual edge types, in heterogeneous graphs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub edge_fanouts: BTreeMap<String, Vec<i64>>,
    /// The edge types to sample over, one per hop, the seeds' first, in heterogeneous graphs; by
    /// default all of them at each hop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meta_path: Vec<String>,
    /// Samples edges no later than their seeds; by default times are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeRule>,
    /// Seeds of one optimizer step: over all workers for `gradient`, in each part for `average`.
    /// 0 takes all training nodes at once.
    pub batch_size: usize,
    /// Link prediction without an encoder: classes of nodes; edges between two of them are trained one after the other. 0
    /// trains edges in random order.
    pub buckets: usize,
    /// Classes whose embeddings are in memory at a time, 2 at least.
    pub buckets_in_memory: usize,
    /// Subgraph methods: batches whose gradients are added up in one step; as many as workers
    /// keeps all of them busy.
    pub accumulate: usize,
    /// Cluster-GCN: number of clusters of the graph.
    pub clusters: usize,
    /// Cluster-GCN: the partitioner that makes the clusters.
    pub cluster_algorithm: String,
    /// Cluster-GCN: clusters in a batch.
    pub clusters_per_batch: usize,
    /// GraphSAINT: nodes, edges or walk roots drawn for a batch.
    pub budget: usize,
    /// GraphSAINT and `walk`: steps of a random walk.
    pub walk_length: usize,
    /// `walk`: walks from each node.
    pub walks: usize,
    /// `walk`: probability that a step returns to the start.
    pub restart: f64,
    /// `walk`: node2vec's p, against returning to the node before.
    pub return_bias: f64,
    /// `walk`: node2vec's q, against leaving the neighbors of the node before.
    pub in_out_bias: f64,
    /// `ppr`: probability that a walk ends at each step.
    pub teleport: f64,
    /// `ppr`: mass over in-degree up to which nodes are not expanded.
    pub tolerance: f64,
    /// GraphSAINT: batches drawn beforehand to estimate the normalization.
    pub estimate: usize,
}

impl Default for SampleSection {
    fn default() -> Self {
        Self {
            source: BatchSource::Graph,
            batches: None,
            method: Method::Neighbor,
            name: None,
            fanouts: vec![25, 10],
            edge_fanouts: BTreeMap::new(),
            meta_path: Vec::new(),
            time: None,
            batch_size: 1024,
            buckets: 0,
            buckets_in_memory: 2,
            accumulate: 1,
            clusters: 100,
            cluster_algorithm: "metis".into(),
            clusters_per_batch: 10,
            budget: 2000,
            walk_length: 2,
            walks: 50,
            restart: 0.0,
            return_bias: 1.0,
            in_out_bias: 1.0,
            teleport: 0.15,
            tolerance: 1e-4,
            estimate: 50,
        }
    }
}

/// The edges that temporal sampling prefers among those that are there at a seed's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeRule {
    /// The latest ones.
    Last,
    /// None: they are drawn evenly.
    Uniform,
}
