//! Batches of edges with labels, and what they teach.

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::heads::EdgeRows;
use gnarl_nn::{Mode, Params, Tape};
use gnarl_sample::Scratch;
use gnarl_sample::negatives::Triples;

use super::answers::Answers;
use super::{EdgeLabels, evaluate};
use crate::config::Leakage;
use crate::embeddings::on_first;
use crate::evaluation::{Evaluation, by_first};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::messages::{LOOKED_AT, MessageModel, Numbers, Seen, both_ways, jobs};
use crate::nodes::loss::{add_loss, targets_of};
use crate::nodes::step;
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::strategy::{Keys, Threads};

/// The distinct ends of a batch, by node type, and the numbers of heads and tails among them.
type Ends = (Vec<Vec<u32>>, [Vec<u32>; 2]);

/// The ends of some edges, which are of one node type or of two.
pub(super) fn ends(edges: &Triples, two_types: bool) -> Ends {
    let mut first = Numbers::default();
    let heads = first.rows(&edges.heads);
    if !two_types {
        let tails = first.rows(&edges.tails);
        return (vec![first.ids], [heads, tails]);
    }
    let (before, mut second) = (first.ids.len() as u32, Numbers::default());
    let tails = second.rows(&edges.tails).into_iter().map(|tail| before + tail);
    let tails = tails.collect();
    (vec![first.ids, second.ids], [heads, tails])
}

/// A batch ready for compute: edges numbered by the rows that the model puts out.
pub(super) struct Prepared<B> {
    batch: B,
    ends: [Vec<u32>; 2],
    features: Option<Input>,
    /// Which of the training edges they are.
    places: Vec<u32>,
}

pub(super) struct EdgeLearner<'a, M: MessageModel> {
    task: &'a EdgeLabels,
    model: &'a M,
    sampler: M::Sampler,
    keys: Keys,
}

impl<'a, M: MessageModel> EdgeLearner<'a, M> {
    /// # Errors
    /// If fan-outs do not fit the message graph.
    pub fn new(task: &'a EdgeLabels, model: &'a M) -> Result<Self> {
        let sampler = model.sampler(&task.config)?;
        Ok(Self { task, model, sampler, keys: Keys::new(task.config.train.seed) })
    }

    /// Looks at the first batches of the first epoch as they are trained on.
    pub fn seen(&self) -> Result<Seen> {
        let (mut found, mut scratch) = (Seen::default(), Scratch::new());
        for job in self.epoch(1, 0, 1).into_iter().take(LOOKED_AT) {
            let (sampled, _) = self.sample(&job, &mut scratch)?;
            let targets = self.task.targets.train.edges.at(&job.batch);
            let there = self.model.edges(&sampled);
            found.add(Seen::of(&targets, &there, |relation| self.model.ways(relation)));
        }
        Ok(found)
    }
}

impl<M: MessageModel> Learner for EdgeLearner<'_, M> {
    type Sampled = (M::Sampled, [Vec<u32>; 2]);
    type Batch = Prepared<M::Batch>;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        let (heads, batch) =
            (&self.task.targets.train.edges.heads, self.task.config.sample.batch_size);
        jobs(self.keys, epoch, heads, batch, &self.task.owner, (rank, size))
    }

    fn sample(&self, job: &Job, scratch: &mut Scratch) -> Result<Self::Sampled> {
        let edges = &self.task.targets.train.edges;
        let (nodes, ends) = ends(&edges.at(job.seeds()), self.task.two_types());
        let mut sampled = self.model.sample(&self.sampler, &nodes, job.key, scratch)?;
        if self.task.config.task.leakage == Leakage::Remove {
            // Those of all ranks, so that it does not matter which has which.
            let targets = both_ways(&edges.at(&job.batch), |relation| self.model.ways(relation));
            self.model.remove(&mut sampled, &targets);
        }
        Ok((sampled, ends))
    }

    fn fetch(&self, job: &Job, (sampled, ends): Self::Sampled) -> Result<Self::Batch> {
        let (batch, rows_of) = self.model.fetch(sampled)?;
        let ends = ends.map(|end| end.iter().map(|&node| rows_of[node as usize]).collect());
        let places = job.seeds().to_vec();
        let split = &self.task.targets.train;
        let edges: Vec<u32> =
            places.iter().map(|&place| split.rows[place as usize] as u32).collect();
        let features = self.task.features.as_ref().map(|features| rows(features, &edges));
        Ok(Prepared { batch, ends, features: features.transpose()?, places })
    }

    fn compact(&self, prepared: &Self::Batch) {
        self.model.prepare(&prepared.batch);
    }

    fn counts(&self, prepared: &Self::Batch) -> Counts {
        let edges = self.model.num_edges(&prepared.batch) as u64;
        Counts { edges, seeds: prepared.places.len() as u64 }
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
        let Prepared { batch, ends, features, places } = inputs.batch;
        let mut tape = Tape::new(params, Mode::Train { key });
        let (rows, leaves) = self.model.forward(&mut tape, batch, inputs.rows)?;
        let [heads, tails] = [0, 1].map(|end| tape.gather_rows(rows, &ends[end]));
        let features = features.as_ref().map(|features| step::input(&mut tape, features));
        let logits = self.task.head.forward(&mut tape, EdgeRows { heads, tails, features });
        let each: Vec<u32> = (0..places.len() as u32).collect();
        let loss = match &self.task.targets.train.answers {
            Answers::Labels(labels) => {
                add_loss(&mut tape, logits, &each, &targets_of(labels, places), None)
            }
            Answers::Values(values) => {
                let values: Vec<f32> = places.iter().map(|&place| values[place as usize]).collect();
                let of = |deviation| self.task.loss.of(deviation);
                tape.deviation_loss(logits, &each, &values, of, 1.0)
            }
        };
        let sum = f64::from(tape.value(loss).data()[0]);
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, self.model.learnt(batch));
        Ok(BatchLoss { sum, weight: places.len() as f64 })
    }

    /// Rank 0 judges with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let tables = on_first(&state.tables, rank)?;
        by_first(rank, threads, || evaluate::alone(self.task, &state.params, &tables))
    }
}
