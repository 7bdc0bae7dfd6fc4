//! Expected edge cut of greedy decisions from a sample of the edges (Armada §4.2, Equation 1).

use gnarl_common::error::{Error, Result};
use gnarl_graph::{EdgeStream, for_each_edge};

use crate::edge_cut::partitioner::Assignment;

/// Neighbor counts of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Neighbors {
    /// `k`: all of them.
    pub all: u64,
    /// `k_0`: those in the half that holds more of them; at least half of `all`, at most all.
    pub majority: u64,
}

impl Neighbors {
    /// Neighbor counts from `counts` in either half.
    pub fn new(counts: [u64; 2]) -> Self {
        Self { all: counts[0] + counts[1], majority: counts[0].max(counts[1]) }
    }

    /// The counts of every node under a bipartition.
    ///
    /// # Errors
    /// Those of the stream, and [`Kind::Usage`](gnarl_common::Kind::Usage) if `halves` has other
    /// than two parts or is of another graph.
    pub fn of(edges: &mut dyn EdgeStream, halves: &Assignment) -> Result<Vec<Self>> {
        if halves.parts != 2 || halves.of.len() as u64 != edges.num_nodes() {
            return Err(Error::usage(
                "the expected cut requires an assignment of this graph's nodes to two parts",
            ));
        }
        let mut counts = vec![[0u64; 2]; halves.of.len()];
        for_each_edge(edges, &mut |u, v| {
            if u != v {
                counts[u as usize][halves.of[v as usize] as usize] += 1;
                counts[v as usize][halves.of[u as usize] as usize] += 1;
            }
        })?;
        Ok(counts.into_iter().map(Self::new).collect())
    }
}

/// `E[C]`, Equation 1: the expected number of cut edges, counted at both endpoints, when each node
/// goes where most of its neighbors in a share `x` of the edges are and all others are placed
/// correctly.
///
/// Two readings of the paper's text: `k·x` draws are rounded to a whole number, and are at least
/// one, as no chunk decides about a node it does not contain. Draws that tie decide rightly.
///
/// ```
/// use gnarl_partition::{Neighbors, expected_cut};
///
/// let nodes = [Neighbors { all: 4, majority: 3 }];
/// // All edges seen, the one neighbor elsewhere is cut off; of one edge seen, 1 in 4 misleads.
/// assert_eq!(expected_cut(&nodes, 1.0), 1.0);
/// assert!((expected_cut(&nodes, 0.25) - (0.75 * 1.0 + 0.25 * 3.0)).abs() < 1e-12);
/// ```
pub fn expected_cut(nodes: &[Neighbors], x: f64) -> f64 {
    let cut = |n: &Neighbors| {
        let majority = n.majority.max(n.all - n.majority.min(n.all)).min(n.all);
        let minority = n.all - majority;
        let wrong = misled(n.all, majority, x);
        minority as f64 * (1.0 - wrong) + majority as f64 * wrong
    };
    nodes.iter().filter(|n| n.all > 0).map(cut).sum()
}

/// `E[C]` when decisions are refined with a second chunk of the same size: both together are
/// equivalent to one chunk twice as large.
pub fn expected_cut_refined(nodes: &[Neighbors], x: f64) -> f64 {
    expected_cut(nodes, 2.0 * x)
}

/// `Pr(k_0' < k·x / 2)` with `k_0'` drawn from `Hypergeometric(k, k_0, k·x)`.
///
/// The sum starts at its largest term, the one nearest to the mean, so that it neither loses
/// digits nor needs the terms that vanish.
fn misled(all: u64, majority: u64, x: f64) -> f64 {
    let draws = ((all as f64 * x).round() as u64).clamp(1, all);
    let (minority, last) = (all - majority, draws.div_ceil(2) - 1);
    if draws - last > minority {
        return 0.0;
    }
    let mut term = (ln_choose(majority, last) + ln_choose(minority, draws - last)
        - ln_choose(all, draws))
    .exp();
    let (mut sum, mut j) = (0.0, last);
    while term > sum * f64::EPSILON {
        sum += term;
        let (shown, hidden) = (j as f64, (minority + j - draws) as f64);
        term *= shown / (majority - j + 1) as f64 * (hidden / (draws - j + 1) as f64);
        j = j.saturating_sub(1);
    }
    sum.min(1.0)
}

/// `ln (n choose m)`.
fn ln_choose(n: u64, m: u64) -> f64 {
    ln_factorial(n) - ln_factorial(m) - ln_factorial(n - m)
}

/// `ln n!`, from 20 on by Stirling's series, whose next term is below 1e-12 there.
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|i| i as f64).product::<f64>().ln();
    }
    let n = n as f64;
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_common::rng::Key;
    use gnarl_graph::MemoryEdges;

    #[test]
    fn small_cases_are_counted() {
        // 10 neighbors, 6 there; of 5 drawn, 2 or fewer are: C(6,j)·C(4,5−j) over C(10,5).
        let wrong = (6.0 * 1.0 + 15.0 * 4.0) / 252.0;
        assert!((misled(10, 6, 0.5) - wrong).abs() < 1e-12);
        assert_eq!(misled(10, 6, 1.0), 0.0);
        assert_eq!(misled(10, 10, 0.3), 0.0);
        assert!((misled(10, 6, 0.0) - 0.4).abs() < 1e-12, "one draw at least");
    }

    #[test]
    fn factorials_and_large_nodes_are_stable() {
        let direct: f64 = (1..=150u32).map(|i| f64::from(i).ln()).sum();
        assert!((ln_factorial(150) - direct).abs() < 1e-9);
        let near = misled(1_000_000_000, 500_010_000, 0.1);
        assert!((0.1..0.5).contains(&near), "{near}");
        assert_eq!(misled(1_000_000_000, 900_000_000, 0.1), 0.0);
    }

    #[test]
    fn simulated_decisions_cut_as_many_edges_as_expected() {
        // Two communities; a quarter of the edges lead anywhere. Degrees from 1 on.
        let key = Key::new(5);
        let edge = |i: u64| {
            let u = (key.unit(4 * i).powi(2) * 2000.0) as u64;
            let inside = u % 2 + 2 * key.below(4 * i + 1, 1000);
            let anywhere = key.unit(4 * i + 2) < 0.25;
            (u, if anywhere { key.below(4 * i + 3, 2000) } else { inside })
        };
        let edges: Vec<_> = (0..30_000).map(edge).filter(|(u, v)| u != v).collect();
        let halves = Assignment { parts: 2, of: (0..2000).map(|v| v % 2).collect() };
        let mut stream = MemoryEdges::new(2000, edges.clone()).unwrap();
        let nodes = Neighbors::of(&mut stream, &halves).unwrap();
        let mut last = f64::INFINITY;
        for x in [0.02, 0.05, 0.1, 0.3] {
            let rounds = 20;
            let measured: u64 = (0..rounds).map(|r| simulate(&nodes, x, Key::new(r))).sum();
            let (measured, expected) = (measured as f64 / rounds as f64, expected_cut(&nodes, x));
            assert!((measured / expected - 1.0).abs() < 0.02, "{x}: {measured}, {expected}");
            assert!(expected_cut_refined(&nodes, x) < expected && expected < last);
            last = expected;
        }
    }

    /// Edges cut when each node shuffles its neighbors and looks at the first `x` of them.
    fn simulate(nodes: &[Neighbors], x: f64, key: Key) -> u64 {
        let cut = |(v, n): (usize, &Neighbors)| {
            let mut sides: Vec<bool> = (0..n.all).map(|i| i < n.majority).collect();
            key.with(v as u64).shuffle(&mut sides);
            let draws = ((n.all as f64 * x).round() as usize).clamp(1, sides.len());
            let right = sides[..draws].iter().filter(|&&side| side).count();
            if 2 * right >= draws { n.all - n.majority } else { n.majority }
        };
        nodes.iter().enumerate().filter(|(_, n)| n.all > 0).map(cut).sum()
    }

    #[test]
    fn other_than_two_parts_are_refused() {
        let mut edges = MemoryEdges::new(3, [(0, 1)]).unwrap();
        let three = Assignment { parts: 3, of: vec![0, 1, 2] };
        assert_eq!(Neighbors::of(&mut edges, &three).unwrap_err().exit_code(), 2);
    }
}
