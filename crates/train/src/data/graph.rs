//! A graph of one node type and its features, local or partitioned.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::{Buf, Error, Result};
use gnarl_graph::Dataset;
use gnarl_graph::blocks::Block;
use gnarl_graph::splits::features_of;
use gnarl_sample::parts::{NeighborService, PartsSampler, Replica, Routes, Rule};
use gnarl_sample::{SampleGraph, whole_block};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize};

/// Where the in-neighbor lists of a graph are.
pub enum Topology {
    /// In files of this machine, in local ids.
    Local(SampleGraph),
    /// In parts, here and on other machines. Local ids are dataset ids.
    Partitioned(Partitioned),
}

/// A partitioned graph.
pub struct Partitioned {
    /// Which parts have edges of a node.
    pub routes: Routes,
    /// What answers for each part.
    pub services: Vec<Arc<dyn NeighborService>>,
    /// New id of each node, those of a part following each other.
    pub new_ids: Buf<u64>,
    /// First new id of each part, and the number of nodes.
    pub ranges: Vec<u64>,
    /// Copies of lists of other machines.
    pub replica: Option<Arc<Replica>>,
}

impl Partitioned {
    /// A sampler of its parts.
    ///
    /// # Errors
    /// As [`PartsSampler::new`].
    pub fn sampler(&self, rule: Rule, fanouts: &[i64]) -> Result<PartsSampler> {
        let (routes, services) = (self.routes.clone(), self.services.clone());
        let sampler = PartsSampler::new(rule, fanouts, routes, services)?;
        Ok(match &self.replica {
            Some(replica) => sampler.with_replica(replica.clone()),
            None => sampler,
        })
    }
}

/// A graph to train on, to infer on or to pass messages over: the whole dataset or one part.
pub struct Graph {
    /// In-neighbor lists.
    pub topology: Topology,
    /// Features by local id.
    pub features: Box<dyn FeatureStore>,
    /// All of it as one block, once somebody asked for it.
    pub whole: Whole,
}

/// The whole graph as one block, made once for all workers of this process.
#[derive(Default)]
pub struct Whole(Mutex<Option<Arc<Block>>>);

impl Graph {
    /// A graph of this machine.
    pub fn local(graph: SampleGraph, features: Box<dyn FeatureStore>) -> Self {
        Self { topology: Topology::Local(graph), features, whole: Whole::default() }
    }

    /// Opens a dataset, or a part of one.
    ///
    /// # Errors
    /// If the graph has types, or lacks features.
    pub fn open(dataset: &Dataset, normalize: Normalize) -> Result<Self> {
        let graph = SampleGraph::open(dataset)?;
        let features = MappedFeatures::new(features_of(dataset)?, normalize)?;
        Ok(Self::local(graph, Box::new(features)))
    }

    /// The whole graph as one block, which knows whether it is symmetric.
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

    /// The lists, if they are on this machine as a whole.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the graph is partitioned.
    pub fn lists(&self) -> Result<&SampleGraph> {
        match &self.topology {
            Topology::Local(graph) => Ok(graph),
            Topology::Partitioned(_) => {
                Err(Error::usage("this needs the whole graph in one place")
                    .hint("leave out partition.servers, or sample neighbours"))
            }
        }
    }

    /// Number of nodes whose lists are complete; they come first.
    pub fn core(&self) -> usize {
        match &self.topology {
            Topology::Local(graph) => graph.core(),
            Topology::Partitioned(graph) => graph.new_ids.len(),
        }
    }

    /// Width of a feature row.
    pub fn width(&self) -> usize {
        self.features.width()
    }
}
