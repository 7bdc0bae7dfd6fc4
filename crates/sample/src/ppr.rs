//! Neighborhoods by personalized PageRank.

use std::collections::VecDeque;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::MiniBatch;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::neighbors::Fanouts;
use crate::scratch::{Hop, add_edges};
use crate::view::View;
use crate::{SampleGraph, Sampler, Scratch};

/// For every node at every hop, the nodes that weigh most in its personalized PageRank, with their
/// weights (PPRGo: Bojchevski et al., KDD 2020, section 3.2). They need not be neighbors in the graph.
///
/// Weights are approximated by pushes along in-neighbors until no node holds more than the tolerance times its in-degree
/// (Andersen, Chung and Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006, section 3): at most 1 /
/// (teleport × tolerance) edges are read for a node, whatever the size of the graph. Nothing is drawn: a node has the same
/// neighbors in every epoch, a pure function of the lists. A destination's edges descend by weight, equal ones by dataset
/// id; the node itself does not count. Weights of the graph's edges play no part, and
/// [`NodeInfo::degrees`](gnarl_graph::blocks::NodeInfo::degrees) are those of the graph.
#[derive(Debug, Clone)]
pub struct PprNeighbors {
    graph: SampleGraph,
    teleport: f64,
    tolerance: f64,
    fanouts: Fanouts,
}

/// Mass at a node: what stays there, the rest that is to be pushed on, and the limit above which it is.
#[derive(Clone, Copy)]
struct Mass {
    kept: f64,
    rest: f64,
    limit: f64,
    waits: bool,
}

/// The mass that stays at a node, its dataset id, and the node.
type Weight = (f64, u64, u32);

/// Reusable memory of the pushes from a node.
#[derive(Default)]
struct Pushes {
    mass: HashMap<u32, Mass>,
    queue: VecDeque<u32>,
    ranking: Vec<Weight>,
}

impl PprNeighbors {
    /// Neighbors in `graph` by walks that end with probability `teleport` at each step, up to `tolerance`; `fanouts[0]` of
    /// each seed, `fanouts[1]` of each node reached so far (seeds included), and so on; -1 takes all that were reached.
    ///
    /// # Errors
    /// If one of both numbers is not between 0 and 1, or fan-outs are wrong.
    pub fn new(
        graph: &SampleGraph,
        (teleport, tolerance): (f64, f64),
        fanouts: &[i64],
    ) -> Result<Self> {
        for (name, number) in [("teleport probability", teleport), ("tolerance", tolerance)] {
            if !(number > 0.0 && number < 1.0) {
                return Err(Error::usage(format!("invalid {name} '{number}' of PageRank"))
                    .hint("it must be above 0 and below 1"));
            }
        }
        let (graph, fanouts) = (graph.clone(), Fanouts::new(fanouts)?);
        Ok(Self { graph, teleport, tolerance, fanouts })
    }

    fn hop(
        &self,
        view: View<'_>,
        fanout: u32,
        pushes: &mut Pushes,
        scratch: &mut Scratch,
    ) -> Result<Hop> {
        let destinations = scratch.nodes().to_vec();
        let (mut indptr, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
        let mut total = 0;
        for node in destinations {
            self.rank(view, node, fanout as usize, pushes)?;
            let chosen = pushes.ranking.iter();
            let first = indices.len();
            indices.extend(chosen.clone().map(|&(_, _, source)| source));
            weights.extend(chosen.map(|&(weight, _, _)| weight as f32));
            let count = indices.len() - first;
            scratch.reserve(count);
            scratch.insert_all(&mut indices[first..]);
            total = add_edges(total, count as u32)?;
            indptr.push(total);
        }
        let num_src = scratch.nodes().len();
        Ok(Hop { num_src, indptr, indices, weights: Some(weights), edge_features: None })
    }

    /// Finds the `most` nodes of those reached from `node` that weigh most, by weight.
    fn rank(&self, view: View<'_>, node: u32, most: usize, pushes: &mut Pushes) -> Result<()> {
        let Pushes { mass, queue, ranking } = pushes;
        mass.clear();
        self.mass(&view, node, mass)?.rest = 1.0;
        queue.push_back(node);
        while let Some(from) = queue.pop_front() {
            let (start, degree) = view.list(from)?;
            let of = self.mass(&view, from, mass)?;
            let rest = std::mem::take(&mut of.rest);
            of.waits = false;
            // A walk ends at a node without in-neighbors.
            let kept = if degree == 0 { rest } else { self.teleport * rest };
            of.kept += kept;
            let each = (rest - kept) / f64::from(degree.max(1));
            for position in start..start + degree as usize {
                let to = view.source(position)?;
                let of = self.mass(&view, to, mass)?;
                of.rest += each;
                if !of.waits && of.rest > of.limit {
                    of.waits = true;
                    queue.push_back(to);
                }
            }
        }
        ranking.clear();
        let reached = mass.iter().filter(|(at, of)| **at != node && of.kept > 0.0);
        ranking.extend(reached.map(|(&at, of)| (of.kept, view.id(at), at)));
        let order = |a: &Weight, b: &Weight| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if ranking.len() > most {
            ranking.select_nth_unstable_by(most, order);
            ranking.truncate(most);
        }
        ranking.sort_unstable_by(order);
        Ok(())
    }

    /// Mass at `node`, none so far if it is reached for the first time.
    fn mass<'m>(
        &self,
        view: &View<'_>,
        node: u32,
        mass: &'m mut HashMap<u32, Mass>,
    ) -> Result<&'m mut Mass> {
        match mass.entry(node) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let limit = self.tolerance * f64::from(view.list(node)?.1.max(1));
                Ok(entry.insert(Mass { kept: 0.0, rest: 0.0, limit, waits: false }))
            }
        }
    }
}

impl Sampler for PprNeighbors {
    fn name(&self) -> &'static str {
        "ppr"
    }

    fn sample(&self, seeds: &[u32], _: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        self.graph.check_seeds(seeds)?;
        let view = self.graph.view();
        let targets = scratch.start(self.graph.num_nodes(), seeds);
        let mut pushes = Pushes::default();
        let hop = |&fanout| self.hop(view, fanout, &mut pushes, scratch);
        let hops = self.fanouts.iter().map(hop).collect::<Result<_>>()?;
        Ok(scratch.finish(scratch.node_info(view), hops, targets))
    }
}
