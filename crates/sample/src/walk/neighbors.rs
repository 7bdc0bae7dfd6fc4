//! Neighborhoods from random walks (PinSage: Ying et al., KDD 2018, section 3.2, importance-based
//! neighborhoods).

use std::cmp::Reverse;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::MiniBatch;

use super::random::RandomWalk;
use crate::neighbors::Fanouts;
use crate::scratch::{Hop, add_edges};
use crate::view::View;
use crate::{Sampler, Scratch};

/// For every node at every hop, the nodes that several short walks from it visit most, with the
/// numbers of visits as edge weights. They need not be neighbors in the graph.
///
/// A node with the dataset id `v` has the walks 0, 1 and so on of the key `key.with(v)`, so its
/// neighbors are a pure function of the key, the id and the fan-out; smaller fan-outs take the
/// first of the same order. Equally many visits are put in an order by chance. Visits of the node
/// itself do not count. A destination's edges descend by weight. Weights of the graph's edges play
/// no part, and [`NodeInfo::degrees`](gnarl_graph::blocks::NodeInfo::degrees) are those of the graph.
#[derive(Debug, Clone)]
pub struct WalkNeighbors {
    walk: RandomWalk,
    walks: u64,
    fanouts: Fanouts,
}

impl WalkNeighbors {
    /// Neighbors by `walks` walks of `walk` from every node: `fanouts[0]` of each seed,
    /// `fanouts[1]` of each node reached so far (seeds included), and so on; -1 takes all visited.
    ///
    /// # Errors
    /// If `walks` is 0 or fan-outs are wrong.
    pub fn new(walk: RandomWalk, walks: usize, fanouts: &[i64]) -> Result<Self> {
        if walks == 0 {
            return Err(Error::usage("neighbors by walks require at least one walk"));
        }
        Ok(Self { walk, walks: walks as u64, fanouts: Fanouts::new(fanouts)? })
    }

    fn hop(&self, view: View<'_>, fanout: u32, key: Key, scratch: &mut Scratch) -> Result<Hop> {
        let destinations = scratch.nodes().to_vec();
        let mut indptr = vec![0];
        let mut indices = Vec::new();
        let mut weights = Vec::new();
        let mut total = 0;
        let mut path = Vec::new();
        let mut ranking = Vec::new();
        for node in destinations {
            self.rank(view, node, key.with(view.id(node)), &mut path, &mut ranking)?;
            ranking.truncate(fanout as usize);
            let first = indices.len();
            indices.extend(ranking.iter().map(|&(_, _, source)| source));
            weights.extend(ranking.iter().map(|&(Reverse(visits), _, _)| visits as f32));
            scratch.reserve(ranking.len());
            scratch.insert_all(&mut indices[first..]);
            total = add_edges(total, ranking.len() as u32)?;
            indptr.push(total);
        }
        let num_src = scratch.nodes().len();
        Ok(Hop { num_src, indptr, indices, weights: Some(weights), edge_features: None })
    }

    /// Sorts the nodes visited from `node` by visits: the number of visits, a random tie-breaker,
    /// the node.
    fn rank(
        &self,
        view: View<'_>,
        node: u32,
        key: Key,
        path: &mut Vec<u32>,
        ranking: &mut Vec<(Reverse<u32>, u64, u32)>,
    ) -> Result<()> {
        path.clear();
        for number in 0..self.walks {
            self.walk.walk(node, number, key, path)?;
        }
        path.retain(|&visited| visited != node);
        path.sort_unstable();
        ranking.clear();
        // Walks use the keys of their indices; this index is used by none.
        let chance = key.with(u64::MAX);
        let visits = path.chunk_by(|a, b| a == b);
        ranking.extend(visits.map(|visits| {
            (Reverse(visits.len() as u32), chance.u64(view.id(visits[0])), visits[0])
        }));
        ranking.sort_unstable();
        Ok(())
    }
}

impl Sampler for WalkNeighbors {
    fn name(&self) -> &'static str {
        "walks"
    }

    fn sample(&self, seeds: &[u32], key: Key, scratch: &mut Scratch) -> Result<MiniBatch> {
        let graph = self.walk.graph();
        graph.check_seeds(seeds)?;
        let targets = scratch.start(graph.num_nodes(), seeds);
        let hop = |&fanout| self.hop(graph.view(), fanout, key, scratch);
        let hops = self.fanouts.iter().map(hop).collect::<Result<_>>()?;
        Ok(scratch.finish(scratch.node_info(graph.view()), hops, targets))
    }
}
