//! Full-graph steps in tensor parallelism, whatever the task and the model.
//!
//! A model computes the embeddings of each rank's own nodes. A rank scores its share of a batch of
//! edges: it fetches the embeddings of their endpoints and candidates from their owners, and sends
//! gradients back.

use std::sync::Arc;

use gnarl_common::Result;
use gnarl_common::threads::{even_share, pool};
use gnarl_engine::Communicator;
use gnarl_nn::pool::{Kept, keep_all};
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;

use super::tensor_parallel::{OwnOutputs, Purpose, WholeModel, ascending};
use super::{BatchLoss, Counts, Exchanges, Gradients, Inputs, TrainStep};
use crate::data::batch::BatchSpec;
use crate::data::edge_set::{Ways, both_ways};
use crate::embeddings::{EmbeddingTables, Fetch};
use crate::encoder::Outputs;
use crate::evaluation::Evaluation;
use crate::session::Threads;
use crate::state::TrainState;
use crate::task::{DrawnBatch, Task};

/// This rank's share of a batch.
pub(crate) struct Share<X, G> {
    examples: X,
    /// Rows that its examples are numbered by, ascending, by their numbers among those of all
    /// ranks; none where all are own ones.
    wanted: Vec<u32>,
    /// The message graph.
    graph: Arc<G>,
    /// Ids of the embeddings of the own nodes, one list per table.
    embedding_ids: Arc<[Vec<u64>]>,
    /// Positions of the embeddings that the batch of all ranks reaches: others are not updated.
    reached: Vec<Vec<u32>>,
}

/// The steps of one rank.
pub(crate) struct FullGraph<'a, T, W> {
    task: &'a T,
    model: W,
    ways: &'a (dyn Fn(u32) -> Ways + Sync),
    /// Number of this rank, and of all.
    rank: (usize, usize),
    /// Threads of this rank.
    threads: usize,
    /// Every step uses the same buffers, however large.
    _buffers: Kept,
}

impl<'a, T: Task, W: WholeModel> FullGraph<'a, T, W> {
    /// Steps of `model` with `comm` and `threads` threads, whose relations pass messages by `ways`.
    ///
    /// # Errors
    /// If the run file requires parts and there are none.
    pub fn new(
        task: &'a T,
        model: W,
        ways: &'a (dyn Fn(u32) -> Ways + Sync),
        comm: &dyn Communicator,
        threads: usize,
    ) -> Result<Self> {
        task.ready()?;
        let rank = (comm.rank(), comm.size());
        Ok(Self { task, model, ways, rank, threads, _buffers: keep_all() })
    }

    fn own(&self, spec: &BatchSpec) -> BatchSpec {
        self.task.own(spec, self.model.own_nodes(), self.rank)
    }

    /// Positions of the own embeddings that the examples of all ranks reach.
    ///
    /// # Errors
    /// Those of [`Task::draw`].
    fn reached(&self, spec: &BatchSpec) -> Result<Vec<Vec<u32>>> {
        if T::LOCAL || self.model.embedding_ids().is_empty() {
            return Ok(Vec::new());
        }
        let whole = BatchSpec { share: 0..spec.batch.len(), ..spec.clone() };
        let seeds = self.task.draw(&whole, None)?.seeds;
        Ok(self.model.reached(&self.model.rows(&seeds.nodes)))
    }
}

impl<T: Task, W: WholeModel> TrainStep for FullGraph<'_, T, W> {
    type Sampled = Share<T::Examples, W::Graph>;
    type Batch = Share<T::Examples, W::Graph>;

    /// All ranks have all batches: one without examples still computes its feature slice for the
    /// others.
    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<BatchSpec> {
        self.task.whole_schedule(epoch)
    }

    fn sample(&self, spec: &BatchSpec, _: &mut Scratch) -> Result<Self::Sampled> {
        let own = self.own(spec);
        let DrawnBatch { examples: drawn, seeds, asked } = self.task.draw(&own, None)?;
        let nodes = seeds.nodes;
        let asked = asked.filter(|_| self.task.removes_asked());
        let left = match asked {
            None => None,
            Some(asked) => Some(self.model.without(&both_ways(&asked, self.ways))?),
        };
        let of_loss = if T::LOCAL { nodes.concat() } else { Vec::new() };
        let ascends = !of_loss.is_empty() && of_loss.is_sorted_by(|a, b| a < b);
        let part = match &left {
            None if ascends => self.model.part_for(&of_loss, Purpose::Train, self.threads)?,
            _ => None,
        };
        let (wanted, rows) = match (T::LOCAL, &part) {
            (true, Some(_)) => (Vec::new(), (0..of_loss.len() as u32).collect()),
            (true, None) => (Vec::new(), self.model.own_rows(&of_loss)),
            (false, _) => ascending(self.model.rows(&nodes)),
        };
        let graph = left.or(part).unwrap_or_else(|| self.model.graph());
        let examples = self.task.examples(&own, drawn, Outputs { rows, nodes, weights: None })?;
        let embedding_ids = self.model.embedding_ids();
        let reached = self.reached(spec)?;
        Ok(Share { examples, wanted, graph, embedding_ids, reached })
    }

    fn fetch(&self, _: &BatchSpec, sampled: Self::Sampled) -> Result<Self::Batch> {
        Ok(sampled)
    }

    fn prepare(&self, batch: &Self::Batch) {
        self.model.prepare(&batch.graph);
    }

    /// The edges of each rank are its share of the feature slices of all.
    fn counts(&self, batch: &Self::Batch) -> Counts {
        let (rank, ranks) = self.rank;
        let edges = even_share(self.model.num_edges(&batch.graph), rank, ranks);
        Counts {
            edges: edges.len() as u64,
            seeds: self.task.count(&batch.examples) as u64,
            cached: [0; 2],
        }
    }

    fn embedding_ids<'b>(&self, batch: &'b Self::Batch) -> Vec<&'b [u64]> {
        batch.embedding_ids.iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Self::Batch>,
        mode: Mode,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Share { examples, wanted, graph, embedding_ids, reached } = inputs.batch;
        let exchange = self.model.exchange();
        let counted = self.model.counted();
        let before = counted.sent();
        let routes = if T::LOCAL { None } else { Some(exchange.route(wanted)?) };
        let mut tape = Tape::new(params, mode);
        let (own, leaves) = self.model.forward(&mut tape, graph, inputs.embeddings)?;
        let rows = match &routes {
            None => own,
            Some(routes) => tape.fetch_rows(exchange, own, routes)?,
        };
        let (loss, found) = self.task.loss(&mut tape, rows, examples)?;
        if T::LOCAL {
            tape.release(own);
        }
        let between = counted.sent();
        tape.backward(loss, gradients.dense)?;
        if T::LOCAL {
            gradients.add_rows(&tape, &leaves, embedding_ids)
        } else {
            gradients.add_some_rows(&tape, &leaves, embedding_ids, reached)
        }
        counted.passes([between - before, counted.sent() - between]);
        Ok(found)
    }

    /// All ranks compute embeddings; the task decides which of them score.
    fn evaluate(
        &self,
        state: &TrainState,
        comm: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let ids = self.model.embedding_ids();
        let ids: Vec<&[u64]> = ids.iter().map(Vec::as_slice).collect();
        let pool = &pool(threads.each)?;
        let embeddings = EmbeddingTables { tables: &state.tables, comm, pool }.fetch(&ids)?;
        let scored = self.task.scored_nodes();
        let part = match &scored {
            Some(of) => self.model.part_for(of, Purpose::Evaluate, threads.each)?,
            None => None,
        };
        let of = scored.filter(|_| part.is_some());
        let graph = part.unwrap_or_else(|| self.model.graph());
        let rows = pool.install(|| {
            let mut tape = Tape::new(&state.params, Mode::Eval);
            let (own, _) = self.model.forward(&mut tape, &graph, embeddings)?;
            Ok(tape.take(own))
        })?;
        let own = OwnOutputs { rows, of };
        self.task.evaluate_shares(&self.model, own, &state.params, comm, threads)
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.model.counted().exchanges())
    }
}
