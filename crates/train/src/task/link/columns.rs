//! Link prediction by full-graph steps over shares of rows and columns.
//!
//! A model puts out the rows of each rank's own nodes. A rank scores its share of a batch of edges: it
//! fetches the rows of their ends and candidates from the ranks that have them, and gives gradients back.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_nn::pool::{Kept, keep_all};
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::Scratch;
use gnarl_sample::negatives::Side;

use super::batches::{Batches, LinkRows};
use super::{Links, evaluate};
use crate::config::Leakage;
use crate::embeddings::{Fetch, Learnt};
use crate::evaluation::{Evaluation, by_first};
use crate::learner::{BatchLoss, Counts, Exchanges, Gradients, Inputs, Learner};
use crate::messages::{Ways, both_ways};
use crate::pipeline::{Input, Job};
use crate::data::shares::even_share;
use crate::state::TrainState;
use crate::strategy::{Threads, pool};
use crate::tensor::WholeModel;

/// This rank's share of a batch.
pub(super) struct Share<G> {
    links: LinkBatch,
    /// Rows that its edges are numbered by, ascending, by their numbers among those of all ranks.
    wanted: Vec<u32>,
    /// What messages pass over.
    graph: Arc<G>,
    /// Ids of the learnt rows of the own nodes, for each table.
    learnt: Arc<[Vec<u64>]>,
    /// Places of those that the batch of all ranks reaches: others are not updated.
    reached: Vec<Vec<u32>>,
}

pub(super) struct ColumnLearner<'a, W> {
    links: &'a Links,
    model: W,
    ways: &'a (dyn Fn(u32) -> Ways + Sync),
    batches: Batches<'a>,
    loss: Box<dyn Loss>,
    features: Vec<Option<Input>>,
    /// Number of this rank, and of all.
    place: (usize, usize),
    /// Every step asks for the same buffers, however large.
    _buffers: Kept,
}

impl<'a, W: WholeModel> ColumnLearner<'a, W> {
    /// A learner of `links` as `rank`, whose relations pass messages by `ways`.
    ///
    /// # Errors
    /// If features cannot be read.
    pub fn new(
        links: &'a Links,
        model: W,
        ways: &'a (dyn Fn(u32) -> Ways + Sync),
        rank: &dyn Communicator,
    ) -> Result<Self> {
        let (batches, loss) = (Batches::new(links)?, links.config.loss.build()?);
        let (features, place) = (model.features()?, (rank.rank(), rank.size()));
        let _buffers = keep_all();
        Ok(Self { links, model, ways, batches, loss, features, place, _buffers })
    }

    /// This rank's share of a batch; perhaps empty.
    fn draw(&self, job: &Job) -> LinkRows {
        let share = even_share(job.batch.len(), self.place.0, self.place.1);
        if share.is_empty() {
            let [heads, relations, tails] = [const { Vec::new() }; 3];
            let batch = LinkBatch { heads, relations, tails, negatives: Vec::new() };
            return LinkRows { batch, ids: Vec::new() };
        }
        self.batches.draw(&Job { share, ..job.clone() })
    }

    /// Places of the own learnt rows that the edges and candidates of all ranks reach.
    fn reached(&self, job: &Job) -> Vec<Vec<u32>> {
        if self.model.learnt().is_empty() {
            return Vec::new();
        }
        let whole = Job { share: 0..job.batch.len(), ..job.clone() };
        let (nodes, _) = self.links.edges.ends.by_type(self.batches.draw(&whole).ids);
        self.model.reached(&self.model.rows(&nodes))
    }

    /// The rows put out for all nodes that edges may end in, on the first rank; none on the others.
    fn all_rows(&self, state: &TrainState, rank: &dyn Communicator) -> Result<Tensor> {
        let ids = self.model.learnt();
        let ids: Vec<&[u64]> = ids.iter().map(Vec::as_slice).collect();
        let learnt = Learnt { tables: &state.tables, rank }.fetch(&ids)?;
        let graph = self.model.graph();
        let mut tape = Tape::new(&state.params, Mode::Eval);
        let (own, _) = self.model.forward(&mut tape, &graph, &self.features, learnt)?;
        let ends = &self.links.edges.ends;
        let nodes = if rank.rank() == 0 { ends.range(Side::Tail).end } else { 0 };
        let (nodes, places) = ends.by_type((0..nodes).collect());
        let (wanted, order) = ascending(self.model.rows(&nodes));
        let exchange = self.model.exchange();
        let came = exchange.fetch(tape.value(own), &exchange.route(&wanted)?)?;
        let mut rows = Tensor::scratch(came.rows(), came.cols());
        for (row, &place) in rows.data_mut().chunks_exact_mut(came.cols()).zip(&places) {
            row.copy_from_slice(came.row(order[place as usize] as usize));
        }
        Ok(rows)
    }
}

/// Distinct numbers in ascending order, and the place of each in that order.
fn ascending(numbers: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_unstable_by_key(|&i| numbers[i as usize]);
    let mut places = vec![0; numbers.len()];
    order.iter().enumerate().for_each(|(place, &i)| places[i as usize] = place as u32);
    (order.iter().map(|&i| numbers[i as usize]).collect(), places)
}

impl<W: WholeModel> Learner for ColumnLearner<'_, W> {
    type Sampled = Share<W::Graph>;
    type Batch = Share<W::Graph>;

    /// All ranks have all batches: one without edges of its own has columns of the others.
    fn epoch(&self, epoch: usize, _: usize, _: usize) -> Vec<Job> {
        self.batches.epoch(epoch, 0, 1)
    }

    fn sample(&self, job: &Job, _: &mut Scratch) -> Result<Self::Sampled> {
        let (LinkRows { mut batch, ids }, ends) = (self.draw(job), &self.links.edges.ends);
        let (nodes, places) = ends.by_type(ids);
        let (wanted, order) = ascending(self.model.rows(&nodes));
        batch.renumber(&places.iter().map(|&place| order[place as usize]).collect::<Vec<_>>());
        let graph = match self.links.config.task.leakage {
            Leakage::Keep => self.model.graph(),
            Leakage::Remove => {
                let targets = ends.in_dataset(self.links.edges.train.at(&job.batch));
                self.model.without(&both_ways(&targets, self.ways))?
            }
        };
        let (learnt, reached) = (self.model.learnt(), self.reached(job));
        Ok(Share { links: batch, wanted, graph, learnt, reached })
    }

    fn fetch(&self, _: &Job, sampled: Self::Sampled) -> Result<Self::Batch> {
        Ok(sampled)
    }

    fn compact(&self, batch: &Self::Batch) {
        self.model.prepare(&batch.graph);
    }

    /// The edges of each rank are its share of the columns of all.
    fn counts(&self, batch: &Self::Batch) -> Counts {
        let edges = even_share(self.model.num_edges(&batch.graph), self.place.0, self.place.1);
        Counts { edges: edges.len() as u64, seeds: batch.links.heads.len() as u64 }
    }

    fn rows<'b>(&self, batch: &'b Self::Batch) -> Vec<&'b [u64]> {
        batch.learnt.iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Self::Batch>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Share { links, wanted, graph, learnt, reached } = inputs.batch;
        let (exchange, before) = (self.model.exchange(), self.model.counted().sent());
        let routes = exchange.route(wanted)?;
        let mut tape = Tape::new(params, Mode::Train { key });
        let (own, leaves) = self.model.forward(&mut tape, graph, &self.features, inputs.rows)?;
        let rows = tape.fetch_rows(exchange, own, &routes)?;
        let (decoder, n3) = (self.links.decoder.as_ref(), self.links.config.decoder.n3);
        let (loss, weight) = tape.link_loss(rows, links, decoder, self.loss.as_ref(), n3)?;
        let (sum, between) = (f64::from(tape.value(loss).data()[0]), self.model.counted().sent());
        tape.backward(loss, gradients.dense)?;
        gradients.add_some_rows(&tape, &leaves, learnt, reached);
        let counted = self.model.counted();
        counted.passes([between - before, counted.sent() - between]);
        Ok(BatchLoss { sum, weight })
    }

    /// All ranks put out rows, the first judges them with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let rows = pool(threads.each)?.install(|| self.all_rows(state, rank))?;
        by_first(rank, threads, || evaluate::of_rows(self.links, &state.params, rows))
    }

    fn exchanges(&self) -> Option<Exchanges> {
        Some(self.model.counted().exchanges())
    }
}
