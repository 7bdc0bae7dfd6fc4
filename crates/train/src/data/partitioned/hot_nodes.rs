//! Hot nodes of other machines: those that a rank is expected to read most.

use std::cell::OnceCell;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};
use gnarl_config::RunConfig;
use gnarl_sample::parts::{HopRequest, Rule};
use gnarl_serve::PartAccess;
use gnarl_store::cache::scores::{
    InLists, Score, Visit, access_probabilities, highest, out_degrees,
};

use crate::data::graph::Partitioned;

/// Lists requested at a time.
const CHUNK: usize = 1 << 12;

/// Scores of all nodes, computed on first use.
pub(super) struct Wanted<'a> {
    config: &'a RunConfig,
    divided: &'a Partitioned,
    /// True if each part is on this machine.
    here: Vec<bool>,
    train: &'a [u32],
    /// This rank, and the number of ranks.
    rank: (usize, usize),
    scores: OnceCell<Vec<f32>>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(
        config: &'a RunConfig,
        divided: &'a Partitioned,
        parts: &[PartAccess],
        train: &'a [u32],
        rank: (usize, usize),
    ) -> Self {
        let here = parts.iter().map(PartAccess::is_here).collect();
        Self { config, divided, here, train, rank, scores: OnceCell::new() }
    }

    /// Nodes with remote features, the hottest first; at most `count`.
    pub(super) fn rows(&self, count: usize) -> Result<Vec<u64>> {
        let away = |node: u32| !self.here[self.divided.routes.owner(node)];
        Ok(self.best(count, away)?.into_iter().map(u64::from).collect())
    }

    /// Nodes with remote lists, if only a share of them is remote, the hottest first; at most
    /// `count`.
    pub(super) fn lists(&self, count: usize) -> Result<Vec<u32>> {
        self.best(count, |node| {
            let mut away = false;
            self.divided.routes.for_each(node, |part| away |= !self.here[part]);
            away
        })
    }

    fn best(&self, count: usize, away: impl Fn(u32) -> bool) -> Result<Vec<u32>> {
        if count == 0 || self.here.iter().all(|&here| here) {
            return Ok(Vec::new());
        }
        let scores = match self.scores.get() {
            Some(scores) => scores,
            None => {
                let scores = self.score().while_doing(|| "scoring nodes for the cache")?;
                self.scores.get_or_init(|| scores)
            }
        };
        let nodes = (0..scores.len() as u32).filter(|&v| scores[v as usize] > 0.0 && away(v));
        highest(scores, nodes, count)
    }

    fn score(&self) -> Result<Vec<f32>> {
        let nodes = self.divided.routes.num_nodes();
        match self.config.cache.score {
            Score::Degree if !self.here.contains(&true) => {
                Err(Error::usage("cache.score = 'degree' requires local parts")
                    .hint("this machine has none: set cache.score to 'access'"))
            }
            Score::Degree => out_degrees(&Lists { of: self, everywhere: false }, nodes),
            Score::Access => {
                let mut seeds = vec![false; nodes];
                self.seeds().into_iter().for_each(|seed| seeds[seed as usize] = true);
                let batch = match self.config.sample.batch_size {
                    0 => nodes,
                    size => size.div_ceil(self.rank.1),
                };
                let lists = Lists { of: self, everywhere: true };
                access_probabilities(&lists, &seeds, &self.config.hops(), batch)
            }
        }
    }

    /// The training nodes of this rank, as far as they are known beforehand: each batch is split in
    /// the order of parts, in even shares.
    fn seeds(&self) -> Vec<u32> {
        let mut seeds = self.train.to_vec();
        seeds.sort_by_key(|&seed| self.divided.routes.owner(seed));
        let bound = |rank: usize| seeds.len() * rank / self.rank.1;
        seeds[bound(self.rank.0)..bound(self.rank.0 + 1)].to_vec()
    }
}

/// In-neighbor lists of all parts, or of the local ones.
struct Lists<'a> {
    of: &'a Wanted<'a>,
    everywhere: bool,
}

impl InLists for Lists<'_> {
    fn num_nodes(&self) -> usize {
        self.of.divided.routes.num_nodes()
    }

    fn visit(&self, nodes: &[u32], each: Visit<'_>) -> Result<()> {
        let mut list = Vec::new();
        nodes.chunks(CHUNK).try_for_each(|chunk| self.ask(chunk, &mut list, each))
    }
}

impl Lists<'_> {
    /// Requests the lists of some nodes from all parts concurrently.
    fn ask(&self, nodes: &[u32], list: &mut Vec<u32>, each: Visit<'_>) -> Result<()> {
        let Wanted { divided, here, .. } = self.of;
        let mut asked = vec![Vec::new(); here.len()];
        for &node in nodes {
            divided.routes.for_each(node, |part| {
                if self.everywhere || here[part] {
                    asked[part].push(u64::from(node));
                }
            });
        }
        let fanout = u32::MAX;
        let rule = Rule::Exact;
        let key = Key::new(0);
        let asked = asked.into_iter().zip(&divided.services).filter(|(nodes, _)| !nodes.is_empty());
        let begun = asked.map(|(nodes, service)| {
            let request = HopRequest { nodes: nodes.clone(), fanout, rule, key };
            (nodes, service.ask(request))
        });
        for (nodes, answer) in begun.collect::<Vec<_>>() {
            let reply = answer()?;
            reply.check(nodes.len(), self.num_nodes())?;
            let ends = reply.indptr.windows(2).zip(&reply.asked_degrees);
            for (&node, (ends, &degree)) in nodes.iter().zip(ends) {
                let edges = &reply.indices[ends[0] as usize..ends[1] as usize];
                list.clear();
                list.extend(edges.iter().map(|&at| reply.nodes[at as usize] as u32));
                each(node as u32, degree, list)?;
            }
        }
        Ok(())
    }
}
