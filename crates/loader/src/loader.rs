//! The loader of batches around nodes.

use std::sync::{Arc, Mutex, PoisonError};

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_sample::parts::Rule;
use gnarl_sample::{FrontierBatch, FrontierSampler, HeteroFanouts, HeteroScratch};

use crate::batch::{Batch, BatchEdges, BatchNodes};
use crate::epoch::Epoch;
use crate::graph::{LoaderGraph, Seeds};
use crate::options::LoaderOptions;
use crate::repeated::separate;
use crate::schedule::Schedule;

/// Makes batches around seeds: their sampled neighborhoods with features and labels. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct NeighborLoader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    graph: Arc<LoaderGraph>,
    seeds: Seeds,
    sampler: FrontierSampler,
    options: LoaderOptions,
    /// Memory of threads that are not sampling.
    spare: Mutex<Vec<HeteroScratch>>,
}

impl NeighborLoader {
    /// A loader of batches around `seeds`, with neighbors by `fanouts` and the rule.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if options or fan-outs are invalid, or the rule needs weights that are not there.
    pub fn new(
        graph: Arc<LoaderGraph>,
        seeds: Seeds,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: LoaderOptions,
    ) -> Result<Self> {
        options.check()?;
        let sampler = FrontierSampler::new(&graph.lists, fanouts, rule)?;
        let spare = Mutex::new(Vec::new());
        Ok(Self(Arc::new(Inner { graph, seeds, sampler, options, spare })))
    }

    /// Number of batches of an epoch.
    pub fn len(&self) -> usize {
        self.schedule(0).len()
    }

    /// Returns whether an epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<LoaderGraph> {
        &self.0.graph
    }

    /// The options.
    pub fn options(&self) -> &LoaderOptions {
        &self.0.options
    }

    /// The batches of `epoch` in order, prepared ahead by threads that end with the iterator.
    pub fn epoch(&self, epoch: u64) -> Epoch {
        let schedule = self.schedule(epoch);
        let (loader, key) = (self.clone(), self.key(epoch));
        let options = &self.0.options;
        let batches = schedule.len();
        let make = move |batch: usize, scratch: &mut HeteroScratch| {
            loader.batch(schedule.places(batch), key, scratch)
        };
        Epoch::start(batches, (options.threads, options.prefetch), self.clone(), make)
    }

    /// The batch of the seeds at `places` in the list that the loader was given, with the neighbors that they have in
    /// `epoch`.
    ///
    /// # Errors
    /// If the dataset is damaged.
    pub fn at(&self, places: &[u32], epoch: u64) -> Result<Batch> {
        let mut scratch = self.scratch();
        let batch = self.batch(places, self.key(epoch), &mut scratch);
        self.give_back(scratch);
        batch
    }

    pub(crate) fn scratch(&self) -> HeteroScratch {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&self, scratch: HeteroScratch) {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < self.0.options.threads {
            spare.push(scratch);
        }
    }

    fn schedule(&self, epoch: u64) -> Schedule {
        Schedule::new(self.0.seeds.nodes.len(), &self.0.options, epoch)
    }

    fn key(&self, epoch: u64) -> Key {
        Key::new(self.0.options.seed).with(epoch)
    }

    fn batch(&self, places: &[u32], key: Key, scratch: &mut HeteroScratch) -> Result<Batch> {
        let Inner { seeds: Seeds { node_type, nodes }, sampler, .. } = &*self.0;
        let seeds: Vec<u32> = places.iter().map(|&place| nodes[place as usize]).collect();
        let mut found = sampler.sample_types(&[(*node_type, &seeds)], key, scratch)?;
        separate(&mut found, *node_type, &seeds);
        self.with_columns(found, *node_type, places)
    }

    /// A sampled batch in the types of tensors, with features and labels.
    fn with_columns(
        &self,
        found: FrontierBatch,
        seed_type: usize,
        places: &[u32],
    ) -> Result<Batch> {
        let Inner { graph, options, .. } = &*self.0;
        let columns = options.columns;
        let of_hop = |counts: &[usize]| counts.iter().map(|&count| count as i64).collect();
        let mut nodes = Vec::with_capacity(found.nodes.len());
        for (node_type, own) in found.nodes.iter().enumerate() {
            let features = match columns.features {
                true => graph.features_of(node_type, own)?,
                false => None,
            };
            let labels = match columns.labels {
                true => graph.labels_of(node_type, own),
                false => None,
            };
            nodes.push(BatchNodes {
                ids: graph.ids_of(node_type, own),
                features,
                labels,
                times: graph.times_of(node_type, own),
                of_hop: of_hop(&found.nodes_of_hop[node_type]),
            });
        }
        let mut edges = Vec::with_capacity(found.edges.len());
        for (edge_type, own) in found.edges.iter().enumerate() {
            let features = match columns.features {
                true => graph.edge_features_of(edge_type, &own.rows)?,
                false => None,
            };
            edges.push(BatchEdges {
                ends: ends(&own.sources, &own.destinations),
                ids: own.rows.iter().map(|&row| row as i64).collect(),
                features,
                weights: graph.weights_of(edge_type, &own.rows),
                times: graph.edge_times_of(edge_type, &own.rows),
                of_hop: of_hop(&own.of_hop),
            });
        }
        Ok(Batch {
            schema: found.schema,
            seed_type,
            input_ids: places.iter().map(|&place| place.into()).collect(),
            nodes,
            edges,
        })
    }
}

/// Two rows of positions as one list.
fn ends(sources: &[u32], destinations: &[u32]) -> Vec<i64> {
    let mut ends = Vec::with_capacity(sources.len() + destinations.len());
    ends.extend(sources.iter().map(|&at| i64::from(at)));
    ends.extend(destinations.iter().map(|&at| i64::from(at)));
    ends
}
