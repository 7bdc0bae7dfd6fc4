//! Hot nodes of other machines: those that a rank is expected to read most.

use std::cell::OnceCell;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_sample::parts::{HopRequest, NeighborService, Routes, Rule};
use gnarl_serve::PartAccess;
use gnarl_store::cache::scores::{
    InLists, Score, Visit, access_probabilities, highest, out_degrees,
};

/// Lists requested at a time.
const CHUNK: usize = 1 << 12;

/// The services of an edge type's parts, and the types of its sources and destinations.
type Edges<'a> = (usize, usize, &'a [Arc<dyn NeighborService>]);

/// The seeds of a run, by one of its ranks.
pub(super) struct Seeds<'a> {
    /// Number of their type.
    pub of: usize,
    /// The training nodes; none if all nodes may be seeds.
    pub train: Option<&'a [u32]>,
    /// This rank, and the number of ranks.
    pub rank: (usize, usize),
}

/// Scores of all nodes, computed on first use. Nodes of all types are numbered one type after the other.
///
/// Edge types are expanded by `sample.fanouts`; those of `sample.edge_fanouts` and of a meta-path are not told apart: a
/// score says what to cache, never what is sampled.
pub(super) struct Wanted<'a> {
    config: &'a RunConfig,
    types: Vec<&'a Routes>,
    /// Number of the first node of each type, and the number of all.
    first: Vec<usize>,
    edges: Vec<Edges<'a>>,
    /// True if each part is on this machine.
    here: Vec<bool>,
    seeds: Seeds<'a>,
    scores: OnceCell<Vec<f32>>,
}

impl<'a> Wanted<'a> {
    /// The nodes of `types` and their in-neighbors over `edges`.
    pub fn new(
        config: &'a RunConfig,
        types: Vec<&'a Routes>,
        edges: Vec<Edges<'a>>,
        parts: &[PartAccess],
        seeds: Seeds<'a>,
    ) -> Self {
        let mut first = vec![0];
        types.iter().for_each(|nodes| first.push(first[first.len() - 1] + nodes.num_nodes()));
        let here = parts.iter().map(PartAccess::is_here).collect();
        Self { config, types, first, edges, here, seeds, scores: OnceCell::new() }
    }

    /// Nodes of type number `of` with remote features, the hottest first; at most `count`.
    pub fn rows(&self, of: usize, count: usize) -> Result<Vec<u64>> {
        let away = |node: u32| !self.here[self.types[of].owner(node)];
        Ok(self.best(of, count, away)?.into_iter().map(u64::from).collect())
    }

    /// Nodes of a homogeneous graph with remote lists, if only a share of them is remote, the hottest first; at most
    /// `count`.
    pub fn lists(&self, count: usize) -> Result<Vec<u32>> {
        self.best(0, count, |node| {
            let mut away = false;
            self.types[0].for_each(node, |part| away |= !self.here[part]);
            away
        })
    }

    fn best(&self, of: usize, count: usize, away: impl Fn(u32) -> bool) -> Result<Vec<u32>> {
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
        let scores = &scores[self.first[of]..self.first[of + 1]];
        let nodes = (0..scores.len() as u32).filter(|&v| scores[v as usize] > 0.0 && away(v));
        highest(scores, nodes, count)
    }

    fn score(&self) -> Result<Vec<f32>> {
        let nodes = self.first[self.types.len()];
        if u32::try_from(nodes).is_err() {
            return Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32-bit numbers"))
                .hint("set cache.policy to 'clockpro', which needs no scores"));
        }
        match self.config.cache.score {
            Score::Degree if !self.here.contains(&true) => {
                Err(Error::usage("cache.score = 'degree' requires local parts")
                    .hint("this machine has none: set cache.score to 'access'"))
            }
            Score::Degree => out_degrees(&Lists { of: self, everywhere: false }, nodes),
            Score::Access => {
                let mut seeds = vec![false; nodes];
                let first = self.first[self.seeds.of];
                self.own_seeds().into_iter().for_each(|seed| seeds[first + seed as usize] = true);
                let batch = match self.config.sample.batch_size {
                    0 => nodes,
                    size => size.div_ceil(self.seeds.rank.1),
                };
                let lists = Lists { of: self, everywhere: true };
                access_probabilities(&lists, &seeds, &self.config.hops(), batch)
            }
        }
    }

    /// The training nodes of this rank, as far as they are known beforehand: each batch is split in
    /// the order of parts, in even shares.
    fn own_seeds(&self) -> Vec<u32> {
        let Seeds { of, train, rank } = self.seeds;
        let all = || (0..self.types[of].num_nodes() as u32).collect();
        let mut seeds = train.map_or_else(all, <[u32]>::to_vec);
        seeds.sort_by_key(|&seed| self.types[of].owner(seed));
        let bound = |rank_of: usize| seeds.len() * rank_of / rank.1;
        seeds[bound(rank.0)..bound(rank.0 + 1)].to_vec()
    }
}

/// In-neighbor lists of all parts, or of the local ones.
struct Lists<'a> {
    of: &'a Wanted<'a>,
    everywhere: bool,
}

impl InLists for Lists<'_> {
    fn num_nodes(&self) -> usize {
        self.of.first[self.of.types.len()]
    }

    fn visit(&self, nodes: &[u32], each: Visit<'_>) -> Result<()> {
        let mut list = Vec::new();
        for chunk in nodes.chunks(CHUNK) {
            for &edges in &self.of.edges {
                self.ask(chunk, edges, &mut list, each)?;
            }
        }
        Ok(())
    }
}

impl Lists<'_> {
    /// Requests the lists of some nodes over an edge type from all parts concurrently.
    fn ask(
        &self,
        nodes: &[u32],
        (src, dst, services): Edges<'_>,
        list: &mut Vec<u32>,
        each: Visit<'_>,
    ) -> Result<()> {
        let Wanted { types, first, here, .. } = self.of;
        let mut asked = vec![Vec::new(); here.len()];
        let of_type = |&&node: &&u32| (first[dst]..first[dst + 1]).contains(&(node as usize));
        for &node in nodes.iter().filter(of_type) {
            let node = node - first[dst] as u32;
            types[dst].for_each(node, |part| {
                if self.everywhere || here[part] {
                    asked[part].push(u64::from(node));
                }
            });
        }
        let fanout = u32::MAX;
        let rule = Rule::Exact;
        let key = Key::new(0);
        let asked = asked.into_iter().zip(services).filter(|(nodes, _)| !nodes.is_empty());
        let begun = asked.map(|(nodes, service)| {
            let request = HopRequest::new(nodes.clone(), fanout, rule, key);
            (nodes, service.ask(request))
        });
        for (nodes, answer) in begun.collect::<Vec<_>>() {
            let reply = answer()?;
            reply.check(nodes.len(), types[src].num_nodes())?;
            let ends = reply.indptr.windows(2).zip(&reply.asked_degrees);
            for (&node, (ends, &degree)) in nodes.iter().zip(ends) {
                let edges = &reply.indices[ends[0] as usize..ends[1] as usize];
                let number = |&at: &u32| first[src] as u32 + reply.nodes[at as usize] as u32;
                list.clear();
                list.extend(edges.iter().map(number));
                each(first[dst] as u32 + node as u32, degree, list)?;
            }
        }
        Ok(())
    }
}
