//! Cluster-GCN (Chiang et al., KDD 2019): batches of whole clusters.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::MiniBatch;

use crate::induced::Targets;
use crate::{SampleGraph, Sampler, Scratch};

/// A batch is the subgraph induced by several clusters (section 3.2, stochastic multiple
/// partitions), shared by all layers; the loss is taken over its training nodes.
///
/// Seeds are cluster ids. [`NodeInfo::degrees`](gnarl_graph::blocks::NodeInfo::degrees) are those of the induced
/// subgraph, by which the paper normalizes (section 3.2, after equation 7).
#[derive(Debug)]
pub struct ClusterSampler {
    graph: SampleGraph,
    /// Nodes by cluster; `offsets` has one more entry than there are clusters.
    members: Vec<u32>,
    offsets: Vec<usize>,
    per_batch: usize,
    layers: usize,
    targets: Targets,
}

impl ClusterSampler {
    /// `assignment[v]` is the cluster of `graph`'s local node `v`, from any partitioner; `train`
    /// lists the training nodes; each batch unites `per_batch` clusters and serves `layers` layers.
    ///
    /// # Errors
    /// If a node has no cluster, a training node is not in the graph, or `per_batch` or `layers` is 0.
    pub fn new(
        graph: &SampleGraph,
        assignment: &[u32],
        train: &[u32],
        per_batch: usize,
        layers: usize,
    ) -> Result<Self> {
        if per_batch == 0 || layers == 0 {
            return Err(Error::usage(
                "Cluster-GCN requires at least one layer, and one cluster per batch",
            ));
        }
        if assignment.len() != graph.num_nodes() {
            let (found, nodes) = (assignment.len(), graph.num_nodes());
            return Err(Error::usage(format!(
                "invalid cluster assignment: expected {nodes} nodes, found {found}"
            )));
        }
        let clusters = assignment.iter().max().map_or(0, |&c| c as usize + 1);
        let mut offsets = vec![0usize; clusters + 1];
        for &cluster in assignment {
            offsets[cluster as usize + 1] += 1;
        }
        for cluster in 0..clusters {
            offsets[cluster + 1] += offsets[cluster];
        }
        let (mut next, mut members) = (offsets.clone(), vec![0u32; assignment.len()]);
        for (node, &cluster) in assignment.iter().enumerate() {
            members[next[cluster as usize]] = node as u32;
            next[cluster as usize] += 1;
        }
        let targets = Targets::new(assignment.len(), train)?;
        Ok(Self { graph: graph.clone(), members, offsets, per_batch, layers, targets })
    }

    /// Number of clusters.
    pub fn num_clusters(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The clusters of every batch of an epoch: each cluster once, in an order chosen by `key`.
    pub fn batches(&self, key: Key) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..self.num_clusters() as u32).collect();
        key.shuffle(&mut order);
        order.chunks(self.per_batch).map(<[u32]>::to_vec).collect()
    }
}

impl Sampler for ClusterSampler {
    fn name(&self) -> &'static str {
        "cluster"
    }

    /// As [`ClusterSampler::batches`]: the training nodes and clusters a batch were given to
    /// [`ClusterSampler::new`].
    fn epoch(&self, _train: &[u32], _batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        self.batches(key)
    }

    fn sample(&self, seeds: &[u32], _key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let mut nodes = Vec::new();
        for &cluster in seeds {
            let Some(&end) = self.offsets.get(cluster as usize + 1) else {
                let message = format!("cluster {cluster} is not one of {}", self.num_clusters());
                return Err(Error::usage(message));
            };
            nodes.extend_from_slice(&self.members[self.offsets[cluster as usize]..end]);
        }
        let induced = self.targets.induce(&self.graph, &nodes, scratch)?;
        let view = self.graph.view();
        let mut info = scratch.node_info(view);
        for (dst, degree) in info.degrees.iter_mut().enumerate() {
            *degree = induced.degree(dst);
        }
        let weights =
            view.weights.map(|w| induced.positions.iter().map(|&p| view.weight(w, p)).collect());
        induced.into_batch((view, self.layers), weights, info, scratch)
    }
}
