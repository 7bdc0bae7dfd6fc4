//! Batches of node classification, and what they teach.

use std::sync::Arc;

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Result};
use gnarl_nn::Params;
use gnarl_sample::{MiniBatch, Scratch};

use super::units::{self, Samplers, StepPlan};
use super::{Nodes, step};
use crate::config::EvaluateOn;
use crate::evaluate::{Evaluation, by_first, evaluate, evaluate_divided};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::pipeline::{Input, Job, rows};
use crate::state::TrainState;
use crate::strategy::average::PartLearner;
use crate::strategy::{Keys, Threads, pool};
use crate::task::{TaskGraph, Topology};

/// A batch ready for the compute stage.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Blocks and targets.
    pub batch: MiniBatch,
    /// Feature rows of the input nodes.
    pub input: Input,
    /// Local ids of the target nodes.
    pub targets: Vec<u32>,
}

/// Node classification on one or several graphs.
pub(crate) struct NodeLearner<'a> {
    nodes: &'a Nodes,
    graphs: &'a [Arc<TaskGraph>],
    samplers: Samplers,
    keys: Keys,
}

impl<'a> NodeLearner<'a> {
    /// A learner on those of `graphs` that are `mine`.
    ///
    /// # Errors
    /// If the sampler does not fit a graph.
    pub fn new(nodes: &'a Nodes, graphs: &'a [Arc<TaskGraph>], mine: &[usize]) -> Result<Self> {
        let samplers = units::part_samplers(&nodes.config, graphs, mine)?;
        let keys = Keys::new(nodes.config.train.seed);
        Ok(Self { nodes, graphs, samplers, keys })
    }
}

impl PartLearner for NodeLearner<'_> {
    fn training(&self) -> Vec<usize> {
        self.graphs.iter().map(|graph| graph.train.len()).collect()
    }

    fn part_epoch(&self, part: usize, epoch: usize) -> Vec<Job> {
        let Some(sampler) = &self.samplers[part] else { return Vec::new() };
        let (config, graph) = (&self.nodes.config, &self.graphs[part]);
        let order = self.keys.order(epoch, part);
        let units = units::epoch_units(config, sampler.as_ref(), graph, order);
        let fixed = units::is_fixed(config);
        let last = units.len().saturating_sub(1);
        let key = self.keys.sample(epoch);
        let job = |(i, seeds): (usize, Vec<u32>)| Job {
            graph: part,
            share: 0..seeds.len(),
            batch: seeds.into(),
            key: units::batch_key(config, key, part, i),
            fixed,
            last_of_step: true,
            last_of_epoch: i == last,
        };
        units.into_iter().enumerate().map(job).collect()
    }
}

impl Learner for NodeLearner<'_> {
    type Sampled = MiniBatch;
    type Batch = Prepared;

    /// Each rank takes mostly seeds of its own part.
    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        let Some(sampler) = self.samplers[0].as_deref() else { return Vec::new() };
        let (config, owner) = (&self.nodes.config, &self.nodes.owner[..]);
        let graph = &self.graphs[0];
        StepPlan { config, graph, owner, sampler, rank, size, keys: self.keys }.epoch(epoch)
    }

    fn sample(&self, job: &Job, scratch: &mut Scratch) -> Result<MiniBatch> {
        let sampler = self.samplers[job.graph]
            .as_ref()
            .ok_or_else(|| Error::invalid(format!("graph {} is not trained on here", job.graph)))?;
        sampler.sample(job.seeds(), job.key, scratch)
    }

    fn fetch(&self, job: &Job, batch: MiniBatch) -> Result<Prepared> {
        let input = rows(self.graphs[job.graph].features.as_ref(), &batch.input_nodes)?;
        let targets = batch.targets.iter().map(|&row| batch.input_nodes[row as usize]).collect();
        Ok(Prepared { batch, input, targets })
    }

    fn compact(&self, prepared: &Prepared) {
        step::turn_round(&prepared.batch);
    }

    fn counts(&self, prepared: &Prepared) -> Counts {
        let edges = prepared.batch.num_edges() as u64;
        Counts { edges, seeds: prepared.targets.len() as u64 }
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Prepared>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let labels = &self.graphs[inputs.graph].labels;
        let model = self.nodes.model.as_ref();
        step::batch_gradient(model, params, labels, inputs.batch, key, gradients.dense)
    }

    /// A graph that is here is judged by rank 0 with all threads; one in parts by all ranks together.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let Nodes { whole, model, metric, config, parts, .. } = self.nodes;
        let (model, params) = (model.as_ref(), &state.params);
        if let Topology::Divided(divided) = &whole.topology {
            let pool = pool(threads.each)?;
            return evaluate_divided(model, params, whole, divided, metric, rank, &pool);
        }
        let graphs = match config.train.evaluate_on {
            EvaluateOn::Parts if !parts.is_empty() => &parts[..],
            _ => std::slice::from_ref(whole),
        };
        let graphs = graphs.iter().map(Arc::as_ref);
        by_first(rank, threads, || evaluate(model, params, graphs, metric))
    }

    fn cached(&self) -> [u64; 2] {
        let stats = self.nodes.whole.features.cache_stats().unwrap_or_default();
        [stats.hits, stats.misses]
    }
}
