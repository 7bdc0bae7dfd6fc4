//! A heterogeneous graph and its features, local or partitioned.

use std::sync::Arc;

#[cfg(feature = "serve")]
use gnarl_common::Buf;
use gnarl_common::rng::Key;
use gnarl_common::{DType, Error, Result};
use gnarl_config::{DatasetSection, RunConfig};
use gnarl_graph::Dataset;
use gnarl_graph::blocks::Schema;
use gnarl_nn::models::heterogeneous::Source;
use gnarl_nn::{Tape, Tensor, Var};
use gnarl_sample::parts::{Routes, Rule};
use gnarl_sample::{
    EdgeServices, HeteroBatch, HeteroFanouts, HeteroPartsSampler, HeteroSampleGraph, HeteroSampler,
    HeteroScratch, ResidentGraph, TemporalDraw,
};
use gnarl_store::{FeatureStore, MappedFeatures, Normalize, begin_random_reads};

use super::batch::{Input, gather_of_batch};
use super::read_ahead::{Files, ReadAhead};
#[cfg(feature = "serve")]
use super::timed_seeds::OwnTimes;
use super::timed_seeds::TimedSeeds;
use super::times::draw_of;

/// A heterogeneous graph, or a part of one. Features are by local id.
pub(crate) struct HeteroGraph {
    topology: HeteroTopology,
    /// Features of each node type that has any.
    features: Vec<Option<Box<dyn FeatureStore>>>,
    /// The sampler of edges no later than their seeds, if the run has one.
    temporal: Option<TimedSeeds>,
    /// How mapped files are read.
    ahead: ReadAhead,
}

/// Bytes of lists and of the files of features.
fn files_of(lists: u64, features: &[Option<MappedFeatures>]) -> Files {
    let stores = || features.iter().flatten();
    Files {
        lists,
        features: stores().map(MappedFeatures::num_bytes).sum(),
        rows: stores().map(FeatureStore::file_bytes).sum(),
    }
}

/// In-neighbor lists of each edge type, local or partitioned.
enum HeteroTopology {
    /// In files of this machine, by local ids.
    Local(HeteroSampleGraph),
    /// In parts, local and remote. Local ids are dataset ids.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "parts need clients of servers"))]
    Partitioned(HeteroParts),
}

/// A partitioned heterogeneous graph.
pub(crate) struct HeteroParts {
    pub schema: Arc<Schema>,
    /// The parts of the nodes of each type.
    pub nodes: Vec<Routes>,
    /// The parts of each edge type.
    pub edges: Vec<EdgeServices>,
}

/// A sampler of a heterogeneous graph.
pub(crate) enum HeteroNeighbors {
    Local(HeteroSampler),
    Temporal(TimedSeeds),
    Partitioned(HeteroPartsSampler),
}

impl HeteroGraph {
    /// A local graph with the features of each of its node types.
    pub fn new(graph: HeteroSampleGraph, features: Vec<Option<MappedFeatures>>) -> Self {
        let stored = |features: Option<MappedFeatures>| {
            features.map(|features| Box::new(features) as Box<dyn FeatureStore>)
        };
        let features = features.into_iter().map(stored).collect();
        let topology = HeteroTopology::Local(graph);
        Self { topology, features, temporal: None, ahead: ReadAhead::default() }
    }

    /// A graph of parts in memory with the features of each of its node types.
    ///
    /// # Errors
    /// If names of types are there twice.
    pub fn of_resident(
        graph: &ResidentGraph,
        features: Vec<Option<Box<dyn FeatureStore>>>,
    ) -> Result<Self> {
        let topology = HeteroTopology::Local(graph.hetero_sample_graph()?);
        Ok(Self { topology, features, temporal: None, ahead: ReadAhead::default() })
    }

    /// A partitioned graph with the features of each of its node types.
    #[cfg(feature = "serve")]
    pub fn of_parts(parts: HeteroParts, features: Vec<Option<Box<dyn FeatureStore>>>) -> Self {
        let topology = HeteroTopology::Partitioned(parts);
        Self { topology, features, temporal: None, ahead: ReadAhead::default() }
    }

    /// A partitioned graph with its edges sampled as of times of seeds, by `draw`; those of one type at the times given
    /// with its number, others at the end, unless they come with times.
    #[cfg(feature = "serve")]
    pub fn parts_in_time(
        self,
        draw: TemporalDraw,
        times: Option<(usize, Buf<i64>)>,
    ) -> Result<Self> {
        let Some(HeteroParts { schema, nodes, edges }) = self.parts() else { return Ok(self) };
        let own = match times {
            None => OwnTimes::End,
            Some((of, times)) => {
                let mut all = vec![None; nodes.len()];
                all[of] = Some(times);
                OwnTimes::OfNodes(all)
            }
        };
        let routes = nodes.to_vec();
        let temporal = TimedSeeds::of_parts(schema.clone(), draw, (routes, edges.clone()), own)?;
        Ok(Self { temporal: Some(temporal), ..self })
    }

    /// The graph with its edges sampled as of times of seeds, by `draw`.
    ///
    /// # Errors
    /// If it is partitioned, or has no times.
    pub fn in_time(self, draw: TemporalDraw) -> Result<Self> {
        let temporal = Some(TimedSeeds::at_end(self.lists()?, draw)?);
        Ok(Self { temporal, ..self })
    }

    /// Opens a dataset, or a part of one.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn open(dataset: &Dataset, config: &RunConfig) -> Result<Self> {
        let mut graph = HeteroSampleGraph::open(dataset)?;
        let features = features_of_types(dataset, config.dataset.normalize)?;
        let files = files_of(graph.num_bytes() as u64, &features);
        let ahead = ReadAhead::new(&config.dataset, files);
        if ahead.has_lists() {
            graph = graph.read_ahead();
        }
        let temporal = match config.sample.time {
            Some(rule) => Some(TimedSeeds::open(dataset, graph.clone(), draw_of(config, rule))?),
            None => None,
        };
        Ok(Self { temporal, ahead, ..Self::new(graph, features) })
    }

    /// A graph whose lists are in memory; features are read ahead of batches as `asked`.
    pub fn of_lists_in_memory(
        graph: HeteroSampleGraph,
        features: Vec<Option<MappedFeatures>>,
        asked: &DatasetSection,
    ) -> Self {
        let files = files_of(0, &features);
        Self { ahead: ReadAhead::new(asked, files), ..Self::new(graph, features) }
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        match &self.topology {
            HeteroTopology::Local(graph) => graph.schema(),
            HeteroTopology::Partitioned(parts) => &parts.schema,
        }
    }

    /// Number of local nodes of type number `node_type`, halo included.
    pub fn num_nodes(&self, node_type: usize) -> usize {
        match &self.topology {
            HeteroTopology::Local(graph) => graph.num_nodes(node_type),
            HeteroTopology::Partitioned(parts) => parts.nodes[node_type].num_nodes(),
        }
    }

    /// Number of nodes of type number `node_type` with complete lists; they come first.
    pub fn core(&self, node_type: usize) -> usize {
        match &self.topology {
            HeteroTopology::Local(graph) => graph.core(node_type),
            HeteroTopology::Partitioned(_) => self.num_nodes(node_type),
        }
    }

    /// Dataset ids of the first `count` nodes of type number `node_type`.
    pub fn ids(&self, node_type: usize, count: usize) -> Vec<u64> {
        let nodes = 0..count as u32;
        match &self.topology {
            HeteroTopology::Local(graph) => nodes.map(|node| graph.id(node_type, node)).collect(),
            HeteroTopology::Partitioned(_) => nodes.map(u64::from).collect(),
        }
    }

    /// The lists of a local graph.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the graph is partitioned.
    pub fn lists(&self) -> Result<&HeteroSampleGraph> {
        match &self.topology {
            HeteroTopology::Local(graph) => Ok(graph),
            HeteroTopology::Partitioned(_) => {
                Err(Error::usage("the operation requires the whole graph on one machine")
                    .hint("leave out partition.servers, or sample neighbors"))
            }
        }
    }

    /// The parts of a partitioned graph.
    pub fn parts(&self) -> Option<&HeteroParts> {
        match &self.topology {
            HeteroTopology::Local(_) => None,
            HeteroTopology::Partitioned(parts) => Some(parts),
        }
    }

    /// A sampler of neighbors.
    ///
    /// # Errors
    /// As [`HeteroSampler::new`] and [`HeteroPartsSampler::new`].
    pub fn sampler(&self, fanouts: &HeteroFanouts, rule: Rule) -> Result<HeteroNeighbors> {
        if let Some(timed) = &self.temporal {
            return Ok(HeteroNeighbors::Temporal(timed.with_fanouts(fanouts)?));
        }
        Ok(match &self.topology {
            HeteroTopology::Local(graph) => {
                HeteroNeighbors::Local(HeteroSampler::new(graph, fanouts, rule)?)
            }
            HeteroTopology::Partitioned(HeteroParts { schema, nodes, edges }) => {
                let routes = nodes.to_vec();
                let (schema, edges) = (schema.clone(), edges.clone());
                let sampler = HeteroPartsSampler::new(schema, (rule, fanouts), routes, edges)?;
                HeteroNeighbors::Partitioned(sampler)
            }
        })
    }

    /// Lookups in the caches of remote features that found a row, and those that did not.
    pub fn cached(&self) -> [u64; 2] {
        let stats = self.features.iter().flatten().filter_map(|features| features.cache_stats());
        stats.fold([0, 0], |[hits, misses], of| [hits + of.hits, misses + of.misses])
    }

    /// The input of each node type: features or embeddings.
    pub fn sources(&self) -> Vec<Source> {
        let source = |features: &Option<Box<dyn FeatureStore>>| {
            features.as_ref().map_or(Source::Embeddings, |found| Source::Features(found.width()))
        };
        self.features.iter().map(source).collect()
    }

    /// The type that holds the features of nodes of a type exactly.
    pub fn exact_type(&self, node_type: usize) -> DType {
        self.features[node_type].as_ref().map_or(DType::F32, |features| features.exact_type())
    }

    /// Indices and names of the node types with embeddings, in the order of the state's tables.
    pub fn embedding_types(&self) -> impl Iterator<Item = (usize, &str)> {
        let types = self.schema().node_types().iter().enumerate();
        types.filter(|(number, _)| self.features[*number].is_none()).map(|(n, name)| (n, &**name))
    }

    /// Features of some nodes of each type; none for types without.
    ///
    /// # Errors
    /// If an id has no features.
    pub fn features(&self, nodes: &[Vec<u32>]) -> Result<Vec<Option<Input>>> {
        self.gather(nodes, false)
    }

    /// As [`HeteroGraph::features`], for the nodes of a batch.
    ///
    /// # Errors
    /// If a node has no features.
    pub fn features_of_batch(&self, nodes: &[Vec<u32>]) -> Result<Vec<Option<Input>>> {
        let ahead = self.ahead.before_batch(|memory| {
            if let HeteroTopology::Local(graph) = &self.topology
                && self.ahead.has_lists()
            {
                graph.expect_random_reads();
            }
            begin_random_reads(self.features.iter().flatten().map(|store| &**store), memory)
        });
        self.gather(nodes, ahead)
    }

    fn gather(&self, nodes: &[Vec<u32>], ahead: bool) -> Result<Vec<Option<Input>>> {
        let of = |(features, nodes): (&Option<Box<dyn FeatureStore>>, &Vec<u32>)| match features {
            Some(features) => gather_of_batch(features.as_ref(), nodes, ahead).map(Some),
            None => Ok(None),
        };
        self.features.iter().zip(nodes).map(of).collect()
    }

    /// Puts the features and `learnt` embeddings of each node type on a tape. The second result are
    /// the leaves of the embeddings.
    pub fn leaves(
        &self,
        tape: &mut Tape<'_>,
        features: &[Option<Input>],
        embeddings: impl IntoIterator<Item = Tensor>,
    ) -> (Vec<Option<Var>>, Vec<Var>) {
        let (mut embeddings, mut leaves) = (embeddings.into_iter(), Vec::new());
        let rows = features.iter().map(|features| match features {
            Some(Input::Dense(rows)) => Some(tape.dense(rows.clone())),
            Some(Input::Sparse(rows)) => Some(tape.sparse(rows.clone())),
            None => embeddings.next().map(|rows| {
                let leaf = tape.leaf(rows);
                leaves.push(leaf);
                leaf
            }),
        });
        (rows.collect(), leaves)
    }
}

impl HeteroNeighbors {
    /// The seeds of every batch of an epoch.
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        match self {
            Self::Local(sampler) => sampler.epoch(train, batch_size, key),
            Self::Temporal(timed) => timed.epoch(train, batch_size, key),
            Self::Partitioned(sampler) => sampler.epoch(train, batch_size, key),
        }
    }

    /// The batch for seeds of several node types, by their local ids, at `times`; without them at their own times, or at
    /// none.
    ///
    /// # Errors
    /// As [`HeteroSampler::sample_types`] and [`HeteroPartsSampler::sample_types`], and if the sampler reads no times.
    pub fn sample(
        &self,
        seeds: &[(usize, &[u32])],
        times: &[Vec<i64>],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        match self {
            Self::Temporal(timed) => timed.sample(seeds, times, key, scratch),
            _ if !times.is_empty() => Err(Error::usage("the sampler reads no times of seeds")),
            Self::Local(sampler) => sampler.sample_types(seeds, key, scratch),
            Self::Partitioned(sampler) => sampler.sample_types(seeds, key, scratch),
        }
    }
}

/// The features of each node type of a dataset that has any.
///
/// # Errors
/// If a file is damaged.
pub(crate) fn features_of_types(
    dataset: &Dataset,
    normalize: Normalize,
) -> Result<Vec<Option<MappedFeatures>>> {
    let of = |name: &str| {
        let found = dataset.features(name)?;
        found.map(|found| MappedFeatures::new(found, normalize)).transpose()
    };
    dataset.manifest().node_types.iter().map(|t| of(&t.name)).collect()
}
