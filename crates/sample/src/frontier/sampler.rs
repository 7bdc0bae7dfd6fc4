//! The frontier sampler.

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};

use super::batch::{FrontierBatch, FrontierEdges};
use super::recorded::Recorded;
use super::replaced::Replaced;
use crate::exact::Exact;
use crate::heterogeneous::{drawable, targets};
use crate::labor::Labor;
use crate::neighbors::{Draw, sample_from};
use crate::parts::Rule;
use crate::scratch::Scratch;
use crate::temporal::{ByTime, TemporalRule};
use crate::uniform::Uniform;
use crate::weighted::Weighted;
use crate::{HeteroFanouts, HeteroSampleGraph, HeteroScratch};

/// Samples neighborhoods of seeds in which each node draws its in-neighbors once, in the hop after the one that reached it.
///
/// Where [`HeteroSampler`](crate::HeteroSampler) gives a block per layer, this gives one edge list that all layers of a
/// model share: what PyTorch Geometric's models expect. An edge of hop `h` ends in a node that hop `h - 1` reached first,
/// so that the last layer needs the edges of the first hop alone. What a node draws over an edge type is a pure function
/// of the key, the edge type's name, the fan-out and the node's dataset id.
///
/// ```
/// use gnarl_common::rng::Key;
/// use gnarl_graph::{Csc, Triple};
/// use gnarl_sample::parts::Rule;
/// use gnarl_sample::{FrontierSampler, HeteroFanouts, HeteroSampleGraph, HeteroScratch};
///
/// let plain = Triple::plain();
/// let lists = Csc::from_edges(4, &[(1, 0), (2, 0), (3, 1), (0, 3)]);
/// let graph = HeteroSampleGraph::new().with_nodes(&plain.src, 4)?.with_edges(&plain, lists)?;
/// let sampler = FrontierSampler::new(&graph, &HeteroFanouts::new(&[-1, -1, -1]), Rule::Uniform)?;
/// let batch = sampler.sample(&plain.dst, &[0], Key::new(42), &mut HeteroScratch::new())?;
///
/// assert_eq!(batch.nodes[0], [0, 1, 2, 3]);
/// assert_eq!(batch.nodes_of_hop[0], [1, 2, 1, 0]);
/// // Node 0 draws in the first hop alone, though the third reaches it again.
/// assert_eq!(batch.edges[0].sources, [1, 2, 3, 0]);
/// assert_eq!(batch.edges[0].destinations, [0, 0, 1, 3]);
/// assert_eq!(batch.edges[0].of_hop, [2, 1, 1]);
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FrontierSampler {
    pub(super) graph: HeteroSampleGraph,
    /// Per edge type the fan-out of each hop.
    pub(super) fanouts: Vec<Vec<u32>>,
    pub(super) hops: usize,
    pub(super) rule: Rule,
    /// True if a node may draw a neighbor several times.
    pub(super) replace: bool,
    /// The order by time of each edge type that has times, if edges are sampled by time.
    pub(super) by_time: Option<(Vec<Option<ByTime>>, TemporalRule)>,
}

impl FrontierSampler {
    /// A sampler of `graph`: `fanouts` in-neighbors by hop and edge type, chosen by `rule`.
    ///
    /// # Errors
    /// As [`HeteroSampler::new`](crate::HeteroSampler::new).
    pub fn new(graph: &HeteroSampleGraph, fanouts: &HeteroFanouts, rule: Rule) -> Result<Self> {
        let hops = fanouts.hops();
        let fanouts = drawable(graph, fanouts, rule)?;
        Ok(Self { graph: graph.clone(), fanouts, hops, rule, replace: false, by_time: None })
    }

    /// The sampler with replacement: a node draws as many neighbors as the fan-out, each any of its list. Fan-outs of all
    /// take each once.
    ///
    /// # Errors
    /// If the rule is another than uniform, or edges are sampled by time.
    pub fn with_replacement(self) -> Result<Self> {
        match self.rule {
            _ if self.by_time.is_some() => {
                Err(Error::usage("neighbors are drawn with replacement or by time, not both"))
            }
            Rule::Uniform => Ok(Self { replace: true, ..self }),
            other => {
                let message = format!("neighbors by the rule '{}' are not replaced", other.name());
                Err(Error::usage(message).hint("draw uniformly, or without replacement"))
            }
        }
    }

    /// The rule by which neighbors are drawn.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The sampled graph.
    pub fn graph(&self) -> &HeteroSampleGraph {
        &self.graph
    }

    /// The batch for `seeds`, local ids of core nodes of type `seed_type`. Seeds that are given twice share a position.
    /// `key` stands for the run's seed and the epoch.
    ///
    /// # Errors
    /// As [`HeteroSampler::sample`](crate::HeteroSampler::sample).
    pub fn sample(
        &self,
        seed_type: &str,
        seeds: &[u32],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<FrontierBatch> {
        self.sample_types(&[(self.graph.schema().node_type(seed_type)?, seeds)], key, scratch)
    }

    /// The batch for seeds of several node types: the number of each type, and local ids of core nodes.
    ///
    /// # Errors
    /// If a type is given twice, or as [`FrontierSampler::sample`].
    pub fn sample_types(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<FrontierBatch> {
        if self.by_time.is_some() {
            return Err(Error::usage("a sampler by time samples trees, each as of its own"));
        }
        match self.rule {
            Rule::Uniform if self.replace => self.draw::<Replaced>(seeds, key, scratch),
            Rule::Uniform => self.draw::<Uniform>(seeds, key, scratch),
            Rule::Labor => self.draw::<Labor>(seeds, key, scratch),
            Rule::Exact => self.draw::<Exact>(seeds, key, scratch),
            Rule::Weighted => self.draw::<Weighted>(seeds, key, scratch),
        }
    }

    fn draw<D: Draw>(
        &self,
        seeds: &[(usize, &[u32])],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<FrontierBatch> {
        let schema = self.graph.schema();
        let types = schema.node_types().len();
        let nodes = scratch.start((0..types).map(|number| self.graph.num_nodes(number)));
        for &(seed_type, seeds) in seeds {
            self.graph.check_seeds(seed_type, seeds)?;
        }
        let targets = targets(schema, seeds, nodes)?;
        let count = |nodes: &[Scratch]| -> Vec<usize> {
            nodes.iter().map(|scratch| scratch.nodes().len()).collect()
        };
        let mut expanded = vec![0; types];
        let mut reached = count(nodes);
        let mut nodes_of_hop: Vec<Vec<usize>> = reached.iter().map(|&seeds| vec![seeds]).collect();
        let mut edges = vec![FrontierEdges::default(); schema.edge_types().len()];
        let order = schema.by_name();
        for hop in 0..self.hops {
            for &edge_type in &order {
                let dst = schema.ends(edge_type).1;
                let frontier = nodes[dst].nodes()[expanded[dst]..reached[dst]].to_vec();
                self.hop::<D>(edge_type, hop, (expanded[dst], &frontier), key, nodes, &mut edges)
                    .while_doing(|| {
                        format!("sampling edge type {}", schema.edge_types()[edge_type])
                    })?;
            }
            expanded = reached;
            reached = count(nodes);
            for ((of_hop, now), before) in nodes_of_hop.iter_mut().zip(&reached).zip(&expanded) {
                of_hop.push(now - before);
            }
        }
        let nodes = nodes.iter().map(|scratch| scratch.nodes().to_vec()).collect();
        Ok(FrontierBatch {
            schema: schema.clone(),
            nodes,
            nodes_of_hop,
            edges,
            targets,
            trees: None,
        })
    }

    /// Draws in-neighbors over one edge type of the nodes from position `first` on.
    fn hop<D: Draw>(
        &self,
        edge_type: usize,
        hop: usize,
        (first, frontier): (usize, &[u32]),
        key: Key,
        nodes: &mut [Scratch],
        edges: &mut [FrontierEdges],
    ) -> Result<()> {
        let view = self.graph.view(edge_type);
        let fanout = self.fanouts[edge_type][hop];
        let FrontierEdges { sources, destinations, rows, of_hop, .. } = &mut edges[edge_type];
        if fanout == 0 || frontier.is_empty() {
            of_hop.push(0);
            return Ok(());
        }
        let schema = self.graph.schema();
        let key = schema.draw_key(key, edge_type);
        let reached = &mut nodes[schema.ends(edge_type).0];
        // Taking all neighbors needs no rule, whose weights the edge type may lack.
        let drawn = match fanout == u32::MAX && (view.weights.is_none() || self.replace) {
            true => {
                let chooser = Uniform::chooser(view, key)?;
                let mut recorded = Recorded { chooser, rows };
                sample_from(view, frontier, fanout, &mut recorded, reached)?
            }
            false => {
                let chooser = D::chooser(view, key)?;
                let mut recorded = Recorded { chooser, rows };
                sample_from(view, frontier, fanout, &mut recorded, reached)?
            }
        };
        of_hop.push(drawn.indices.len());
        for (at, list) in drawn.indptr.windows(2).enumerate() {
            let repeated = std::iter::repeat_n((first + at) as u32, (list[1] - list[0]) as usize);
            destinations.extend(repeated);
        }
        match sources.is_empty() {
            true => *sources = drawn.indices,
            false => sources.extend_from_slice(&drawn.indices),
        }
        Ok(())
    }
}
