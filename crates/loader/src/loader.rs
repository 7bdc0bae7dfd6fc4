//! The loader of batches around nodes.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroScratch};

use crate::batch::Batch;
use crate::epoch::Epoch;
use crate::examples::{Examples, SeedEdges};
use crate::graph::{LoaderGraph, Seeds};
use crate::options::LoaderOptions;
#[cfg(feature = "serve")]
use crate::remote::RemoteBatches;
use crate::request::{Around, BatchRequest};
use crate::sampler::NeighborSampler;
use crate::schedule::Schedule;
use crate::scratches::Scratches;
use crate::source::{BatchSource, OwnBatches};
#[cfg(feature = "serve")]
use crate::wire::BatchSpec;

/// Makes batches around seeds: their sampled neighborhoods with features and labels. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct NeighborLoader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    graph: Arc<LoaderGraph>,
    examples: Examples,
    source: Box<dyn BatchSource>,
    facts: Facts,
    options: LoaderOptions,
    scratches: Arc<Scratches>,
}

/// Facts about the sampler that requests depend on.
#[derive(Debug)]
struct Facts {
    rule: Rule,
    disjoint: bool,
    timed: bool,
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
        let seeds = match options.neighborhood.time {
            Some(_) => graph.timed(seeds)?,
            None => seeds,
        };
        Self::around(graph, seeds.into(), (fanouts, rule), options)
    }

    /// A loader of batches around edges likewise.
    ///
    /// # Errors
    /// As [`NeighborLoader::new`]; also if edges have times and are not sampled in time, or the other way round, or weights of
    /// negatives are of another number of nodes.
    pub fn of_edges(
        graph: Arc<LoaderGraph>,
        edges: SeedEdges,
        (fanouts, rule): (&HeteroFanouts, Rule),
        options: LoaderOptions,
    ) -> Result<Self> {
        if options.neighborhood.time.is_some() != edges.sources.times.is_some() {
            return Err(Error::usage("edges are sampled in time if, and only if, they have times")
                .hint("give the time of each edge, and ask for a rule in time"));
        }
        let drawn = edges.drawn(&graph)?;
        Self::around(graph, Examples::Edges(edges, Box::new(drawn)), (fanouts, rule), options)
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
        let sampler = NeighborSampler::new(
            graph.clone(),
            (fanouts, rule),
            options.neighborhood,
            options.threads,
        )?;
        let facts = Facts {
            rule: sampler.rule(),
            disjoint: sampler.is_disjoint(),
            timed: sampler.is_timed(),
        };
        let source = source(&graph, sampler, (fanouts, &options));
        let scratches = Arc::new(Scratches::new(options.threads));
        Ok(Self(Arc::new(Inner { graph, examples, source, facts, options, scratches })))
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
        let threads = (options.threads, options.prefetch);
        Epoch::start(batches, threads, self.0.graph.is_remote(), self.0.scratches.clone(), make)
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
        self.0.source.batch(&self.request(places, key)?, scratch)
    }

    /// The request for the batch of the examples at `places`.
    fn request(&self, places: &[u32], key: Key) -> Result<BatchRequest> {
        let Inner { examples, facts, .. } = &*self.0;
        let plain = key;
        let key = match (facts.rule, places.first()) {
            // Its numbers are of sources: by one key those with large ones would be missing from a whole epoch.
            (Rule::Labor, Some(&first)) => key.with(first.into()),
            _ => key,
        };
        let (around, times) = match examples {
            Examples::Nodes(seeds) => {
                let nodes = places.iter().map(|&place| seeds.nodes[place as usize]).collect();
                let times = seeds.times.as_ref().filter(|_| facts.disjoint).map(|times| {
                    places.iter().map(|&place| times[place as usize]).collect::<Vec<i64>>()
                });
                (Around::Nodes { node_type: seeds.node_type, nodes }, times)
            }
            Examples::Edges(edges, drawn) => {
                let ends = edges.ends(places, drawn, plain)?;
                let times = edges.times(places).filter(|_| facts.timed);
                (Around::Edges(edges.kind(), ends), times)
            }
        };
        Ok(BatchRequest { places: places.to_vec(), key, around, times })
    }
}

/// The source of batches of `graph`: its batch servers, if it has some, or this process.
#[cfg_attr(not(feature = "serve"), expect(unused_variables, reason = "there are no servers"))]
fn source(
    graph: &Arc<LoaderGraph>,
    sampler: NeighborSampler,
    (fanouts, options): (&HeteroFanouts, &LoaderOptions),
) -> Box<dyn BatchSource> {
    #[cfg(feature = "serve")]
    if let Some(servers) = graph.batch_servers() {
        let spec = BatchSpec::of(graph, (fanouts, sampler.rule()), options);
        return Box::new(RemoteBatches::new(graph.clone(), servers, &spec));
    }
    Box::new(OwnBatches::new(sampler, options.columns))
}
