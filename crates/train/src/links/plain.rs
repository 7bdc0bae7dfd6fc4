//! Rows that a model without types puts out, which hears neighbours over the training edges in both
//! directions, whatever their relation.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Buf, Csc, Dataset, Labels, Result};
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_nn::models::{self, Model};
use gnarl_nn::{Mode, Params, ParamsBuilder, Tape, Tensor};
use gnarl_sample::negatives::Triples;
use gnarl_sample::{MiniBatch, SampleGraph, Sampler, Scratch};
use gnarl_store::MappedFeatures;

use super::batches::Batches;
use super::data::Edges;
use super::encoder::{Encoder, Targets};
use super::leakage::{Seen, count};
use super::{Links, evaluate};
use crate::config::{Leakage, RunConfig};
use crate::embeddings::Table;
use crate::evaluate::{Evaluation, by_first, logits};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::nodes::{sampler, step};
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::strategy::{Session, gradient};
use crate::task::{TaskGraph, Topology, features_of};

/// A model and the graph it hears neighbours over.
pub(super) struct PlainEncoder {
    pub model: Box<dyn Model>,
    pub graph: TaskGraph,
}

impl PlainEncoder {
    /// The model of `config`, whose rows are `width` wide, and its parameters added to `params`.
    ///
    /// # Errors
    /// If the model is unknown, or nodes have no features.
    pub fn new(
        config: &RunConfig,
        dataset: &Dataset,
        edges: &Edges,
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let graph = message_graph(config, dataset, edges.nodes, &edges.train)?;
        let mut sizes = config.model.clone();
        (sizes.in_dim, sizes.out_dim) = (graph.width(), width);
        Ok(Self { model: models::add(&sizes, params)?, graph })
    }
}

/// The message graph of a dataset: `train` in both directions.
fn message_graph(
    config: &RunConfig,
    dataset: &Dataset,
    nodes: usize,
    train: &Triples,
) -> Result<TaskGraph> {
    let both = train.heads.iter().zip(&train.tails).flat_map(|(&h, &t)| [(h, t), (t, h)]);
    let mut edges: Vec<(u32, u32)> = both.collect();
    edges.sort_unstable_by_key(|&(source, destination)| (destination, source));
    edges.dedup();
    let graph = SampleGraph::new(Csc::from_edges(nodes, &edges))?;
    let none: Buf<i32> = Vec::new().into();
    Ok(TaskGraph {
        topology: Topology::Held(graph),
        features: Box::new(MappedFeatures::new(features_of(dataset)?, config.dataset.normalize)?),
        labels: Labels::Single { classes: none, count: 0 },
        train: Vec::new(),
        valid: Vec::new(),
        test: Vec::new(),
    })
}

impl Encoder for PlainEncoder {
    fn edge_types(&self, _: u32) -> [usize; 2] {
        [0, 0]
    }

    fn rows(&self, params: &Params, _: &[Table]) -> Result<Tensor> {
        logits(self.model.as_ref(), params, &self.graph)
    }

    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        gradient::train(session, &EncodedLearner::new(links, self)?, rank, state)
    }

    fn seen(&self, links: &Links) -> Result<Seen> {
        count(links, self, &EncodedLearner::new(links, self)?, |(_, batch)| {
            let edges = batch.blocks.iter().flat_map(|block| {
                let ids = block.ids();
                let of = move |dst: usize| {
                    block.sources(dst).iter().map(move |&src| (0, ids[src as usize], ids[dst]))
                };
                (0..block.num_dst()).flat_map(of)
            });
            edges.collect()
        })
    }
}

/// A batch ready for compute.
struct Encoded {
    links: LinkBatch,
    batch: MiniBatch,
    input: Input,
}

struct EncodedLearner<'a> {
    links: &'a Links,
    encoder: &'a PlainEncoder,
    batches: Batches<'a>,
    sampler: Box<dyn Sampler>,
    loss: Box<dyn Loss>,
}

impl<'a> EncodedLearner<'a> {
    pub fn new(links: &'a Links, encoder: &'a PlainEncoder) -> Result<Self> {
        links.config.sample.method.check_neighbours()?;
        let sampler = sampler(&links.config, &encoder.graph)?;
        let (batches, loss) = (Batches::new(links)?, links.config.loss.build()?);
        Ok(Self { links, encoder, batches, sampler, loss })
    }
}

impl Learner for EncodedLearner<'_> {
    type Sampled = (LinkBatch, MiniBatch);
    type Batch = Encoded;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        self.batches.epoch(epoch, rank, size)
    }

    fn sample(&self, job: &Job, scratch: &mut Scratch) -> Result<Self::Sampled> {
        let drawn = self.batches.draw(job);
        let mut batch = self.sampler.sample(&drawn.ids, job.key, scratch)?;
        if self.links.config.task.leakage == Leakage::Remove {
            // Those of all ranks: a rank must not see what another is to find.
            let targets = Targets::of(&self.links.edges.train.at(&job.batch), self.encoder);
            for block in &mut batch.blocks {
                *block = Arc::new(block.without(|src, dst| targets.contains(0, src, dst)));
            }
        }
        Ok((drawn.batch, batch))
    }

    fn fetch(&self, _: &Job, (mut links, batch): Self::Sampled) -> Result<Encoded> {
        let input = rows(self.encoder.graph.features.as_ref(), &batch.input_nodes)?;
        // The model puts out the rows of the seeds, in the order of `targets`.
        links.renumber(&batch.targets);
        Ok(Encoded { links, batch, input })
    }

    fn compact(&self, prepared: &Encoded) {
        step::turn_round(&prepared.batch);
    }

    fn counts(&self, prepared: &Encoded) -> Counts {
        let edges = prepared.batch.num_edges() as u64;
        Counts { edges, seeds: prepared.links.heads.len() as u64 }
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Encoded>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Encoded { links, batch, input } = inputs.batch;
        let mut tape = Tape::new(params, Mode::Train { key });
        let x = step::input(&mut tape, input);
        let rows = self.encoder.model.forward(&mut tape, &batch.blocks, x)?;
        self.links.backward(&mut tape, rows, (links, self.loss.as_ref()), gradients.dense)
    }

    /// Rank 0 judges with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: usize,
    ) -> Result<Evaluation> {
        let judge = || evaluate::alone(self.links, &state.params, &state.tables);
        by_first(rank, threads, judge)
    }
}
