//! Neighborhoods of the seeds of a batch.

use std::fmt;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::threads::pool;
use gnarl_common::{Error, Result};
#[cfg(feature = "serve")]
use gnarl_sample::FrontierPartsSampler;
use gnarl_sample::parts::Rule;
use gnarl_sample::{FrontierBatch, FrontierSampler, HeteroFanouts, HeteroScratch, Roots};

use crate::batch::Batch;
use crate::columns;
use crate::graph::{LoaderGraph, Seeds};
#[cfg(feature = "serve")]
use crate::lists::Lists;
use crate::options::{Columns, Neighborhood, Subgraph};
use crate::repeated::separate;
use crate::subgraph::{bidirectional, keep_rows};

/// Samples neighborhoods around nodes of any types, without their features: for loaders that choose the nodes of a batch
/// themselves.
#[derive(Debug)]
pub struct NeighborSampler {
    graph: Arc<LoaderGraph>,
    draws: Draws,
    disjoint: bool,
    timed: bool,
    subgraph: Subgraph,
    /// Per edge type, whether its edges have rows.
    rows: Vec<bool>,
}

/// The sampler of whole lists, or of parts.
enum Draws {
    Whole(FrontierSampler),
    #[cfg(feature = "serve")]
    Parts(FrontierPartsSampler),
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.rule())
    }
}

impl Draws {
    fn rule(&self) -> Rule {
        match self {
            Self::Whole(sampler) => sampler.rule(),
            #[cfg(feature = "serve")]
            Self::Parts(sampler) => sampler.rule(),
        }
    }
}

/// The trees of seeds that have nodes of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trees<'a> {
    /// A name for each seed, over all types in their order. It decides what the seed's tree draws.
    pub names: &'a [u64],
    /// The time of each seed likewise.
    pub times: Option<&'a [i64]>,
}

impl NeighborSampler {
    /// A sampler of `graph`, with neighbors by fan-outs and a rule; `threads` order lists by time, once.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if the rule needs weights that are not there, or time is asked for where there is none.
    pub fn new(
        graph: Arc<LoaderGraph>,
        (fanouts, rule): (&HeteroFanouts, Rule),
        neighborhood: Neighborhood,
        threads: usize,
    ) -> Result<Self> {
        let Neighborhood { disjoint, time, replace, subgraph } = neighborhood;
        if disjoint && subgraph == Subgraph::Induced {
            return Err(Error::usage("induced subgraphs are not disjoint")
                .hint("take subgraph_type='directional' or 'bidirectional' with disjoint"));
        }
        #[cfg(feature = "serve")]
        if let Lists::Parts(parts) = &graph.lists {
            if disjoint || time.is_some() {
                let message =
                    "parts are sampled neither in time nor with nodes of their own for each seed";
                return Err(Error::usage(message).hint("open the dataset that was partitioned"));
            }
            if replace || subgraph == Subgraph::Induced {
                let message = "parts give neither induced subgraphs nor neighbors with replacement";
                return Err(Error::usage(message).hint("open the dataset that was partitioned"));
            }
            let draws = Draws::Parts(parts.sampler((rule, fanouts))?);
            let rows = vec![false; graph.schema().edge_types().len()];
            return Ok(Self { graph, draws, disjoint: false, timed: false, subgraph, rows });
        }
        let lists = graph.lists.whole("samplers")?;
        let sampler = match time {
            None if replace => FrontierSampler::new(lists, fanouts, rule)?.with_replacement()?,
            None => FrontierSampler::new(lists, fanouts, rule)?,
            Some(_) if replace || subgraph == Subgraph::Induced => {
                let message = "neighbors by time are drawn once each, and induce no subgraph";
                return Err(
                    Error::usage(message).hint("leave out replace and 'induced' with times")
                );
            }
            Some(_) if rule != Rule::Uniform => {
                let message =
                    format!("neighbors are drawn by time or by '{}', not both", rule.name());
                return Err(Error::usage(message).hint("take the sampler 'uniform' with times"));
            }
            Some(time) => {
                let timed = lists.clone().with_times_of(graph.dataset())?;
                let sampler = FrontierSampler::new(&timed, fanouts, rule)?;
                // Threads of its own: those of the process would be missing in one that is forked off.
                pool(threads)?.install(|| sampler.in_time(time))?
            }
        };
        let timed = time.is_some();
        let draws = Draws::Whole(sampler);
        let rows = match subgraph {
            Subgraph::Bidirectional => keep_rows(graph.schema()),
            _ => vec![true; graph.schema().edge_types().len()],
        };
        Ok(Self { graph, draws, disjoint: disjoint || timed, timed, subgraph, rows })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<LoaderGraph> {
        &self.graph
    }

    /// Returns whether each seed has nodes of its own.
    pub fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// Returns for each edge type whether its edges have rows: those of parts have none, nor have reverses of other types.
    pub(crate) fn has_rows(&self) -> &[bool] {
        &self.rows
    }

    /// Returns whether seeds have times.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    pub(crate) fn rule(&self) -> Rule {
        self.draws.rule()
    }

    /// The neighborhood of `seeds`, of one entry for each type that has any. A seed that is given twice has two nodes. It is a
    /// function of the seeds, their order and the key.
    ///
    /// # Errors
    /// If seeds have times and are not sampled in time, or the other way round; or if a type is given twice.
    pub fn sample(&self, seeds: &[Seeds], key: Key, scratch: &mut HeteroScratch) -> Result<Batch> {
        let mut key = key;
        for seeds in seeds {
            key = key.with(seeds.node_type as u64);
            for &node in &*seeds.nodes {
                key = key.with(node.into());
            }
        }
        let count = seeds.iter().map(|seeds| seeds.nodes.len()).sum::<usize>() as u64;
        let names: Vec<u64> = (0..count).collect();
        let mut times = Vec::new();
        for of_type in seeds {
            match (&of_type.times, self.timed) {
                (Some(own), true) => times.extend_from_slice(own),
                (None, false) => {}
                (given, _) => {
                    let has = if given.is_some() { "have" } else { "have no" };
                    return Err(Error::usage(format!("seeds {has} times"))
                        .hint("they have times if, and only if, they are sampled in time"));
                }
            }
        }
        let trees = Trees { names: &names, times: self.timed.then_some(&times[..]) };
        let lists: Vec<(usize, &[u32])> =
            seeds.iter().map(|seeds| (seeds.node_type, &seeds.nodes[..])).collect();
        let found = self.finished(self.around(&lists, trees, key, scratch)?);
        let seed_type = seeds.first().map_or(0, |seeds| seeds.node_type);
        let none = Columns { features: false, labels: false, others: false };
        columns::batch(
            (&self.graph, &self.rows),
            found,
            seed_type,
            Vec::new(),
            (none, &Arc::default()),
        )
    }

    /// The neighborhood of seeds by type, in trees if they have nodes of their own, not [finished](Self::finished).
    pub(crate) fn around(
        &self,
        seeds: &[(usize, &[u32])],
        trees: Trees<'_>,
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<FrontierBatch> {
        if !self.disjoint {
            let mut found = match &self.draws {
                Draws::Whole(sampler) => sampler.sample_types(seeds, key, scratch)?,
                #[cfg(feature = "serve")]
                Draws::Parts(sampler) => {
                    self.graph.lists.check_process()?;
                    sampler.sample_types(seeds, key, scratch)?
                }
            };
            if let (Subgraph::Induced, Draws::Whole(sampler)) = (self.subgraph, &self.draws) {
                sampler.induce(&mut found, scratch)?;
            }
            for &(node_type, nodes) in seeds {
                separate(&mut found, node_type, nodes);
            }
            return Ok(found);
        }
        let numbers: Vec<u32> = (0..trees.names.len() as u32).collect();
        let mut rest = &numbers[..];
        let mut roots = Vec::with_capacity(seeds.len());
        for &(node_type, nodes) in seeds {
            let own;
            (own, rest) = rest.split_at(nodes.len());
            roots.push((node_type, nodes, own));
        }
        let roots = Roots { seeds: &roots, names: trees.names, times: trees.times };
        match &self.draws {
            Draws::Whole(sampler) => sampler.sample_trees(roots, key),
            #[cfg(feature = "serve")]
            Draws::Parts(_) => Err(Error::usage("parts are not sampled in trees")),
        }
    }

    /// The batch with the edges of its kind of subgraph, which no hop tells apart unless they were drawn.
    pub(crate) fn finished(&self, mut found: FrontierBatch) -> FrontierBatch {
        if self.subgraph == Subgraph::Bidirectional {
            bidirectional(&mut found);
        }
        if self.subgraph != Subgraph::Directional {
            found.nodes_of_hop.iter_mut().for_each(Vec::clear);
            found.edges.iter_mut().for_each(|edges| edges.of_hop.clear());
        }
        found
    }
}
