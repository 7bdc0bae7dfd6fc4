//! Batches of edges, and what they are told from.

use std::collections::HashMap;
use std::sync::Arc;

use gnarl_graph::Result;
use gnarl_nn::decoders::{Candidates, Groups, LinkBatch, Side};
use gnarl_sample::negatives::{NegativeSampler, Positives};

use super::Links;
use crate::config::Sides;
use crate::pipeline::Job;
use crate::shares::even_share;
use crate::strategy::Keys;

/// A batch: edges and candidates, and the nodes whose rows they are numbered by.
pub(super) struct LinkRows {
    pub batch: LinkBatch,
    /// Distinct dataset ids.
    pub ids: Vec<u32>,
}

/// Makes batches of the training edges.
pub(super) struct Batches<'a> {
    links: &'a Links,
    negatives: Box<dyn NegativeSampler>,
    keys: Keys,
}

/// Numbers nodes in the order they come.
#[derive(Default)]
struct Numbers {
    of: HashMap<u32, u32>,
    ids: Vec<u32>,
}

impl Numbers {
    fn rows(&mut self, nodes: &[u32]) -> Vec<u32> {
        let number = |&node: &u32| {
            *self.of.entry(node).or_insert_with(|| {
                self.ids.push(node);
                self.ids.len() as u32 - 1
            })
        };
        nodes.iter().map(number).collect()
    }
}

impl<'a> Batches<'a> {
    pub fn new(links: &'a Links) -> Result<Self> {
        let negatives = links.negatives()?;
        Ok(Self { links, negatives, keys: Keys::new(links.config.train.seed) })
    }

    /// Batches of edges in random order, of which each rank has an even share: mostly those whose heads
    /// are in its own part.
    pub fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        let (edges, owner) = (&self.links.edges.train, &self.links.owner);
        let mut order: Vec<u32> = (0..edges.len() as u32).collect();
        let batch = match self.links.config.sample.batch_size {
            0 => order.len(),
            batch => {
                self.keys.order(epoch, 0).shuffle(&mut order);
                batch
            }
        };
        let last = order.len().div_ceil(batch) - 1;
        let job = |(index, places): (usize, &mut [u32])| {
            if !owner.is_empty() {
                places.sort_by_key(|&place| owner[edges.heads[place as usize] as usize]);
            }
            Job {
                graph: 0,
                share: even_share(places.len(), rank, size),
                batch: Arc::from(&*places),
                key: self.keys.sample(epoch).with(index as u64),
                fixed: false,
                last_of_step: true,
                last_of_epoch: index == last,
            }
        };
        order.chunks_mut(batch).enumerate().map(job).collect()
    }

    /// The batch of a job.
    pub fn draw(&self, job: &Job) -> LinkRows {
        let triples = self.links.edges.train.at(&job.batch);
        let share = job.share.clone();
        let positives = Positives { triples: &triples, places: &job.batch, share: share.clone() };
        let mut numbers = Numbers::default();
        let heads = numbers.rows(&triples.heads[share.clone()]);
        let tails = numbers.rows(&triples.tails[share.clone()]);
        let candidates = |side: &Side| {
            let drawn = self.negatives.draw(&positives, *side, job.key);
            let candidates = Candidates {
                rows: numbers.rows(&drawn.ids),
                groups: Groups::new(drawn.groups, drawn.count),
                masked: drawn.masked,
            };
            (*side, candidates)
        };
        let negatives = self.sides().iter().map(candidates).collect();
        let relations = triples.relations[share].to_vec();
        let batch = LinkBatch { heads, relations, tails, negatives };
        LinkRows { batch, ids: numbers.ids }
    }

    /// Sides that are corrupted in a batch.
    fn sides(&self) -> &'static [Side] {
        match self.links.config.negatives.sides {
            Sides::Both => &Side::BOTH,
            Sides::Head => &[Side::Head],
            Sides::Tail => &[Side::Tail],
        }
    }
}
