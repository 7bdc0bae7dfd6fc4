//! Neighborhoods in which each root has nodes of its own, as of a time where edges have times.

use gnarl_common::rng::{Key, mix};
use gnarl_common::{Context, Error, Result};
use hashbrown::HashTable;

use super::batch::{FrontierBatch, FrontierEdges};
use super::replaced::Replaced;
use super::sampler::FrontierSampler;
use crate::Scratch;
use crate::exact::Exact;
use crate::labor::Labor;
use crate::neighbors::{Choose, Draw};
use crate::parts::Rule;
use crate::temporal::{ByTime, TemporalRule};
use crate::uniform::Uniform;
use crate::view::View;
use crate::weighted::Weighted;

/// The seeds of a batch of trees.
#[derive(Debug, Clone, Copy)]
pub struct Roots<'a> {
    /// For each seed type its number, the seeds, and the number of the tree that each is in.
    pub seeds: &'a [(usize, &'a [u32], &'a [u32])],
    /// A name for each tree. It decides what the tree draws, whatever else is in the batch.
    pub names: &'a [u64],
    /// The time of each tree: of the edges only those no later are there.
    pub times: Option<&'a [i64]>,
}

/// The nodes of one type in a batch of trees.
#[derive(Debug, Default)]
struct TreeNodes {
    places: HashTable<u32>,
    nodes: Vec<u32>,
    trees: Vec<u32>,
}

impl TreeNodes {
    /// The position of a node of a tree, which is appended if it is new.
    fn insert(&mut self, tree: u32, node: u32) -> u32 {
        let Self { places, nodes, trees } = self;
        let hash = |tree: u32, node: u32| mix(u64::from(tree) << 32 | u64::from(node));
        let equal = |&at: &u32| nodes[at as usize] == node && trees[at as usize] == tree;
        let hash_of = |&at: &u32| hash(trees[at as usize], nodes[at as usize]);
        let next = nodes.len() as u32;
        let position = *places.entry(hash(tree, node), equal, hash_of).or_insert(next).get();
        if position == next {
            nodes.push(node);
            trees.push(tree);
        }
        position
    }
}

/// Memory that draws use again.
#[derive(Default)]
struct Spare {
    scratch: Scratch,
    chosen: Vec<u32>,
}

/// The edges that are there, and the rule among them.
struct Timed<'a> {
    order: &'a ByTime,
    times: &'a [i64],
    rule: TemporalRule,
}

impl FrontierSampler {
    /// A sampler of the edges that are there at the times of trees. Sorts all lists by time, on all threads.
    ///
    /// # Errors
    /// If no edge type has times, its own or those of its sources, or a list is not inside the graph.
    pub fn in_time(mut self, rule: TemporalRule) -> Result<Self> {
        if self.replace {
            return Err(Error::usage("neighbors are drawn with replacement or by time, not both"));
        }
        let types = 0..self.graph.schema().edge_types().len();
        let order = |edge_type: usize| {
            let view = self.graph.view(edge_type);
            let sorted = view.is_timed().then(|| ByTime::new(view)).transpose();
            sorted.while_doing(|| {
                format!("ordering edges of {} by time", self.graph.schema().edge_types()[edge_type])
            })
        };
        let orders = types.map(order).collect::<Result<Vec<_>>>()?;
        if orders.iter().all(Option::is_none) {
            return Err(Error::usage("neither edges nor nodes have times")
                .hint("write or import the dataset with times"));
        }
        self.by_time = Some((orders, rule));
        Ok(self)
    }

    /// The batch of `roots`: a node that several trees reach is there once for each. [`FrontierBatch::trees`] tells the tree
    /// of each node.
    ///
    /// # Errors
    /// If a tree has no name, there are times without [`FrontierSampler::in_time`] or the other way round, or as
    /// [`FrontierSampler::sample`].
    pub fn sample_trees(&self, roots: Roots<'_>, key: Key) -> Result<FrontierBatch> {
        if roots.times.is_some() != self.by_time.is_some() {
            return Err(Error::usage("trees have times if, and only if, the sampler has"));
        }
        if roots.times.is_some_and(|times| times.len() != roots.names.len()) {
            return Err(Error::usage(format!(
                "expected {} times, one per tree",
                roots.names.len()
            )));
        }
        match self.rule {
            Rule::Uniform if self.replace => self.draw_trees::<Replaced>(roots, key),
            Rule::Uniform => self.draw_trees::<Uniform>(roots, key),
            Rule::Labor => self.draw_trees::<Labor>(roots, key),
            Rule::Exact => self.draw_trees::<Exact>(roots, key),
            Rule::Weighted => self.draw_trees::<Weighted>(roots, key),
        }
    }

    fn draw_trees<D: Draw>(&self, roots: Roots<'_>, key: Key) -> Result<FrontierBatch> {
        let schema = self.graph.schema();
        let mut nodes: Vec<TreeNodes> = Vec::new();
        nodes.resize_with(schema.node_types().len(), TreeNodes::default);
        let targets = self.plant(roots, &mut nodes)?;
        let count = |nodes: &[TreeNodes]| -> Vec<usize> {
            nodes.iter().map(|own| own.nodes.len()).collect()
        };
        let mut expanded = vec![0; nodes.len()];
        let mut reached = count(&nodes);
        let mut nodes_of_hop: Vec<Vec<usize>> = reached.iter().map(|&seeds| vec![seeds]).collect();
        let mut edges = vec![FrontierEdges::default(); schema.edge_types().len()];
        let mut spare = Spare::default();
        let order = schema.by_name();
        for hop in 0..self.hops {
            for &edge_type in &order {
                let dst = schema.ends(edge_type).1;
                let frontier = expanded[dst]..reached[dst];
                self.grow::<D>(
                    (edge_type, hop),
                    frontier,
                    roots,
                    key,
                    &mut nodes,
                    &mut edges,
                    &mut spare,
                )
                .while_doing(|| format!("sampling edge type {}", schema.edge_types()[edge_type]))?;
            }
            expanded = reached;
            reached = count(&nodes);
            for ((of_hop, now), before) in nodes_of_hop.iter_mut().zip(&reached).zip(&expanded) {
                of_hop.push(now - before);
            }
        }
        let (nodes, trees) = nodes.into_iter().map(|own| (own.nodes, own.trees)).unzip();
        let schema = schema.clone();
        Ok(FrontierBatch { schema, nodes, nodes_of_hop, edges, targets, trees: Some(trees) })
    }

    /// Makes the seeds the first nodes; returns the position of each.
    fn plant(&self, roots: Roots<'_>, nodes: &mut [TreeNodes]) -> Result<Vec<(usize, Vec<u32>)>> {
        let mut targets: Vec<(usize, Vec<u32>)> = Vec::with_capacity(roots.seeds.len());
        for &(seed_type, seeds, trees) in roots.seeds {
            self.graph.check_seeds(seed_type, seeds)?;
            if trees.len() != seeds.len()
                || trees.iter().any(|&of| of as usize >= roots.names.len())
            {
                return Err(Error::usage("each seed is in one of the trees that have a name"));
            }
            let own = &mut nodes[seed_type];
            let each = seeds.iter().zip(trees);
            targets.push((seed_type, each.map(|(&seed, &tree)| own.insert(tree, seed)).collect()));
        }
        Ok(targets)
    }

    /// Draws in-neighbors over one edge type of the nodes of a frontier.
    fn grow<D: Draw>(
        &self,
        (edge_type, hop): (usize, usize),
        frontier: std::ops::Range<usize>,
        roots: Roots<'_>,
        key: Key,
        nodes: &mut [TreeNodes],
        edges: &mut [FrontierEdges],
        spare: &mut Spare,
    ) -> Result<()> {
        let view = self.graph.view(edge_type);
        let fanout = self.fanouts[edge_type][hop];
        let schema = self.graph.schema();
        let (src, dst) = schema.ends(edge_type);
        let key = schema.draw_key(key, edge_type);
        let timed = self.by_time.as_ref().zip(roots.times).and_then(|((orders, rule), times)| {
            Some(Timed { order: orders[edge_type].as_ref()?, times, rule: *rule })
        });
        let FrontierEdges { sources, destinations, rows, of_hop, .. } = &mut edges[edge_type];
        let before = rows.len();
        for at in frontier {
            if fanout == 0 {
                break;
            }
            let node = nodes[dst].nodes[at];
            let tree = nodes[dst].trees[at];
            let list = view.list(node)?;
            let key = key.with(roots.names[tree as usize]);
            match &timed {
                Some(timed) => timed.choose(view, (node, tree), list, fanout, key, spare),
                None => choose::<D>(view, node, list, fanout, key, spare)?,
            }
            for &position in &spare.chosen {
                let edge = list.0 + position as usize;
                sources.push(nodes[src].insert(tree, view.source(edge)?));
                destinations.push(at as u32);
                rows.push(view.row(edge));
            }
        }
        of_hop.push(rows.len() - before);
        Ok(())
    }
}

impl Timed<'_> {
    /// Chooses positions among the edges that are there at the tree's time.
    fn choose(
        &self,
        view: View<'_>,
        (node, tree): (u32, u32),
        list: (usize, u32),
        fanout: u32,
        key: Key,
        spare: &mut Spare,
    ) {
        let permitted = self.order.until(list, self.times[tree as usize]);
        let chosen = &mut spare.chosen;
        chosen.clear();
        chosen.resize(permitted.len().min(fanout as usize), 0);
        self.rule.choose(permitted, key.with(view.id(node)), &mut spare.scratch.seen, chosen);
        chosen.iter_mut().for_each(|i| *i = permitted.position(*i as usize) as u32);
    }
}

/// Chooses positions in a list by the rule `D`.
fn choose<D: Draw>(
    view: View<'_>,
    node: u32,
    list: (usize, u32),
    fanout: u32,
    key: Key,
    spare: &mut Spare,
) -> Result<()> {
    let Spare { scratch, chosen } = spare;
    chosen.clear();
    // Taking all neighbors needs no rule, whose weights the edge type may lack.
    if fanout == u32::MAX || list.1 == 0 || fanout >= list.1 && !D::Chooser::REPLACES {
        chosen.extend(0..list.1);
        return Ok(());
    }
    let mut chooser = D::chooser(view, key)?;
    chosen.resize(fanout as usize, 0);
    chooser.announce(view, list);
    chooser.choose(view, node, list, scratch, chosen);
    Ok(())
}
