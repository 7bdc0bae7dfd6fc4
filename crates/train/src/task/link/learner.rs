//! Link prediction whose rows of nodes are learnt themselves.

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::Params;
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_sample::Scratch;

use super::batches::Batches;
use super::{Links, evaluate};
use crate::evaluation::Evaluation;
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::pipeline::Job;
use crate::state::TrainState;
use crate::strategy::{Threads, pool};

/// Edges and candidates, and ids of the rows they are numbered by.
pub(super) struct Rows {
    batch: LinkBatch,
    ids: Vec<u64>,
}

pub(super) struct LinkLearner<'a> {
    links: &'a Links,
    batches: Batches<'a>,
    loss: Box<dyn Loss>,
}

impl<'a> LinkLearner<'a> {
    pub fn new(links: &'a Links) -> Result<Self> {
        Ok(Self { links, batches: Batches::new(links)?, loss: links.config.loss.build()? })
    }
}

impl Learner for LinkLearner<'_> {
    type Sampled = Rows;
    type Batch = Rows;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        self.batches.epoch(epoch, rank, size)
    }

    fn sample(&self, job: &Job, _: &mut Scratch) -> Result<Rows> {
        let drawn = self.batches.draw(job);
        Ok(Rows { batch: drawn.batch, ids: drawn.ids.iter().map(|&id| id.into()).collect() })
    }

    fn fetch(&self, _: &Job, sampled: Rows) -> Result<Rows> {
        Ok(sampled)
    }

    fn counts(&self, batch: &Rows) -> Counts {
        Counts { edges: 0, seeds: batch.batch.heads.len() as u64 }
    }

    fn rows<'b>(&self, batch: &'b Rows) -> Vec<&'b [u64]> {
        vec![&batch.ids]
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Rows>,
        _: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Rows { batch, ids } = inputs.batch;
        let (decoder, n3) = (self.links.decoder.as_ref(), self.links.config.decoder.n3);
        let (rows, dense) = (&inputs.rows[0], &mut *gradients.dense);
        let found = batch.loss(decoder, self.loss.as_ref(), n3, params, rows, dense)?;
        gradients.rows[0].push(ids, &found.rows);
        Ok(BatchLoss { sum: found.sum, weight: found.weight })
    }

    /// Each rank ranks its share of the edges.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let (pool, rows) = (pool(threads.each)?, state.tables[0].on_all(rank)?);
        evaluate::together(self.links, &state.params, rows, rank, &pool)
    }
}
