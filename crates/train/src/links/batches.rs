//! Batches of edges, and what they are told from.

use gnarl_graph::Result;
use gnarl_nn::decoders::{Candidates, Groups, LinkBatch, Side};
use gnarl_sample::negatives::{NegativeSampler, Positives};

use super::Links;
use crate::config::Sides;
use crate::messages::{Numbers, jobs};
use crate::pipeline::Job;
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

impl<'a> Batches<'a> {
    pub fn new(links: &'a Links) -> Result<Self> {
        let negatives = links.negatives()?;
        Ok(Self { links, negatives, keys: Keys::new(links.config.train.seed) })
    }

    /// Batches of the training edges.
    pub fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        let (edges, owner) = (&self.links.edges.train, &self.links.owner);
        let batch = self.links.config.sample.batch_size;
        jobs(self.keys, epoch, &edges.heads, batch, owner, (rank, size))
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
