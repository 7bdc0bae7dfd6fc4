//! Link prediction from rows that a model puts out.
//!
//! The model hears neighbours over the *message graph*, the training edges in both directions. The edges
//! a batch is to find leave it for that batch, with their reverses: else a node would be told its
//! neighbour by the very message that passes over the edge (DistDGLv2, section 5.6).

use std::collections::HashSet;
use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Buf, Csc, Dataset, Error, Labels, Result};
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::negatives::Triples;
use gnarl_sample::{MiniBatch, SampleGraph, Sampler, Scratch};
use gnarl_store::MappedFeatures;

use super::batches::Batches;
use super::{Links, evaluate};
use crate::config::{Leakage, RunConfig};
use crate::evaluate::{Evaluation, by_first, logits};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::nodes::{sampler, step};
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::task::{TaskGraph, Topology, features_of};

/// A model and the graph it hears neighbours over.
pub(super) struct Encoder {
    pub model: Box<dyn Model>,
    pub graph: TaskGraph,
}

/// The message graph of a dataset: `train` in both directions.
pub(super) fn message_graph(
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

impl Encoder {
    /// The rows of all nodes, by full neighbours.
    pub fn rows(&self, params: &Params) -> Result<Tensor> {
        logits(self.model.as_ref(), params, &self.graph)
    }
}

/// Edges in both directions, by dataset ids.
pub(super) struct Targets(HashSet<(u64, u64)>);

impl Targets {
    pub fn of(edges: &Triples) -> Self {
        let ends = edges.heads.iter().zip(&edges.tails);
        Self(ends.flat_map(|(&h, &t)| [(h.into(), t.into()), (t.into(), h.into())]).collect())
    }

    pub fn contains(&self, source: u64, destination: u64) -> bool {
        self.0.contains(&(source, destination))
    }
}

/// A batch ready for compute.
pub(super) struct Encoded {
    links: LinkBatch,
    pub batch: MiniBatch,
    input: Input,
}

pub(super) struct EncodedLearner<'a> {
    links: &'a Links,
    encoder: &'a Encoder,
    batches: Batches<'a>,
    sampler: Box<dyn Sampler>,
    loss: Box<dyn Loss>,
}

impl<'a> EncodedLearner<'a> {
    pub fn new(links: &'a Links, encoder: &'a Encoder) -> Result<Self> {
        let method = links.config.sample.method;
        if !method.has_fanouts() && method != crate::config::Method::Full {
            return Err(Error::usage("link prediction draws neighbours, not subgraphs")
                .hint("set sample.method to 'neighbor'"));
        }
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
            let targets = Targets::of(&self.links.edges.train.at(&job.batch));
            for block in &mut batch.blocks {
                *block = Arc::new(block.without(|src, dst| targets.contains(src, dst)));
            }
        }
        Ok((drawn.batch, batch))
    }

    fn fetch(&self, _: &Job, (mut links, batch): Self::Sampled) -> Result<Encoded> {
        let input = rows(self.encoder.graph.features.as_ref(), &batch.input_nodes)?;
        // The model puts out the rows of the seeds, in the order of `targets`.
        let place = |row: &mut u32| *row = batch.targets[*row as usize];
        links.heads.iter_mut().chain(&mut links.tails).for_each(place);
        for (_, candidates) in &mut links.negatives {
            candidates.rows.iter_mut().for_each(place);
        }
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
        let (decoder, n3) = (self.links.decoder.as_ref(), self.links.config.decoder.n3);
        let (loss, weight) = tape.link_loss(rows, links, decoder, self.loss.as_ref(), n3)?;
        let sum = f64::from(tape.value(loss).data()[0]);
        tape.backward(loss, gradients.dense)?;
        Ok(BatchLoss { sum, weight })
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
