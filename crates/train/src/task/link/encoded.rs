//! Batches of link prediction whose rows a model puts out, and what they teach.

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;

use super::batches::Batches;
use super::{Links, evaluate};
use crate::config::Leakage;
use crate::embeddings::on_first;
use crate::evaluation::{Evaluation, by_first};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::messages::{LOOKED_AT, MessageModel, Seen, both_ways};
use crate::pipeline::Job;
use crate::state::TrainState;
use crate::strategy::Threads;

/// A batch ready for compute: edges numbered by the rows that the model puts out.
pub(super) struct Encoded<B> {
    links: LinkBatch,
    batch: B,
}

pub(super) struct EncodedLearner<'a, M: MessageModel> {
    links: &'a Links,
    model: &'a M,
    batches: Batches<'a>,
    sampler: M::Sampler,
    loss: Box<dyn Loss>,
}

impl<'a, M: MessageModel> EncodedLearner<'a, M> {
    /// # Errors
    /// If the configuration asks for subgraphs, or fan-outs do not fit the message graph.
    pub fn new(links: &'a Links, model: &'a M) -> Result<Self> {
        links.config.sample.method.check_neighbours()?;
        let sampler = model.sampler(&links.config)?;
        let (batches, loss) = (Batches::new(links)?, links.config.loss.build()?);
        Ok(Self { links, model, batches, sampler, loss })
    }

    /// Looks at the first batches of the first epoch as they are trained on.
    pub fn seen(&self) -> Result<Seen> {
        let (mut found, mut scratch) = (Seen::default(), Scratch::new());
        for job in self.epoch(1, 0, 1).into_iter().take(LOOKED_AT) {
            let (_, sampled) = self.sample(&job, &mut scratch)?;
            let there = self.model.edges(&sampled);
            let targets = self.links.edges.train.at(&job.batch);
            let targets = self.links.edges.ends.in_dataset(targets);
            found.add(Seen::of(&targets, &there, |relation| self.model.ways(relation)));
        }
        Ok(found)
    }
}

impl<M: MessageModel> Learner for EncodedLearner<'_, M> {
    type Sampled = (LinkBatch, M::Sampled);
    type Batch = Encoded<M::Batch>;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        self.batches.epoch(epoch, rank, size)
    }

    fn sample(&self, job: &Job, scratch: &mut Scratch) -> Result<Self::Sampled> {
        let (mut drawn, ends) = (self.batches.draw(job), &self.links.edges.ends);
        let (nodes, places) = ends.by_type(drawn.ids);
        drawn.batch.renumber(&places);
        let mut sampled = self.model.sample(&self.sampler, &nodes, job.key, scratch)?;
        if self.links.config.task.leakage == Leakage::Remove {
            // Those of all ranks: a rank must not see what another is to find.
            let targets = ends.in_dataset(self.links.edges.train.at(&job.batch));
            let targets = both_ways(&targets, |relation| self.model.ways(relation));
            self.model.remove(&mut sampled, &targets);
        }
        Ok((drawn.batch, sampled))
    }

    fn fetch(&self, _: &Job, (mut links, sampled): Self::Sampled) -> Result<Self::Batch> {
        let (batch, places) = self.model.fetch(sampled)?;
        links.renumber(&places);
        Ok(Encoded { links, batch })
    }

    fn compact(&self, prepared: &Self::Batch) {
        self.model.prepare(&prepared.batch);
    }

    fn counts(&self, prepared: &Self::Batch) -> Counts {
        let edges = self.model.num_edges(&prepared.batch) as u64;
        Counts { edges, seeds: prepared.links.heads.len() as u64 }
    }

    fn rows<'b>(&self, prepared: &'b Self::Batch) -> Vec<&'b [u64]> {
        self.model.learnt(&prepared.batch).iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Self::Batch>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Encoded { links, batch } = inputs.batch;
        let mut tape = Tape::new(params, Mode::Train { key });
        let (rows, leaves) = self.model.forward(&mut tape, batch, inputs.rows)?;
        let (decoder, n3) = (self.links.decoder.as_ref(), self.links.config.decoder.n3);
        let (loss, weight) = tape.link_loss(rows, links, decoder, self.loss.as_ref(), n3)?;
        let sum = f64::from(tape.value(loss).data()[0]);
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, self.model.learnt(batch));
        Ok(BatchLoss { sum, weight })
    }

    /// Rank 0 judges with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let tables = on_first(&state.tables, rank)?;
        let judge = || evaluate::alone(self.links, &state.params, &tables);
        by_first(rank, threads, judge)
    }
}
