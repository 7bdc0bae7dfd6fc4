//! Planted communities with power-law degrees (the degree-corrected stochastic block model of
//! Karrer and Newman, Phys. Rev. E 83, 2011): graphs with structure for GNNs and partitioners to
//! find.

use std::ops::Range;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use serde::Serialize;

use super::attributes::Attributes;
use super::permute::Permutation;
use super::stream::EdgeFunction;
use crate::edges::EdgeChunk;

/// Options of [`community`](super::community).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommunityOptions {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of communities, equal in size; a node's class is its community modulo the classes.
    pub communities: u64,
    /// Mean degree before repeated edges are dropped; every edge is stored in both directions.
    pub average_degree: f64,
    /// Share of the edges that leave their community.
    pub mixing: f64,
    /// Exponent of the degree distribution, above 2.
    pub exponent: f64,
    /// Expected degree of the largest hubs, in multiples of the mean degree.
    pub hub: f64,
    /// Random seed.
    pub seed: u64,
    /// Drop repeated edges: the mean degree then falls a little short.
    pub coalesce: bool,
    /// Features, labels and splits.
    pub attributes: Attributes,
    /// Memory limit of building the topology, in bytes.
    pub memory: u64,
}

impl Default for CommunityOptions {
    fn default() -> Self {
        Self {
            nodes: 200_000,
            communities: 64,
            average_degree: 25.0,
            mixing: 0.3,
            exponent: 2.5,
            hub: 60.0,
            seed: 0,
            coalesce: true,
            attributes: Attributes {
                features: 100,
                classes: 64,
                train: 0.5,
                valid: 0.2,
                test: 0.3,
                ..Attributes::default()
            },
            memory: 1 << 30,
        }
    }
}

impl CommunityOptions {
    fn check(&self) -> Result<()> {
        let bad = |what: String, hint: &str| Err(Error::usage(what).hint(hint));
        let Self { nodes, communities, mixing, .. } = *self;
        if communities == 0 || nodes / communities.max(1) < 2 || nodes > 1 << 48 {
            return bad(
                format!("{communities} communities of {nodes} nodes cannot be made"),
                "every community needs two nodes",
            );
        }
        if !(0.0..=1.0).contains(&mixing) || (communities == 1 && mixing > 0.0) {
            return bad(
                format!("a share of {mixing} of the edges cannot leave {communities} communities"),
                "choose 0..1, and 0 for a single community",
            );
        }
        if !(self.average_degree > 0.0 && self.average_degree < nodes as f64) {
            return bad(
                format!("{nodes} nodes cannot have {} neighbors each", self.average_degree),
                "choose an average degree above 0 and below the number of nodes",
            );
        }
        if !(self.exponent > 2.0 && self.exponent.is_finite() && self.hub > 1.0) {
            return bad(
                format!(
                    "invalid exponent '{}' or hub '{}' of a power law",
                    self.exponent, self.hub
                ),
                "choose an exponent above 2 and a hub above 1",
            );
        }
        Ok(())
    }
}

/// The edges of a community graph, by index, in constant memory.
///
/// Nodes have a place in a random order; communities are equal ranges of places; within one, the
/// expected degree falls with the rank `r` as `(r + r₀)^(-1/(exponent - 1))`, whose sums have a
/// closed form and so an inverse.
#[derive(Debug, Clone)]
pub struct CommunityEdges {
    nodes: u64,
    communities: u64,
    draws: u64,
    mixing: f64,
    key: Key,
    order: Permutation,
    /// Offset `r₀` of the ranks as a share of the community, and `1 - 1/(exponent - 1)`.
    offset: f64,
    power: f64,
}

impl CommunityEdges {
    /// Solves for the constants.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(options: &CommunityOptions) -> Result<Self> {
        options.check()?;
        let key = Key::new(options.seed).with(0x636f_6d6d);
        let power = 1.0 - 1.0 / (options.exponent - 1.0);
        Ok(Self {
            nodes: options.nodes,
            communities: options.communities,
            draws: (options.nodes as f64 * options.average_degree / 2.0).round() as u64,
            mixing: options.mixing,
            key: key.with(0),
            order: Permutation::new(options.nodes, key.with(1)),
            offset: offset_for(options.hub, power),
            power,
        })
    }

    /// The community of a node.
    #[inline]
    pub fn community(&self, node: u64) -> u64 {
        self.community_at(self.order.apply(node))
    }

    /// The two endpoints of the `i`-th edge.
    #[inline]
    pub fn edge(&self, i: u64) -> (u64, u64) {
        let key = self.key.with(i);
        let leaves = key.unit(0) < self.mixing;
        let mut counter = 1;
        loop {
            let home = key.below(counter, self.communities);
            let other = match leaves {
                false => home,
                // Uniform among the others.
                true => {
                    (home + 1 + key.below(counter + 1, self.communities - 1)) % self.communities
                }
            };
            let u = self.place(home, key.unit(counter + 2));
            let v = self.place(other, key.unit(counter + 3));
            if u != v {
                return (self.order.invert(u), self.order.invert(v));
            }
            counter += 4;
        }
    }

    /// First place of a community.
    #[inline]
    fn start(&self, community: u64) -> u64 {
        (u128::from(community) * u128::from(self.nodes) / u128::from(self.communities)) as u64
    }

    fn community_at(&self, place: u64) -> u64 {
        let guess = u128::from(place) * u128::from(self.communities) / u128::from(self.nodes);
        let guess = guess as u64;
        // Rounding down the start of a range can put the place one range further.
        guess + u64::from(guess + 1 < self.communities && place >= self.start(guess + 1))
    }

    /// The place in a community where `unit` of the expected degrees lie before.
    #[inline]
    fn place(&self, community: u64, unit: f64) -> u64 {
        let (start, end) = (self.start(community), self.start(community + 1));
        let (low, high) = (self.offset.powf(self.power), (1.0 + self.offset).powf(self.power));
        let rank = (low + unit * (high - low)).powf(1.0 / self.power) - self.offset;
        start + ((rank.max(0.0) * (end - start) as f64) as u64).min(end - start - 1)
    }
}

/// The offset at which the first rank's degree is `hub` times the mean, by bisection: the density
/// at 0 is `power·x^(power-1) / ((1+x)^power - x^power)`, which falls with the offset x.
fn offset_for(hub: f64, power: f64) -> f64 {
    let ratio = |x: f64| power * x.powf(power - 1.0) / ((1.0 + x).powf(power) - x.powf(power));
    let (mut low, mut high) = (1e-18f64, 1e6f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if ratio(middle) > hub {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

impl EdgeFunction for CommunityEdges {
    fn num_nodes(&self) -> u64 {
        self.nodes
    }

    fn num_draws(&self) -> u64 {
        self.draws
    }

    fn edges_per_draw(&self) -> u64 {
        2
    }

    fn draw(&self, draws: Range<u64>, chunk: &mut EdgeChunk) {
        for i in draws {
            let (u, v) = self.edge(i);
            chunk.src.extend([u, v]);
            chunk.dst.extend([v, u]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_communities_agree() {
        for (nodes, communities) in [(10, 3), (1000, 7), (1001, 64), (6, 3), (9_999, 4_999)] {
            let options = CommunityOptions {
                nodes,
                communities,
                average_degree: 1.0,
                ..CommunityOptions::default()
            };
            let edges = CommunityEdges::new(&options).unwrap();
            for c in 0..communities {
                for place in edges.start(c)..edges.start(c + 1) {
                    assert_eq!(edges.community_at(place), c, "{nodes} {communities}");
                }
                assert_eq!(edges.community_at(edges.place(c, 0.0)), c);
                assert_eq!(edges.community_at(edges.place(c, 1.0 - 1e-16)), c);
            }
        }
    }

    #[test]
    fn the_share_of_edges_that_leave_is_as_asked() {
        let edges = CommunityEdges::new(&CommunityOptions::default()).unwrap();
        let n = 20_000;
        let leaving = (0..n)
            .filter(|&i| {
                let (u, v) = edges.edge(i);
                edges.community(u) != edges.community(v)
            })
            .count();
        let share = leaving as f64 / n as f64;
        assert!((share - 0.3).abs() < 0.015, "{share}");
    }

    #[test]
    fn impossible_options_are_refused() {
        let bad = |change: fn(&mut CommunityOptions)| {
            let mut options = CommunityOptions::default();
            change(&mut options);
            CommunityEdges::new(&options).unwrap_err().to_string()
        };
        assert!(bad(|o| o.communities = 0).contains("0 communities"));
        assert!(bad(|o| o.communities = o.nodes).contains("two nodes"));
        assert!(bad(|o| o.communities = 1).contains("cannot leave"));
        assert!(bad(|o| o.average_degree = 0.0).contains("neighbors"));
        assert!(bad(|o| o.exponent = 2.0).contains("power law"));
    }
}
