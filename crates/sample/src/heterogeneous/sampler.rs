//! The sampler of heterogeneous graphs.

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::Triple;
use gnarl_graph::blocks::Schema;

use super::block::{HeteroBatch, HeteroBlock, Relation};
use super::fanouts::HeteroFanouts;
use super::graph::HeteroSampleGraph;
use crate::exact::Exact;
use crate::labor::Labor;
use crate::neighbors::{Draw, sample_from};
use crate::parts::Rule;
use crate::sampler::shuffled_batches;
use crate::scratch::{Hop, Scratch};
use crate::uniform::Uniform;
use crate::weighted::Weighted;

/// Samples neighborhoods of seeds of one type in a heterogeneous graph, with fan-outs per edge
/// type.
///
/// At each hop every node reached so far, of whatever type, gets in-neighbors over each edge type
/// that ends in its type. Those over one edge type are a pure function of the key, the edge type's
/// name, the fan-out and the node's dataset id, chosen by the rules of the samplers without types;
/// a batch does not depend on the order in which types are listed. A graph with one edge type gives
/// the neighbors of [`UniformSampler`](crate::UniformSampler) and its like.
///
/// ```
/// use gnarl_common::rng::Key;
/// use gnarl_graph::{Csc, Triple};
/// use gnarl_sample::parts::Rule;
/// use gnarl_sample::{HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};
///
/// // Papers 0, 1 and 2, of which the later cite the earlier, and two authors.
/// let cites: Triple = "paper:cites:paper".parse()?;
/// let writes: Triple = "author:writes:paper".parse()?;
/// let graph = HeteroSampleGraph::new()
///     .with_nodes("paper", 3)?
///     .with_nodes("author", 2)?
///     .with_edges(&cites, Csc::from_edges(3, &[(1, 0), (2, 0), (2, 1)]))?
///     .with_edges(&writes, Csc::from_edges(3, &[(0, 0), (1, 0), (1, 2)]))?;
///
/// // Two hops: of citations one each, of authors all at the first and none at the second.
/// let fanouts = HeteroFanouts::new(&[1, 1]).with(writes.clone(), &[-1, 0]);
/// let sampler = HeteroSampler::new(&graph, &fanouts, Rule::Uniform)?;
/// let batch = sampler.sample("paper", &[0], Key::new(42), &mut HeteroScratch::new())?;
///
/// let last = &batch.blocks[1]; // the seeds' hop
/// let (cites, writes) = (graph.schema().edge_type(&cites)?, graph.schema().edge_type(&writes)?);
/// assert_eq!(last.relations()[cites].num_edges(), 1);
/// assert_eq!(last.relations()[writes].num_edges(), 2);
/// assert_eq!(batch.blocks[0].relations()[writes].num_edges(), 0);
/// assert_eq!(batch.input_nodes[1], [0, 1]); // both authors of paper 0
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HeteroSampler {
    graph: HeteroSampleGraph,
    /// Per edge type the fan-out of each hop.
    fanouts: Vec<Vec<u32>>,
    hops: usize,
    rule: Rule,
}

/// Reusable memory of one thread that samples heterogeneous graphs, as [`Scratch`].
#[derive(Debug, Default)]
pub struct HeteroScratch(Vec<Scratch>);

impl HeteroScratch {
    /// Empty scratch memory; it grows to the graph on first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the batch, of graphs with so many nodes of each type; returns the memory of each.
    pub(crate) fn start(&mut self, counts: impl ExactSizeIterator<Item = usize>) -> &mut [Scratch] {
        let types = counts.len();
        if self.0.len() < types {
            self.0.resize_with(types, Scratch::new);
        }
        for (count, scratch) in counts.zip(&mut self.0) {
            scratch.clear(count);
        }
        &mut self.0[..types]
    }
}

/// The error of a rule that needs weights of an edge type that has none.
pub(super) fn no_weights(triple: &Triple) -> Error {
    Error::usage(format!("edge type {triple} has no weights to sample by")).hint(
        "take all of it (fan-out -1) or none (0), import it with weights, or sample by another rule",
    )
}

/// Per edge type the fan-out of each hop.
///
/// # Errors
/// If fan-outs are wrong, or the rule needs weights of edges that have none.
pub(crate) fn drawable(
    graph: &HeteroSampleGraph,
    fanouts: &HeteroFanouts,
    rule: Rule,
) -> Result<Vec<Vec<u32>>> {
    let fanouts = fanouts.resolve(graph.schema())?;
    for (edge_type, fanouts) in fanouts.iter().enumerate() {
        let chosen = fanouts.iter().any(|&fanout| fanout != 0 && fanout != u32::MAX);
        if chosen && rule == Rule::Weighted && !graph.is_weighted(edge_type) {
            return Err(no_weights(&graph.schema().edge_types()[edge_type]));
        }
    }
    Ok(fanouts)
}

/// The error of seeds of one type that are given twice.
pub(super) fn duplicate_seeds(schema: &Schema, seed_type: usize) -> Error {
    let name = &schema.node_types()[seed_type];
    Error::usage(format!("duplicate seeds of type '{name}'"))
}

/// Makes `seeds` the first nodes of their types; returns the position of each.
pub(crate) fn targets(
    schema: &Schema,
    seeds: &[(usize, &[u32])],
    nodes: &mut [Scratch],
) -> Result<Vec<(usize, Vec<u32>)>> {
    let mut targets: Vec<(usize, Vec<u32>)> = Vec::with_capacity(seeds.len());
    for &(seed_type, seeds) in seeds {
        if targets.iter().any(|(known, _)| *known == seed_type) {
            return Err(duplicate_seeds(schema, seed_type));
        }
        let mut positions = seeds.to_vec();
        nodes[seed_type].reserve(seeds.len());
        nodes[seed_type].insert_all(&mut positions);
        targets.push((seed_type, positions));
    }
    Ok(targets)
}

impl HeteroSampler {
    /// A sampler of `graph` with `fanouts` and `rule`.
    ///
    /// # Errors
    /// If there are no fan-outs, those of an edge type are wrong, there is no such edge type, or
    /// the rule needs weights of edges that have none.
    pub fn new(graph: &HeteroSampleGraph, fanouts: &HeteroFanouts, rule: Rule) -> Result<Self> {
        let hops = fanouts.hops();
        let fanouts = drawable(graph, fanouts, rule)?;
        Ok(Self { graph: graph.clone(), fanouts, hops, rule })
    }

    /// The sampled graph.
    pub fn graph(&self) -> &HeteroSampleGraph {
        &self.graph
    }

    /// The seeds of every batch of an epoch: the training nodes of a type, shuffled, in
    /// batches of `batch_size`, the last one smaller.
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        shuffled_batches(train, batch_size, key)
    }

    /// The batch for `seeds`, local ids of core nodes of type `seed_type`. `key` stands for the
    /// run's seed and the epoch.
    ///
    /// # Errors
    /// If there is no such type, a seed is not a core node, a list is not inside the graph, or a
    /// block would exceed 32-bit offsets.
    pub fn sample(
        &self,
        seed_type: &str,
        seeds: &[u32],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        self.sample_types(&[(self.graph.schema().node_type(seed_type)?, seeds)], key, scratch)
    }

    /// The batch for seeds of several node types: the number of each type, and local ids of core nodes.
    ///
    /// # Errors
    /// If a type is given twice, or as [`HeteroSampler::sample`].
    pub fn sample_types(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroBatch> {
        let types = 0..self.graph.schema().node_types().len();
        let nodes = scratch.start(types.map(|number| self.graph.num_nodes(number)));
        for &(seed_type, seeds) in seeds {
            self.graph.check_seeds(seed_type, seeds)?;
        }
        let targets = targets(self.graph.schema(), seeds, nodes)?;
        let mut blocks = match self.rule {
            Rule::Uniform => self.blocks::<Uniform>(key, nodes),
            Rule::Labor => self.blocks::<Labor>(key, nodes),
            Rule::Exact => self.blocks::<Exact>(key, nodes),
            Rule::Weighted => self.blocks::<Weighted>(key, nodes),
        }?;
        blocks.reverse();
        let input_nodes: Vec<Vec<u32>> = nodes.iter().map(|s| s.nodes().to_vec()).collect();
        let ids = |(node_type, nodes): (usize, &Vec<u32>)| {
            nodes.iter().map(|&node| self.graph.id(node_type, node)).collect()
        };
        let ids = input_nodes.iter().enumerate().map(ids).collect();
        let schema = self.graph.schema().clone();
        Ok(HeteroBatch { schema, blocks, input_nodes, ids, targets })
    }

    /// The blocks, the seeds' hop first.
    fn blocks<D: Draw>(&self, key: Key, nodes: &mut [Scratch]) -> Result<Vec<HeteroBlock>> {
        let order = self.graph.schema().by_name();
        (0..self.hops).map(|hop| self.block::<D>(hop, &order, key, nodes)).collect()
    }

    /// One hop from all nodes of the batch over all edge types, in the order of their names.
    fn block<D: Draw>(
        &self,
        hop: usize,
        order: &[usize],
        key: Key,
        nodes: &mut [Scratch],
    ) -> Result<HeteroBlock> {
        let schema = self.graph.schema();
        let num_dst: Vec<usize> = nodes.iter().map(|scratch| scratch.nodes().len()).collect();
        let mut found: Vec<Option<(Hop, Vec<u32>)>> = order.iter().map(|_| None).collect();
        for &edge_type in order {
            let (src, dst) = schema.ends(edge_type);
            let destinations = nodes[dst].nodes()[..num_dst[dst]].to_vec();
            let triple = &schema.edge_types()[edge_type];
            let drawn = self
                .hop::<D>(edge_type, hop, &destinations, key, &mut nodes[src])
                .while_doing(|| format!("sampling edge type {triple}"))?;
            found[edge_type] = Some(drawn);
        }
        let num_src: Vec<usize> = nodes.iter().map(|scratch| scratch.nodes().len()).collect();
        let relation = |(edge_type, (hop, degrees))| {
            Relation::new(hop, num_src[schema.ends(edge_type).0], degrees)
        };
        let relations = found.into_iter().flatten().enumerate().map(relation).collect();
        Ok(HeteroBlock::new(num_dst, num_src, relations))
    }

    /// Samples in-neighbors of `destinations` over one edge type, adds them to `sources`, and
    /// returns in-degrees.
    fn hop<D: Draw>(
        &self,
        edge_type: usize,
        hop: usize,
        destinations: &[u32],
        key: Key,
        sources: &mut Scratch,
    ) -> Result<(Hop, Vec<u32>)> {
        let (view, fanout) = (self.graph.view(edge_type), self.fanouts[edge_type][hop]);
        let degrees = destinations.iter().map(|&node| view.checked_degree(node));
        let degrees = degrees.collect::<Result<_>>()?;
        let key = self.graph.schema().draw_key(key, edge_type);
        let hop = match (fanout, view.weights) {
            (0, weights) => {
                let (num_src, indptr) = (sources.nodes().len(), vec![0; destinations.len() + 1]);
                Hop {
                    num_src,
                    indptr,
                    indices: Vec::new(),
                    weights: weights.map(|_| Vec::new()),
                    edge_features: None,
                }
            }
            // Taking all neighbors needs no rule, whose weights the edge type may lack.
            (u32::MAX, None) => {
                let mut chooser = Uniform::chooser(view, key)?;
                sample_from(view, destinations, fanout, &mut chooser, sources)?
            }
            _ => {
                let mut chooser = D::chooser(view, key)?;
                sample_from(view, destinations, fanout, &mut chooser, sources)?
            }
        };
        Ok((hop, degrees))
    }
}
