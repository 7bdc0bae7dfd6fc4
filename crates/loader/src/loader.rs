//! The loader of batches around nodes.

use std::sync::Arc;

use gnarl_common::memory::SparePages;
use gnarl_common::rng::Key;
use gnarl_common::threads::pool;
use gnarl_common::{Error, Kind, Result};
use gnarl_sample::parts::Rule;
use gnarl_sample::{FrontierBatch, FrontierSampler, HeteroFanouts, HeteroScratch, Roots};

use crate::batch::{Batch, BatchEdges, BatchLinks, BatchNodes};
use crate::epoch::Epoch;
use crate::examples::{Examples, SeedEdges, distinct};
use crate::graph::{LoaderGraph, Seeds};
use crate::options::LoaderOptions;
use crate::repeated::separate;
use crate::schedule::Schedule;
use crate::scratches::Scratches;

/// Makes batches around seeds: their sampled neighborhoods with features and labels. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct NeighborLoader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    graph: Arc<LoaderGraph>,
    examples: Examples,
    sampler: FrontierSampler,
    options: LoaderOptions,
    scratches: Arc<Scratches>,
    /// Memory of features that are not in use any more.
    rows: Arc<SparePages>,
}

impl NeighborLoader {
    /// A loader of batches around `seeds`, with neighbors by `fanouts` and the rule.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if options or fan-outs are invalid, the rule needs weights that are not there, or time
    /// is asked for where there is none.
    pub fn new(
        graph: Arc<LoaderGraph>,
        seeds: Seeds,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: LoaderOptions,
    ) -> Result<Self> {
        let seeds = match options.time {
            Some(_) => graph.timed(seeds)?,
            None => seeds,
        };
        Self::around(graph, seeds.into(), (fanouts, rule), options)
    }

    /// A loader of batches around edges likewise.
    ///
    /// # Errors
    /// As [`NeighborLoader::new`]; also if trees of their own or times are asked for.
    pub fn of_edges(
        graph: Arc<LoaderGraph>,
        edges: SeedEdges,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: LoaderOptions,
    ) -> Result<Self> {
        if options.disjoint || options.time.is_some() {
            return Err(Error::usage("batches around edges have neither trees nor times yet")
                .hint("make them around nodes"));
        }
        Self::around(graph, Examples::Edges(edges), (fanouts, rule), options)
    }

    fn around(
        graph: Arc<LoaderGraph>,
        examples: Examples,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: LoaderOptions,
    ) -> Result<Self> {
        options.check()?;
        if examples.count() > u32::MAX as usize {
            let message = format!("{} examples of an epoch exceed 32 bits", examples.count());
            return Err(
                Error::new(Kind::Limit, message).hint("make loaders of some of them at a time")
            );
        }
        let sampler = match options.time {
            None => FrontierSampler::new(&graph.lists, fanouts, rule)?,
            Some(_) if rule != Rule::Uniform => {
                let message =
                    format!("neighbors are drawn by time or by '{}', not both", rule.name());
                return Err(Error::usage(message).hint("take the sampler 'uniform' with times"));
            }
            Some(time) => {
                let timed = graph.lists.clone().with_times_of(graph.dataset())?;
                let sampler = FrontierSampler::new(&timed, fanouts, rule)?;
                // Threads of its own: those of the process would be missing in one that is forked off.
                pool(options.threads)?.install(|| sampler.in_time(time))?
            }
        };
        let scratches = Arc::new(Scratches::new(options.threads));
        let rows = Arc::default();
        Ok(Self(Arc::new(Inner { graph, examples, sampler, options, scratches, rows })))
    }

    /// Number of batches of an epoch.
    pub fn len(&self) -> usize {
        Schedule::batches(self.0.examples.count(), &self.0.options)
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
        let loader = self.clone();
        let key = self.key(epoch);
        let options = &self.0.options;
        let batches = schedule.len();
        let make = move |batch: usize, scratch: &mut HeteroScratch| {
            loader.batch(schedule.places(batch), key, scratch)
        };
        Epoch::start(batches, (options.threads, options.prefetch), self.0.scratches.clone(), make)
    }

    /// The batch of the seeds at `places` in the list that the loader was given, with the neighbors that they have in
    /// `epoch`.
    ///
    /// # Errors
    /// If the dataset is damaged.
    pub fn at(&self, places: &[u32], epoch: u64) -> Result<Batch> {
        let mut scratch = self.0.scratches.take();
        let batch = self.batch(places, self.key(epoch), &mut scratch);
        self.0.scratches.give_back(scratch);
        batch
    }

    fn schedule(&self, epoch: u64) -> Schedule {
        Schedule::new(self.0.examples.count(), &self.0.options, epoch)
    }

    fn key(&self, epoch: u64) -> Key {
        Key::new(self.0.options.seed).with(epoch)
    }

    fn batch(&self, places: &[u32], key: Key, scratch: &mut HeteroScratch) -> Result<Batch> {
        let input_ids = places.iter().map(|&place| place.into()).collect();
        let plain = key;
        let key = match (self.0.sampler.rule(), places.first()) {
            // Its numbers are of sources: by one key those with large ones would be missing from a whole epoch.
            (Rule::Labor, Some(&first)) => key.with(first.into()),
            _ => key,
        };
        match &self.0.examples {
            Examples::Nodes(seeds) => {
                let own: Vec<u32> =
                    places.iter().map(|&place| seeds.nodes[place as usize]).collect();
                let has_trees = self.0.options.disjoint || self.0.options.time.is_some();
                let times = seeds.times.as_ref().filter(|_| has_trees).map(|times| {
                    places.iter().map(|&place| times[place as usize]).collect::<Vec<i64>>()
                });
                let found = match has_trees {
                    true => self.trees((seeds.node_type, &own), places, times.as_deref(), key)?,
                    false => {
                        let mut found = self.0.sampler.sample_types(
                            &[(seeds.node_type, &own)],
                            key,
                            scratch,
                        )?;
                        separate(&mut found, seeds.node_type, &own);
                        found
                    }
                };
                let batch = self.with_columns(found, seeds.node_type, input_ids)?;
                Ok(Batch { seed_times: times, ..batch })
            }
            Examples::Edges(edges) => {
                self.around_edges(edges, places, input_ids, (plain, key), scratch)
            }
        }
    }

    /// A batch in which each seed has nodes of its own.
    fn trees(
        &self,
        (seed_type, seeds): (usize, &[u32]),
        places: &[u32],
        times: Option<&[i64]>,
        key: Key,
    ) -> Result<FrontierBatch> {
        let names: Vec<u64> = places.iter().map(|&place| place.into()).collect();
        let trees: Vec<u32> = (0..seeds.len() as u32).collect();
        let times = times.filter(|_| self.0.options.time.is_some());
        let seeds = &[(seed_type, seeds, &trees[..])];
        self.0.sampler.sample_trees(Roots { seeds, names: &names, times }, key)
    }

    fn around_edges(
        &self,
        edges: &SeedEdges,
        places: &[u32],
        input_ids: Vec<i64>,
        // That of the epoch, and that which neighbors are drawn by.
        (plain, key): (Key, Key),
        scratch: &mut HeteroScratch,
    ) -> Result<Batch> {
        let src = edges.sources.node_type;
        let dst = edges.destinations.node_type;
        let graph = &self.0.graph;
        let ends = edges.ends(places, (graph.num_nodes(src), graph.num_nodes(dst)), plain)?;
        let from: [&[u32]; 2] = [&ends.sources, &ends.negative_sources];
        let to: [&[u32]; 2] = [&ends.destinations, &ends.negative_destinations];
        let sampler = &self.0.sampler;
        let (found, of_sources, of_destinations) = if src == dst {
            let (all, mut positions) = distinct(&[from[0], from[1], to[0], to[1]]);
            let of_destinations = positions.split_off(2);
            (sampler.sample_types(&[(src, &all)], key, scratch)?, positions, of_destinations)
        } else {
            let (sources, of_sources) = distinct(&from);
            let (destinations, of_destinations) = distinct(&to);
            let seeds: [(usize, &[u32]); 2] = [(src, &sources), (dst, &destinations)];
            (sampler.sample_types(&seeds, key, scratch)?, of_sources, of_destinations)
        };
        let mut of_sources = of_sources.into_iter();
        let mut of_destinations = of_destinations.into_iter();
        let links = BatchLinks {
            sources: of_sources.next().unwrap_or_default(),
            negative_sources: of_sources.next().unwrap_or_default(),
            destinations: of_destinations.next().unwrap_or_default(),
            negative_destinations: of_destinations.next().unwrap_or_default(),
        };
        Ok(Batch { links: Some(links), ..self.with_columns(found, src, input_ids)? })
    }

    /// A sampled batch in the types of tensors, with features and labels.
    fn with_columns(
        &self,
        found: FrontierBatch,
        seed_type: usize,
        input_ids: Vec<i64>,
    ) -> Result<Batch> {
        let Inner { graph, options, rows, .. } = &*self.0;
        let columns = options.columns;
        let of_hop = |counts: &[usize]| counts.iter().map(|&count| count as i64).collect();
        let mut nodes = Vec::with_capacity(found.nodes.len());
        for (node_type, own) in found.nodes.iter().enumerate() {
            let features = match columns.features {
                true => graph.features_of(node_type, own, rows)?,
                false => None,
            };
            let labels = match columns.labels {
                true => graph.labels_of(node_type, own),
                false => None,
            };
            nodes.push(BatchNodes {
                ids: own.iter().map(|&node| node.into()).collect(),
                features,
                labels,
                times: graph.times_of(node_type, own),
                trees: found
                    .trees
                    .as_ref()
                    .map(|trees| trees[node_type].iter().map(|&tree| tree.into()).collect()),
                of_hop: of_hop(&found.nodes_of_hop[node_type]),
            });
        }
        let mut edges = Vec::with_capacity(found.edges.len());
        for (edge_type, own) in found.edges.iter().enumerate() {
            let features = match columns.features {
                true => graph.edge_features_of(edge_type, &own.rows, rows)?,
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
        let schema = found.schema;
        Ok(Batch { schema, seed_type, input_ids, nodes, edges, seed_times: None, links: None })
    }
}

/// Two rows of positions as one list.
fn ends(sources: &[u32], destinations: &[u32]) -> Vec<i64> {
    let mut ends = Vec::with_capacity(sources.len() + destinations.len());
    ends.extend(sources.iter().map(|&at| i64::from(at)));
    ends.extend(destinations.iter().map(|&at| i64::from(at)));
    ends
}
