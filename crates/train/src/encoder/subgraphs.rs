//! Subgraph samplers: Cluster-GCN and GraphSAINT, set up from a run file.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::{Method, RunConfig};
use gnarl_graph::{CHUNK_EDGES, EdgeChunk, EdgeStream};
use gnarl_partition::{PartitionOptions, by_name};
use gnarl_sample::{
    ClusterSampler, EdgeDraw, NodeDraw, SaintDraw, SaintSampler, SampleGraph, Sampler, WalkDraw,
};

/// The subgraph sampler of `config`, over `graph`, for batches with nodes of `train`.
///
/// # Errors
/// [`gnarl_common::Kind::Usage`] for sizes of 0 or more clusters than nodes.
pub(super) fn sampler(
    config: &RunConfig,
    graph: &SampleGraph,
    train: &[u32],
) -> Result<Box<dyn Sampler>> {
    let sample = &config.sample;
    let layers = config.model.blocks();
    if sample.budget == 0 && sample.method != Method::ClusterGcn {
        return Err(Error::usage("invalid sample.budget '0': expected a positive number"));
    }
    let draw: Box<dyn SaintDraw> = match sample.method {
        Method::SaintNode => Box::new(NodeDraw::new(graph, sample.budget)?),
        Method::SaintEdge => Box::new(EdgeDraw::new(sample.budget)),
        Method::SaintWalk => Box::new(WalkDraw::new(train, sample.budget, sample.walk_length)?),
        _ => return clusters(config, graph, train),
    };
    let key = Key::new(config.train.seed).with(4);
    let saint = SaintSampler::prepare(draw, graph, train, layers, sample.estimate, key)?;
    Ok(Box::new(saint))
}

fn clusters(config: &RunConfig, graph: &SampleGraph, train: &[u32]) -> Result<Box<dyn Sampler>> {
    let sample = &config.sample;
    let options = PartitionOptions {
        parts: sample.clusters,
        seed: config.partition.seed,
        ..PartitionOptions::default()
    };
    let mut edges = GraphEdges { graph, node: 0 };
    let found = by_name(&sample.cluster_algorithm)?.partition(&mut edges, &options)?;
    let of: Vec<u32> = found.of.iter().map(|&c| u32::from(c)).collect();
    let (count, layers) = (sample.clusters_per_batch, config.model.blocks());
    Ok(Box::new(ClusterSampler::new(graph, &of, train, count, layers)?))
}

/// The edges of an open graph as a stream, destination by destination.
struct GraphEdges<'a> {
    graph: &'a SampleGraph,
    node: u32,
}

impl EdgeStream for GraphEdges<'_> {
    fn num_nodes(&self) -> u64 {
        self.graph.num_nodes() as u64
    }

    fn num_edges(&self) -> u64 {
        self.graph.num_edges() as u64
    }

    fn reset(&mut self) -> Result<()> {
        self.node = 0;
        Ok(())
    }

    fn next_chunk(&mut self, chunk: &mut EdgeChunk) -> Result<bool> {
        chunk.clear();
        while chunk.len() < CHUNK_EDGES && (self.node as usize) < self.graph.num_nodes() {
            let sources = self.graph.csc().sources(self.node);
            chunk.src.extend(sources.iter().map(|&s| u64::from(s)));
            chunk.dst.resize(chunk.src.len(), u64::from(self.node));
            self.node += 1;
        }
        Ok(!chunk.is_empty())
    }
}
