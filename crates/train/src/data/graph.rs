//! A graph of one node type and its features, local or partitioned.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Buf, Error, Result};
use gnarl_config::RunConfig;
use gnarl_graph::Dataset;
use gnarl_graph::blocks::Block;
use gnarl_graph::splits::features_of;
use gnarl_sample::parts::{
    NeighborService, PartsSampler, Replica, Routes, Rule, TemporalPartsSampler,
};
use gnarl_sample::{SampleGraph, TemporalDraw, TemporalSampler, whole_block};
use gnarl_store::{FeatureStore, MappedFeatures};

use super::batch::{Input, gather_of_batch};
use super::edge_features::with_edge_features;
use super::read_ahead::{Files, ReadAhead};
use super::times::{draw_of, temporal};

/// In-neighbor lists of a graph, local or partitioned.
pub enum Topology {
    /// In files of this machine, by local ids.
    Local(Box<SampleGraph>),
    /// In parts, local and remote. Local ids are dataset ids.
    Partitioned(Partitioned),
}

/// A partitioned graph.
pub struct Partitioned {
    /// The parts of the nodes.
    pub nodes: Routes,
    /// The sampling service of each part.
    pub services: Vec<Arc<dyn NeighborService>>,
    /// Values of the features of an edge that samplers ask for; 0 for none.
    pub edge_width: usize,
    /// Replicas of other machines' lists.
    pub replica: Option<Arc<Replica>>,
    /// Time of each node as a seed, if the run samples nodes by time.
    pub times: Option<Buf<i64>>,
}

impl Partitioned {
    /// A sampler of the parts.
    ///
    /// # Errors
    /// As [`PartsSampler::new`].
    pub fn sampler(&self, rule: Rule, fanouts: &[i64]) -> Result<PartsSampler> {
        let (routes, services) = (self.nodes.clone(), self.services.clone());
        let sampler = PartsSampler::new(rule, fanouts, routes, services)?;
        let sampler = sampler.with_edge_features(self.edge_width);
        Ok(match &self.replica {
            Some(replica) => sampler.with_replica(replica.clone()),
            None => sampler,
        })
    }

    /// A sampler of the parts as of times.
    ///
    /// # Errors
    /// As [`TemporalPartsSampler::new`].
    pub fn temporal(&self, draw: TemporalDraw, fanouts: &[i64]) -> Result<TemporalPartsSampler> {
        let (routes, services) = (self.nodes.clone(), self.services.clone());
        let sampler = TemporalPartsSampler::new(draw, fanouts, routes, services)?;
        let sampler = sampler.with_edge_features(self.edge_width);
        match &self.times {
            Some(times) => sampler.with_seed_times(times.clone()),
            None => Ok(sampler),
        }
    }
}

/// A graph for training, inference or message passing: the whole dataset or one part.
pub struct Graph {
    /// In-neighbor lists.
    pub topology: Topology,
    /// Features by local id.
    pub features: Box<dyn FeatureStore>,
    /// The whole graph as one block, built on first use.
    pub whole: Whole,
    /// The sampler of edges no later than their seeds, if the run has one.
    pub temporal: Option<TemporalSampler>,
    /// How mapped files are read.
    pub(crate) ahead: ReadAhead,
}

/// The whole graph as one block, shared by all workers of this process.
#[derive(Default)]
pub struct Whole(Mutex<Option<Arc<Block>>>);

impl Graph {
    /// A local graph.
    pub fn local(graph: SampleGraph, features: Box<dyn FeatureStore>) -> Self {
        let (topology, whole) = (Topology::Local(Box::new(graph)), Whole::default());
        Self { topology, features, whole, temporal: None, ahead: ReadAhead::default() }
    }

    /// The graph with its edges sampled as of times of seeds, by `draw`; seeds without a time are later than all edges.
    ///
    /// # Errors
    /// If it is partitioned, or has no times.
    pub fn in_time(self, draw: TemporalDraw) -> Result<Self> {
        let temporal = TemporalSampler::new(self.lists()?, &[-1], draw)?;
        Ok(Self { temporal: Some(temporal.with_seeds_at_end()), ..self })
    }

    /// Opens a dataset, or a part of one, with the features of edges if the model of `config` reads them.
    ///
    /// # Errors
    /// If the graph is heterogeneous, or lacks features.
    pub fn open(dataset: &Dataset, config: &RunConfig) -> Result<Self> {
        let mut graph = SampleGraph::open(dataset)?;
        if config.model.edge_features {
            graph = with_edge_features(graph, dataset)?;
        }
        let features = MappedFeatures::new(features_of(dataset)?, config.dataset.normalize)?;
        let files = Files {
            lists: graph.num_bytes() as u64,
            features: features.num_bytes(),
            rows: features.file_bytes(),
        };
        let ahead = ReadAhead::new(&config.dataset, files);
        if ahead.has_lists() {
            graph = graph.read_ahead();
        }
        let draw = config.sample.time.map(|rule| draw_of(config, rule));
        let temporal = draw.map(|draw| temporal(&graph, draw)).transpose()?;
        Ok(Self { temporal, ahead, ..Self::local(graph, Box::new(features)) })
    }

    /// The features of a batch's nodes, in that order.
    ///
    /// # Errors
    /// If a node has no features.
    pub(crate) fn features_of_batch(&self, nodes: &[u32]) -> Result<Input> {
        let ahead = self.ahead.before_batch(|memory| {
            if let Topology::Local(graph) = &self.topology
                && self.ahead.has_lists()
            {
                graph.expect_random_reads();
            }
            self.features.begin_random_reads(memory)
        });
        gather_of_batch(self.features.as_ref(), nodes, ahead)
    }

    /// The whole graph as one block, with detected symmetry.
    ///
    /// # Errors
    /// If the graph is partitioned, or too large for a block.
    pub fn whole_block(&self) -> Result<Arc<Block>> {
        let mut whole = self.whole.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = &*whole {
            return Ok(block.clone());
        }
        let block = Arc::new(whole_block(self.lists()?)?.with_symmetry());
        Ok(whole.insert(block).clone())
    }

    /// The lists of a local graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the graph is partitioned.
    pub fn lists(&self) -> Result<&SampleGraph> {
        match &self.topology {
            Topology::Local(graph) => Ok(graph),
            Topology::Partitioned(_) => {
                Err(Error::usage("the operation requires the whole graph on one machine")
                    .hint("leave out partition.servers, or sample neighbors"))
            }
        }
    }

    /// Number of nodes with complete lists; they come first.
    pub fn core(&self) -> usize {
        match &self.topology {
            Topology::Local(graph) => graph.core(),
            Topology::Partitioned(graph) => graph.nodes.num_nodes(),
        }
    }

    /// Feature width.
    pub fn width(&self) -> usize {
        self.features.width()
    }

    /// Width of the features of edges that samplers read; 0 if there are none.
    pub fn edge_width(&self) -> usize {
        match &self.topology {
            Topology::Local(graph) => graph.edge_width(),
            Topology::Partitioned(graph) => graph.edge_width,
        }
    }
}
