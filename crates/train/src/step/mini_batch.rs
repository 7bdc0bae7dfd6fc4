//! Steps over mini-batches: sampled blocks, whatever the task and the encoder.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_config::RunConfig;
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;

use super::{BatchLoss, Counts, Gradients, Inputs, PartStep, TrainStep};
use crate::data::batch::BatchSpec;
use crate::data::edge_set::{LeakageCount, both_ways};
use crate::encoder::Encoder;
use crate::evaluation::Evaluation;
use crate::session::Threads;
use crate::state::TrainState;
use crate::task::{DrawnBatch, Encoders, Sharing, Task};

/// Number of batches whose target edges are checked for leakage.
const LOOKED_AT: usize = 20;

/// The steps of one rank.
pub(crate) struct MiniBatch<'a, T: Task, E: Encoder> {
    task: &'a T,
    encoders: Encoders<'a, E>,
    /// Graphs that train alone; or the whole graph as the only one.
    graphs: Vec<&'a E>,
    /// One sampler per graph that this rank makes batches of.
    samplers: Vec<Option<E::Sampler>>,
}

impl<'a, T: Task, E: Encoder> MiniBatch<'a, T, E> {
    /// Steps over `graphs`, of which this rank makes batches of those in `mine`.
    ///
    /// # Errors
    /// If a sampler does not fit its graph, or the run file requires parts and there are none.
    pub fn new(
        config: &RunConfig,
        task: &'a T,
        encoders: Encoders<'a, E>,
        (graphs, mine): (Vec<&'a E>, &[usize]),
    ) -> Result<Self> {
        task.ready()?;
        let mut samplers = Vec::with_capacity(graphs.len());
        for (graph, encoder) in graphs.iter().enumerate() {
            let trained = mine.contains(&graph) && task.training(graph) > 0;
            let sampler = trained.then(|| encoder.sampler(config, task.seeds(graph)));
            samplers.push(sampler.transpose()?);
        }
        Ok(Self { task, encoders, graphs, samplers })
    }

    fn sampler(&self, graph: usize) -> Result<&E::Sampler> {
        let not_here = || Error::invalid(format!("graph {graph} does not belong to this rank"));
        self.samplers[graph].as_ref().ok_or_else(not_here)
    }

    fn schedule(&self, graph: usize, epoch: usize, sharing: Sharing) -> Vec<BatchSpec> {
        let Some(sampler) = &self.samplers[graph] else { return Vec::new() };
        let encoder = self.graphs[graph];
        let batches =
            |seeds: &[u32], size, order: Key| encoder.batches(sampler, seeds, size, order);
        self.task.schedule(graph, epoch, sharing, &batches)
    }

    /// A batch's examples, and their neighborhood without target edges.
    fn neighborhood(
        &self,
        spec: &BatchSpec,
        scratch: &mut Scratch,
    ) -> Result<(DrawnBatch<T::Drawn>, E::Sampled)> {
        let encoder = self.graphs[spec.graph];
        let drawn = self.task.draw(spec)?;
        let sampler = self.sampler(spec.graph)?;
        let mut sampled = encoder.sample(sampler, &drawn.seeds, spec.key, scratch)?;
        // The targets of all ranks: a rank must not see another's target edges.
        let asked = drawn.asked.as_ref().filter(|_| self.task.removes_asked());
        if let Some(asked) = asked {
            encoder.remove(&mut sampled, &both_ways(asked, |relation| encoder.ways(relation)));
        }
        Ok((drawn, sampled))
    }

    /// Counts the target edges of the first batches of the first epoch in the message graphs of
    /// these batches.
    ///
    /// # Errors
    /// If a batch cannot be sampled.
    pub fn leakage(&self) -> Result<LeakageCount> {
        let mut count = LeakageCount::default();
        let mut scratch = Scratch::new();
        let encoder = self.graphs[0];
        for spec in self.epoch(1, 0, 1).into_iter().take(LOOKED_AT) {
            let (DrawnBatch { asked, .. }, sampled) = self.neighborhood(&spec, &mut scratch)?;
            let Some(asked) = asked else { break };
            let there = encoder.edges(&sampled);
            count.add(LeakageCount::of(&asked, &there, |relation| encoder.ways(relation)));
        }
        Ok(count)
    }
}

impl<T: Task, E: Encoder> TrainStep for MiniBatch<'_, T, E> {
    type Sampled = (T::Drawn, E::Sampled);
    type Batch = (T::Examples, E::Batch);

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<BatchSpec> {
        self.schedule(0, epoch, Sharing::Ranks { rank, size })
    }

    fn sample(&self, spec: &BatchSpec, scratch: &mut Scratch) -> Result<Self::Sampled> {
        let (drawn, sampled) = self.neighborhood(spec, scratch)?;
        Ok((drawn.examples, sampled))
    }

    fn fetch(&self, spec: &BatchSpec, (drawn, sampled): Self::Sampled) -> Result<Self::Batch> {
        let (batch, outputs) = self.graphs[spec.graph].fetch(sampled)?;
        Ok((self.task.examples(spec, drawn, outputs)?, batch))
    }

    fn prepare(&self, (_, batch): &Self::Batch) {
        self.encoders.whole.prepare(batch);
    }

    fn counts(&self, (examples, batch): &Self::Batch) -> Counts {
        let edges = self.encoders.whole.num_edges(batch) as u64;
        Counts { edges, seeds: self.task.count(examples) as u64 }
    }

    fn embedding_ids<'b>(&self, (_, batch): &'b Self::Batch) -> Vec<&'b [u64]> {
        self.encoders.whole.embedding_ids(batch).iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Self::Batch>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Inputs { batch: (examples, batch), graph, embeddings } = inputs;
        let encoder = self.graphs[graph];
        let mut tape = Tape::new(params, Mode::Train { key });
        let (rows, leaves) = encoder.forward(&mut tape, batch, embeddings)?;
        let (loss, found) = self.task.loss(&mut tape, rows, examples)?;
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, encoder.embedding_ids(batch));
        Ok(found)
    }

    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        self.task.evaluate(self.encoders, state, comm, threads)
    }

    fn cached(&self) -> [u64; 2] {
        self.encoders.whole.cached()
    }
}

impl<T: Task, E: Encoder> PartStep for MiniBatch<'_, T, E> {
    fn training(&self) -> Vec<usize> {
        (0..self.graphs.len()).map(|graph| self.task.training(graph)).collect()
    }

    fn part_epoch(&self, part: usize, epoch: usize) -> Vec<BatchSpec> {
        let examples = self.training().iter().sum();
        self.schedule(part, epoch, Sharing::Alone { examples })
    }

    fn embedding_ids_of(&self, part: usize) -> Vec<Vec<u64>> {
        self.graphs[part].all_embedding_ids()
    }
}
