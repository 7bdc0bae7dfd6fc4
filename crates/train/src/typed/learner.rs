//! Batches of node classification in graphs with types, and what they teach.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Context, Error, Result, Triple};
use gnarl_nn::{Mode, Params, RelBlock, Tape};
use gnarl_sample::parts::Rule;
use gnarl_sample::{Scratch, TypedBatch, TypedFanouts, TypedSampler, TypedScratch};

use super::{TypedNodes, TypedTaskGraph, evaluate};
use crate::config::{Method, RunConfig};
use crate::embeddings::{TableSpec, on_first};
use crate::evaluate::{Evaluation, by_first};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::nodes::loss::{add_loss, targets_of};
use crate::pipeline::{Input, Job};
use crate::shares::even_share;
use crate::state::TrainState;
use crate::strategy::average::PartLearner;
use crate::strategy::{Keys, Threads};

/// A batch ready for the compute stage.
pub(super) struct Prepared {
    blocks: Vec<RelBlock>,
    /// Rows of the last block's destinations that are seeds.
    targets: Vec<u32>,
    /// Local ids of the seeds.
    seeds: Vec<u32>,
    /// Feature rows of the input nodes of each type.
    features: Vec<Option<Input>>,
    /// Ids of the input nodes of each type whose rows are learnt.
    learnt: Vec<Vec<u64>>,
    edges: usize,
}

/// Node classification on one or several graphs with types.
pub(super) struct TypedLearner<'a> {
    nodes: &'a TypedNodes,
    graphs: &'a [Arc<TypedTaskGraph>],
    /// For each graph that this rank makes batches of.
    samplers: Vec<Option<TypedSampler>>,
    scratch: Mutex<TypedScratch>,
    keys: Keys,
}

impl<'a> TypedLearner<'a> {
    /// A learner on those of `graphs` that are `mine`.
    ///
    /// # Errors
    /// If fan-outs do not fit the graph.
    pub fn new(
        nodes: &'a TypedNodes,
        graphs: &'a [Arc<TypedTaskGraph>],
        mine: &[usize],
    ) -> Result<Self> {
        let (fanouts, rule) = fanouts(&nodes.config)?;
        let sampler = |(i, graph): (usize, &Arc<TypedTaskGraph>)| {
            let own = mine.contains(&i);
            own.then(|| TypedSampler::new(&graph.graph, &fanouts, rule)).transpose()
        };
        let samplers = graphs.iter().enumerate().map(sampler).collect::<Result<_>>()?;
        let keys = Keys::new(nodes.config.train.seed);
        Ok(Self { nodes, graphs, samplers, scratch: Mutex::default(), keys })
    }

    fn sampler(&self, graph: usize) -> Result<&TypedSampler> {
        let not_here = || Error::invalid(format!("graph {graph} is not trained on here"));
        self.samplers[graph].as_ref().ok_or_else(not_here)
    }

    /// Whether every epoch has the same single batch.
    fn is_fixed(&self) -> bool {
        let sample = &self.nodes.config.sample;
        let mut fanouts = sample.edge_fanouts.values().chain([&sample.fanouts]).flatten();
        let full = sample.method == Method::Full || fanouts.all(|&fanout| fanout < 0);
        full && sample.batch_size == 0
    }

    /// Seeds of each batch of an epoch over a graph.
    fn batches(&self, graph: usize, epoch: usize) -> Vec<Vec<u32>> {
        let (train, size) = (&self.graphs[graph].train, self.nodes.config.sample.batch_size);
        match self.sampler(graph) {
            _ if train.is_empty() => Vec::new(),
            Ok(sampler) if size > 0 => sampler.epoch(train, size, self.keys.order(epoch, graph)),
            // Unshuffled, so that a resumed run meets its nodes in the same order.
            _ => vec![train.clone()],
        }
    }

    /// The jobs of an epoch over a graph, of which each is for the share that `share` says.
    fn jobs(
        &self,
        graph: usize,
        epoch: usize,
        mut batches: Vec<Vec<u32>>,
        share: impl Fn(usize) -> Range<usize>,
    ) -> Vec<Job> {
        let (fixed, last) = (self.is_fixed(), batches.len().saturating_sub(1));
        let key = self.keys.sample(epoch);
        let job = |(index, seeds): (usize, &mut Vec<u32>)| Job {
            graph,
            share: share(seeds.len()),
            // Neighbours that `labor` chooses alike in a batch differ from batch to batch.
            key: match self.nodes.config.sample.method {
                Method::Labor => key.with(graph as u64).with(index as u64),
                _ => key,
            },
            batch: std::mem::take(seeds).into(),
            fixed,
            last_of_step: true,
            last_of_epoch: index == last,
        };
        batches.iter_mut().enumerate().map(job).collect()
    }
}

/// Fan-outs and rule of a run file.
pub(crate) fn fanouts(config: &RunConfig) -> Result<(TypedFanouts, Rule)> {
    let sample = &config.sample;
    let rule = match sample.method {
        Method::Labor => Rule::Labor,
        Method::Exact => Rule::Exact,
        Method::Weighted => Rule::Weighted,
        _ => Rule::Uniform,
    };
    let edge_type = |key: &str, name: &str| -> Result<Triple> {
        name.parse().map_err(|e: Error| e.context(key))
    };
    if !sample.meta_path.is_empty() {
        if !sample.edge_fanouts.is_empty() {
            return Err(Error::usage("sample.meta_path says which edge types count at each hop")
                .hint("leave out sample.edge_fanouts; its fan-outs are sample.fanouts"));
        }
        let path = sample.meta_path.iter().map(|name| edge_type("sample.meta_path", name));
        let path = path.collect::<Result<Vec<_>>>()?;
        if let Some(seeds) = config.task.node_type.as_ref().filter(|seeds| **seeds != path[0].dst) {
            let message = format!("sample.meta_path: '{}' does not end in '{seeds}'", path[0]);
            return Err(Error::usage(message).hint("give the seeds' hop first"));
        }
        let along = TypedFanouts::along(&path, &config.hops());
        return Ok((along.while_doing(|| "sample.meta_path")?, rule));
    }
    let all = |&fanout: &i64| match sample.method {
        Method::Full if fanout != 0 => -1,
        _ => fanout,
    };
    let mut fanouts = TypedFanouts::new(&config.hops());
    for (name, of_type) in &sample.edge_fanouts {
        let triple = edge_type("sample.edge_fanouts", name)?;
        fanouts = fanouts.with(triple, &of_type.iter().map(all).collect::<Vec<_>>());
    }
    Ok((fanouts, rule))
}

impl PartLearner for TypedLearner<'_> {
    fn training(&self) -> Vec<usize> {
        self.graphs.iter().map(|graph| graph.train.len()).collect()
    }

    fn part_epoch(&self, part: usize, epoch: usize) -> Vec<Job> {
        self.jobs(part, epoch, self.batches(part, epoch), |seeds| 0..seeds)
    }

    fn tables(&self) -> &[TableSpec] {
        &self.nodes.tables
    }

    fn row_ids(&self, part: usize) -> Vec<Vec<u64>> {
        let (graph, learnt) = (&self.graphs[part].graph, self.graphs[part].learnt());
        let ids = |number: usize| {
            (0..graph.num_nodes(number) as u32).map(|v| graph.id(number, v)).collect()
        };
        learnt.map(|(number, _)| ids(number)).collect()
    }
}

impl Learner for TypedLearner<'_> {
    type Sampled = (TypedBatch, Vec<RelBlock>, Vec<u32>);
    type Batch = Prepared;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        let (owner, mut batches) = (&self.nodes.owner, self.batches(0, epoch));
        if !owner.is_empty() {
            let by_part = |seeds: &mut Vec<u32>| seeds.sort_by_key(|&v| owner[v as usize]);
            batches.iter_mut().for_each(by_part);
        }
        self.jobs(0, epoch, batches, |seeds| even_share(seeds, rank, size))
    }

    fn sample(&self, job: &Job, _: &mut Scratch) -> Result<Self::Sampled> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let (graph, node_type) = (&self.graphs[job.graph].graph, self.nodes.graph.node_type());
        let sampler = self.sampler(job.graph)?;
        let batch = sampler.sample(node_type, job.seeds(), job.key, &mut scratch)?;
        let fused = batch.fuse(graph)?;
        let blocks = RelBlock::all(&fused, graph.schema())?;
        Ok((batch, blocks, fused.targets))
    }

    fn fetch(&self, job: &Job, (batch, blocks, targets): Self::Sampled) -> Result<Prepared> {
        let graph = &self.graphs[job.graph];
        let ids = |(number, _): (usize, &str)| batch.ids[number].clone();
        let learnt = graph.learnt().map(ids).collect();
        let features = graph.features(&batch.input_nodes)?;
        let (seeds, edges) = (job.seeds().to_vec(), batch.num_edges());
        Ok(Prepared { blocks, targets, seeds, features, learnt, edges })
    }

    fn compact(&self, prepared: &Prepared) {
        prepared.blocks.iter().for_each(RelBlock::prepare);
    }

    fn counts(&self, prepared: &Prepared) -> Counts {
        Counts { edges: prepared.edges as u64, seeds: prepared.seeds.len() as u64 }
    }

    fn rows<'b>(&self, prepared: &'b Prepared) -> Vec<&'b [u64]> {
        prepared.learnt.iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Prepared>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Inputs { batch, rows, graph } = inputs;
        let graph = &self.graphs[graph];
        let mut tape = Tape::new(params, Mode::Train { key });
        let (rows, leaves) = graph.leaves(&mut tape, &batch.features, rows);
        let logits = self.nodes.model.forward(&mut tape, &batch.blocks, &rows)?;
        let targets = targets_of(&graph.labels, &batch.seeds);
        let loss = add_loss(&mut tape, logits, &batch.targets, &targets, None);
        let sum = f64::from(tape.value(loss).data()[0]);
        tape.backward(loss, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, &batch.learnt);
        Ok(BatchLoss { sum, weight: batch.seeds.len() as f64 })
    }

    /// Rank 0 judges with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: Threads,
    ) -> Result<Evaluation> {
        let TypedNodes { model, graph, metric, .. } = self.nodes;
        let (params, tables) = (&state.params, on_first(&state.tables, rank)?);
        let (fanouts, _) = fanouts(&self.nodes.config)?;
        by_first(rank, threads, || {
            evaluate::evaluate(model.as_ref(), params, &tables, (graph, &fanouts), metric)
        })
    }
}
