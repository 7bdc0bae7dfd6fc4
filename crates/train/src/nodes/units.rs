//! What the batches of an epoch are, and which of them a rank makes.

use std::ops::Range;
use std::sync::Arc;

use gnarl_graph::rng::Key;
use gnarl_graph::{Error, Result};
use gnarl_sample::parts::Rule;
use gnarl_sample::{
    ExactSampler, FullSampler, LaborSampler, Sampler, UniformSampler, WeightedSampler,
};

use crate::config::{Method, RunConfig};
use crate::pipeline::Job;
use crate::shares::even_share;
use crate::strategy::Keys;
use crate::subgraphs;
use crate::task::{Divided, TaskGraph, Topology};

/// A sampler for each of a worker's graphs; none for graphs it makes no batches of.
pub(super) type Samplers = Vec<Option<Box<dyn Sampler>>>;

/// The sampler the run file asks for, over `graph`.
pub(crate) fn sampler(config: &RunConfig, graph: &TaskGraph) -> Result<Box<dyn Sampler>> {
    let fanouts = &config.sample.fanouts;
    let held = match &graph.topology {
        Topology::Held(held) => held,
        Topology::Divided(divided) => return divided_sampler(config, divided),
    };
    match config.sample.method {
        Method::Neighbor => Ok(Box::new(UniformSampler::new(held, fanouts)?)),
        Method::Labor => Ok(Box::new(LaborSampler::new(held, fanouts)?)),
        Method::Exact => Ok(Box::new(ExactSampler::new(held, fanouts)?)),
        Method::Weighted => Ok(Box::new(WeightedSampler::new(held, fanouts)?)),
        Method::Full => Ok(Box::new(FullSampler::new(held, config.model.blocks())?)),
        _ => subgraphs::sampler(config, graph),
    }
}

/// The same of a graph that lies in parts.
fn divided_sampler(config: &RunConfig, divided: &Divided) -> Result<Box<dyn Sampler>> {
    let rule = match config.sample.method {
        Method::Neighbor => Rule::Uniform,
        Method::Labor => Rule::Labor,
        Method::Exact | Method::Full => Rule::Exact,
        Method::Weighted => Rule::Weighted,
        _ => {
            return Err(Error::usage("subgraphs are drawn from whole graphs only").hint(
                "leave out partition.servers, or set sample.method to 'neighbor' or 'exact'",
            ));
        }
    };
    Ok(Box::new(divided.sampler(rule, &config.hops())?))
}

/// The samplers of a rank's own parts.
pub(super) fn part_samplers(
    config: &RunConfig,
    parts: &[Arc<TaskGraph>],
    mine: &[usize],
) -> Result<Samplers> {
    let own = |(i, part): (usize, &Arc<TaskGraph>)| {
        (mine.contains(&i) && !part.train.is_empty()).then(|| sampler(config, part)).transpose()
    };
    parts.iter().enumerate().map(own).collect()
}

fn draws_subgraphs(config: &RunConfig) -> bool {
    let method = config.sample.method;
    !method.has_fanouts() && method != Method::Full
}

/// Whether every epoch has the same single batch.
pub(super) fn is_fixed(config: &RunConfig) -> bool {
    let all = config.sample.fanouts.iter().all(|&f| f < 0);
    let full = match config.sample.method {
        Method::Full => true,
        method => method.has_fanouts() && all,
    };
    full && config.sample.batch_size == 0
}

/// Seeds of each batch of an epoch over `graph`, or a subgraph sampler's units.
pub(super) fn epoch_units(
    config: &RunConfig,
    sampler: &dyn Sampler,
    graph: &TaskGraph,
    order: Key,
) -> Vec<Vec<u32>> {
    let size = config.sample.batch_size;
    if size == 0 && !draws_subgraphs(config) {
        // Unshuffled, so that a resumed run meets its nodes in the same order.
        return if graph.train.is_empty() { vec![] } else { vec![graph.train.clone()] };
    }
    sampler.epoch(&graph.train, size, order)
}

/// The sampling key of batch `index`, the same on all ranks and parts. Uniform neighbours depend on
/// the epoch alone, so that they are the same in whatever batch a node appears; the random numbers
/// of `labor` and the subgraphs of subgraph samplers must differ from batch to batch.
pub(super) fn batch_key(config: &RunConfig, epoch: Key, graph: usize, index: usize) -> Key {
    match config.sample.method {
        Method::Neighbor | Method::Exact | Method::Weighted | Method::Full => epoch,
        _ => epoch.with(graph as u64).with(index as u64),
    }
}

/// The share of one rank in the steps of `gradient`.
pub(super) struct StepPlan<'a> {
    pub config: &'a RunConfig,
    pub graph: &'a TaskGraph,
    /// Part of each node; empty if the graph was not cut.
    pub owner: &'a [u32],
    pub sampler: &'a dyn Sampler,
    pub rank: usize,
    pub size: usize,
    pub keys: Keys,
}

impl StepPlan<'_> {
    /// This rank's jobs of an epoch. Every rank has at least one (perhaps empty) job in every
    /// step, so that none waits for another at the end.
    pub fn epoch(&self, epoch: usize) -> Vec<Job> {
        let order = self.keys.order(epoch, 0);
        let units = epoch_units(self.config, self.sampler, self.graph, order);
        let mut steps = match draws_subgraphs(self.config) {
            true => self.dealt(units, epoch),
            false => self.split(units, epoch),
        };
        if let Some(job) = steps.last_mut().and_then(|step| step.last_mut()) {
            job.last_of_epoch = true;
        }
        steps.into_iter().flatten().collect()
    }

    /// Each batch's seeds in even shares.
    fn split(&self, batches: Vec<Vec<u32>>, epoch: usize) -> Vec<Vec<Job>> {
        let job = |(index, mut seeds): (usize, Vec<u32>)| {
            if !self.owner.is_empty() {
                seeds.sort_by_key(|&v| self.owner[v as usize]);
            }
            let share = even_share(seeds.len(), self.rank, self.size);
            vec![self.job(seeds.into(), share, epoch, index)]
        };
        batches.into_iter().enumerate().map(job).collect()
    }

    /// Whole subgraphs in turn, `accumulate` of them a step.
    fn dealt(&self, units: Vec<Vec<u32>>, epoch: usize) -> Vec<Vec<Job>> {
        let group = self.config.sample.accumulate;
        let units: Vec<(usize, Vec<u32>)> = units.into_iter().enumerate().collect();
        let share = |step: &[(usize, Vec<u32>)]| {
            let own = step.iter().skip(self.rank).step_by(self.size);
            let mut jobs: Vec<Job> =
                own.map(|(i, u)| self.job(u[..].into(), 0..u.len(), epoch, *i)).collect();
            if jobs.is_empty() {
                jobs.push(self.job([].into(), 0..0, epoch, 0));
            }
            let last = jobs.len() - 1;
            jobs[..last].iter_mut().for_each(|job| job.last_of_step = false);
            jobs
        };
        units.chunks(group).map(share).collect()
    }

    fn job(&self, batch: Arc<[u32]>, share: Range<usize>, epoch: usize, index: usize) -> Job {
        Job {
            graph: 0,
            batch,
            share,
            key: batch_key(self.config, self.keys.sample(epoch), 0, index),
            fixed: is_fixed(self.config),
            last_of_step: true,
            last_of_epoch: false,
        }
    }
}
