//! Steps over mini-batches: sampled blocks, whatever the task and the encoder.

#[cfg(feature = "serve")]
use gnarl_common::Error;
use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;

use super::batch_graphs::{BatchGraphs, Fixed};
use super::{BatchLoss, Counts, Gradients, Inputs, PartStep, TrainStep};
use crate::data::batch::BatchSpec;
use crate::data::edge_set::{LeakageCount, both_ways};
use crate::data::packed::{Columns, Pending, take_cached};
use crate::encoder::Encoder;
use crate::evaluation::Evaluation;
use crate::session::Threads;
use crate::state::TrainState;
use crate::task::{DrawnBatch, Encoders, Sharing, Task};

/// Number of batches whose target edges are checked for leakage.
const LOOKED_AT: usize = 20;

/// The steps of one rank, over the graphs of `G`.
pub(crate) struct MiniBatch<'a, T: Task, E: Encoder, G> {
    task: &'a T,
    encoders: Encoders<'a, E>,
    graphs: G,
}

/// A batch's graph, its examples, and their neighborhood.
struct Neighborhood<H, D, S> {
    held: H,
    drawn: DrawnBatch<D>,
    sampled: S,
}

/// A batch with all that computing on it needs.
pub(crate) struct PreparedBatch<X, B> {
    examples: X,
    blocks: B,
    /// Features that were here already, and those that other processes were asked for.
    cached: [u64; 2],
}

impl<X, B> PreparedBatch<X, B> {
    /// A batch that nobody was asked for.
    fn own(examples: X, blocks: B) -> Self {
        Self { examples, blocks, cached: [0; 2] }
    }
}

/// A batch between sampling and the gathering of features.
pub(crate) enum Sampled<H, D, S> {
    /// Its graph, its examples, and their neighborhood.
    Here(H, D, S),
    /// It was asked for: of a batch worker, or one that is prepared.
    Asked(Pending),
}

impl<'a, T: Task, E: Encoder, G: BatchGraphs<E>> MiniBatch<'a, T, E, G> {
    /// Steps over `graphs`.
    ///
    /// # Errors
    /// If the run file requires parts and there are none.
    pub fn new(task: &'a T, encoders: Encoders<'a, E>, graphs: G) -> Result<Self> {
        task.ready()?;
        Ok(Self { task, encoders, graphs })
    }

    /// A batch's examples, and their neighborhood without target edges.
    fn neighborhood(
        &self,
        spec: &BatchSpec,
        scratch: &mut Scratch,
    ) -> Result<Neighborhood<G::Held, T::Drawn, E::Sampled>> {
        let held = self.graphs.hold(spec)?;
        let mut drawn = self.task.draw(spec, self.graphs.nodes(&held))?;
        drawn.seeds = self.graphs.seeds(&held, drawn.seeds)?;
        let (encoder, sampler) = self.graphs.encoder(&held);
        let mut sampled = encoder.sample(sampler, &drawn.seeds, spec.key, scratch)?;
        // The targets of all ranks: a rank must not see another's target edges.
        let asked = drawn.asked.as_ref().filter(|_| self.task.removes_asked());
        if let Some(asked) = asked {
            encoder.remove(&mut sampled, &both_ways(asked, |relation| encoder.ways(relation)));
        }
        Ok(Neighborhood { held, drawn, sampled })
    }

    /// A sampled batch without the features of its input nodes.
    ///
    /// # Errors
    /// If examples cannot be read, or batches have no such form.
    #[cfg(feature = "serve")]
    pub fn without_features(
        &self,
        spec: &BatchSpec,
        sampled: Sampled<G::Held, T::Drawn, E::Sampled>,
    ) -> Result<PreparedBatch<T::Examples, E::Batch>> {
        let Sampled::Here(held, drawn, sampled) = sampled else {
            return Err(Error::invalid("a batch of another process"));
        };
        let (batch, outputs) = self.graphs.encoder(&held).0.without_features(sampled)?;
        let outputs = self.graphs.outputs(&held, outputs);
        Ok(PreparedBatch::own(self.task.examples(spec, drawn, outputs)?, batch))
    }

    /// A batch over graph `graph` as columns, on its way to another process.
    ///
    /// # Errors
    /// If the task or the encoder has no such form.
    pub fn packed(
        &self,
        batch: PreparedBatch<T::Examples, E::Batch>,
        graph: usize,
    ) -> Result<Columns> {
        let mut columns = Columns::default();
        self.task.pack(batch.examples, &mut columns)?;
        self.graphs.model(graph).pack(batch.blocks, &mut columns)?;
        Ok(columns)
    }

    /// A batch of another process.
    ///
    /// # Errors
    /// If columns are missing or disagree.
    fn unpacked(&self, mut columns: Columns) -> Result<PreparedBatch<T::Examples, E::Batch>> {
        let cached = take_cached(&mut columns)?;
        let blocks = self.encoders.whole.unpack(&mut columns)?;
        Ok(PreparedBatch { examples: self.task.unpack(&mut columns)?, blocks, cached })
    }

    /// Counts the target edges of the first batches of the first epoch in the message graphs of
    /// these batches.
    ///
    /// # Errors
    /// If a batch cannot be sampled.
    pub fn leakage(&self) -> Result<LeakageCount> {
        let mut count = LeakageCount::default();
        let mut scratch = Scratch::new();
        for spec in self.epoch(1, 0, 1).into_iter().take(LOOKED_AT) {
            let found = self.neighborhood(&spec, &mut scratch)?;
            let Neighborhood { held, drawn, sampled } = found;
            let Some(asked) = drawn.asked else { break };
            let (encoder, _) = self.graphs.encoder(&held);
            let there = encoder.edges(&sampled);
            count.add(LeakageCount::of(&asked, &there, |relation| encoder.ways(relation)));
        }
        Ok(count)
    }
}

impl<T: Task, E: Encoder, G: BatchGraphs<E>> TrainStep for MiniBatch<'_, T, E, G> {
    type Sampled = Sampled<G::Held, T::Drawn, E::Sampled>;
    type Batch = PreparedBatch<T::Examples, E::Batch>;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<BatchSpec> {
        self.graphs.schedule(self.task, 0, epoch, Sharing::Ranks { rank, size })
    }

    fn sample(&self, spec: &BatchSpec, scratch: &mut Scratch) -> Result<Self::Sampled> {
        if let Some(pending) = self.graphs.ask(spec)? {
            return Ok(Sampled::Asked(pending));
        }
        let Neighborhood { held, drawn, sampled } = self.neighborhood(spec, scratch)?;
        Ok(Sampled::Here(held, drawn.examples, sampled))
    }

    fn ahead(&self) -> usize {
        self.graphs.ahead()
    }

    fn loading(&self, sampled: &Self::Sampled) -> f64 {
        match sampled {
            Sampled::Here(held, ..) => self.graphs.loading(held),
            Sampled::Asked(_) => 0.0,
        }
    }

    fn is_received(&self, sampled: &Self::Sampled) -> bool {
        matches!(sampled, Sampled::Asked(_))
    }

    fn fetch(&self, spec: &BatchSpec, sampled: Self::Sampled) -> Result<Self::Batch> {
        let (held, drawn, sampled) = match sampled {
            Sampled::Here(held, drawn, sampled) => (held, drawn, sampled),
            Sampled::Asked(pending) => return self.unpacked(pending()?),
        };
        let (batch, outputs) = self.graphs.encoder(&held).0.fetch(sampled)?;
        let outputs = self.graphs.outputs(&held, outputs);
        Ok(PreparedBatch::own(self.task.examples(spec, drawn, outputs)?, batch))
    }

    fn prepare(&self, batch: &Self::Batch) {
        self.encoders.whole.prepare(&batch.blocks);
    }

    fn counts(&self, batch: &Self::Batch) -> Counts {
        Counts {
            edges: self.encoders.whole.num_edges(&batch.blocks) as u64,
            seeds: self.task.count(&batch.examples) as u64,
            cached: batch.cached,
        }
    }

    fn embedding_ids<'b>(&self, batch: &'b Self::Batch) -> Vec<&'b [u64]> {
        self.encoders.whole.embedding_ids(&batch.blocks).iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Self::Batch>,
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Inputs { batch: PreparedBatch { examples, blocks, .. }, graph, embeddings } = inputs;
        self.graphs.reach(graph);
        let encoder = self.graphs.model(graph);
        let mut tape = Tape::new(params, mode);
        let (rows, leaves) = encoder.forward(&mut tape, blocks, embeddings)?;
        let (loss, found) = self.task.loss(&mut tape, rows, examples)?;
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, encoder.embedding_ids(blocks));
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
        let parts = self.encoders.parts.iter().flatten();
        parts
            .chain([self.encoders.whole])
            .map(Encoder::cached)
            .fold([0, 0], |[hits, misses], of| [hits + of[0], misses + of[1]])
    }

    fn batch_workers(&self) -> usize {
        self.graphs.batch_workers()
    }

    fn read_bytes(&self) -> u64 {
        self.graphs.read_bytes()
    }
}

impl<T: Task, E: Encoder> PartStep for MiniBatch<'_, T, E, Fixed<'_, E>> {
    fn training(&self) -> Vec<usize> {
        (0..self.graphs.len()).map(|graph| self.task.training(graph)).collect()
    }

    fn part_epoch(&self, part: usize, epoch: usize) -> Vec<BatchSpec> {
        let examples = self.training().iter().sum();
        self.graphs.schedule(self.task, part, epoch, Sharing::Alone { examples })
    }

    fn embedding_ids_of(&self, part: usize) -> Vec<Vec<u64>> {
        self.graphs.model(part).all_embedding_ids()
    }
}
