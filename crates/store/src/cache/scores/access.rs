//! Scores by the probability that a batch reads a node.

use gnarl_common::{Error, Result};

use super::InLists;
use super::lists::of_source;

/// The probability that a batch of neighbor sampling reads each node's row: the vertex-wise
/// inclusion probability of SALIENT++ (Kaler et al., MLSys 2023).
///
/// `seeds` marks the training nodes of this rank, of which a batch takes `batch`; `fanouts` are
/// those of the sampler, the seeds' first, -1 for all. A seed is in a batch with probability
/// `h₀ = min(1, batch / seeds)`. A node `v` met at hop `k - 1` draws each of its in-neighbors with
/// `tₖ(v) = min(1, fanoutₖ / degree)`, so that `u` is met at hop `k` with
/// `hₖ(u) = 1 - Π (1 - tₖ(v) hₖ₋₁(v))` over all `v` that list it, as if these were independent. The
/// result is `1 - Π (1 - hₖ)` over all hops, the seeds' included. Where meetings depend on each
/// other, as on loops and short cycles, it is somewhat too high.
///
/// Time is proportional to edges × hops, memory is four `f32` per node; only lists of nodes that
/// batches can reach are read. Products are sums of logarithms, in the order of the lists.
///
/// # Errors
/// If there is not one list per node, a source is not among the nodes, there are no fan-outs
/// or one is neither positive nor -1, the batch is empty, or lists cannot be read.
pub fn access_probabilities(
    lists: &impl InLists,
    seeds: &[bool],
    fanouts: &[i64],
    batch: usize,
) -> Result<Vec<f32>> {
    check(lists.num_nodes(), seeds, fanouts, batch)?;
    let count = seeds.iter().filter(|&&seed| seed).count();
    let share = (batch as f64 / count.max(1) as f64).min(1.0) as f32;
    let mut met: Vec<f32> = seeds.iter().map(|&seed| if seed { share } else { 0.0 }).collect();
    // Logarithms of the probability of not being reached, at one hop and at all.
    let mut missed = vec![0.0; seeds.len()];
    let mut never: Vec<f32> = met.iter().map(|met| (-met).ln_1p()).collect();
    for &fanout in fanouts {
        missed.fill(0.0);
        expand(lists, fanout, &met, &mut missed)?;
        for ((met, never), &missed) in met.iter_mut().zip(&mut never).zip(&missed) {
            *never += missed;
            *met = complement(missed);
        }
    }
    Ok(never.into_iter().map(complement).collect())
}

/// Adds to `missed` the logarithm of the probability that nodes met before do not draw a node.
fn expand(lists: &impl InLists, fanout: i64, met: &[f32], missed: &mut [f32]) -> Result<()> {
    let nodes: Vec<u32> = (0..met.len() as u32).filter(|&v| met[v as usize] > 0.0).collect();
    lists.visit(&nodes, &mut |v, degree, sources| {
        let drawn = match fanout {
            -1 => 1.0,
            _ => (fanout as f32 / degree.max(1) as f32).min(1.0),
        };
        let log = (-drawn * met[v as usize]).ln_1p();
        sources.iter().try_for_each(|&source| {
            *of_source(missed, source)? += log;
            Ok(())
        })
    })
}

/// `1 - e^log`, exact for small probabilities too.
fn complement(log: f32) -> f32 {
    0.0 - log.exp_m1()
}

fn check(lists: usize, seeds: &[bool], fanouts: &[i64], batch: usize) -> Result<()> {
    if lists != seeds.len() {
        return Err(Error::invalid(format!(
            "expected {} in-neighbor lists, one per node with a seed mark; found {lists}",
            seeds.len()
        )));
    }
    if fanouts.is_empty() {
        return Err(Error::usage("access probabilities require at least one fan-out"));
    }
    if let Some(fanout) = fanouts.iter().find(|&&fanout| fanout != -1 && fanout < 1) {
        return Err(Error::usage(format!(
            "invalid fan-out '{fanout}': expected a positive number, or -1 for all"
        )));
    }
    if batch == 0 {
        return Err(Error::usage(
            "invalid batch size '0' of access probabilities: expected at least one seed",
        )
        .hint("give the number of seeds this rank takes in a step"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use gnarl_common::rng::Key;
    use gnarl_graph::Csc;

    fn near(found: &[f32], expected: &[f32], tolerance: f32) {
        assert_eq!(found.len(), expected.len());
        for (node, (f, e)) in found.iter().zip(expected).enumerate() {
            assert!((f - e).abs() <= tolerance, "node {node}: {f} is not {e}");
        }
    }

    #[test]
    fn a_small_case_agrees_with_paper_and_pencil() {
        // Seeds 0 and 1, one a batch. In-neighbors: 2 and 3 of 0, 3 of 1, 4 of 3; 5 is nobody's.
        let csc = Csc::from_edges(6, &[(2, 0), (3, 0), (3, 1), (4, 3), (0, 5)]);
        let seeds = [true, true, false, false, false, false];
        let found = access_probabilities(&csc, &seeds, &[1, 7], 1).unwrap();
        // Hop 1: 2 with 1/2 · 1/2, 3 with 1 - (1 - 1/4)(1 - 1/2); hop 2: 4 whenever 3 was met.
        near(&found, &[0.5, 0.5, 0.25, 0.625, 0.625, 0.0], 1e-6);
        let all = access_probabilities(&csc, &seeds, &[-1, -1], 9).unwrap();
        near(&all, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], 0.0);
    }

    /// Nodes read by one simulated batch, where each hop expands the nodes of the last one.
    fn read(csc: &Csc, seeds: &[u32], fanouts: &[i64], batch: usize, key: Key) -> BTreeSet<u32> {
        let mut order = seeds.to_vec();
        key.shuffle(&mut order);
        let mut hop: BTreeSet<u32> = order[..batch].iter().copied().collect();
        let mut all = hop.clone();
        for (k, &fanout) in fanouts.iter().enumerate() {
            let draw = |&v: &u32| {
                let mut list = csc.sources(v).to_vec();
                key.with(k as u64).with(u64::from(v)).shuffle(&mut list);
                list.truncate(fanout as usize);
                list
            };
            hop = hop.iter().flat_map(draw).collect();
            all.extend(&hop);
        }
        all
    }

    /// Three layers of 300 nodes, each node with four others of the next layer in its list: there
    /// are no short cycles, so nodes are met nearly independently.
    #[test]
    fn probabilities_are_near_simulated_frequencies() {
        let (key, batches) = (Key::new(5), 10_000);
        let next = |v: u32, j: u32| {
            (v / 300 + 1) * 300 + 4 * key.below(u64::from(4 * v + j), 75) as u32 + j
        };
        let edges: Vec<_> = (0..600).flat_map(|v| (0..4).map(move |j| (next(v, j), v))).collect();
        let csc = Csc::from_edges(900, &edges);
        let seeds = (0..300).collect::<Vec<u32>>();
        let fanouts = [3, 2];
        let batch = 15;
        let mut counts = vec![0.0; 900];
        for i in 0..batches {
            for v in read(&csc, &seeds, &fanouts, batch, Key::new(6).with(i)) {
                counts[v as usize] += 1.0 / batches as f32;
            }
        }
        let mask: Vec<bool> = (0..900).map(|v| v < 300).collect();
        let found = access_probabilities(&csc, &mask, &fanouts, batch).unwrap();
        near(&found, &counts, 0.02);
        let off = found.iter().zip(&counts).map(|(f, c)| (f - c).abs()).sum::<f32>() / 900.0;
        assert!(off < 0.004, "off by {off} in the mean");
    }

    /// Lists in two pieces each.
    struct Pieces(Csc);

    impl InLists for Pieces {
        fn num_nodes(&self) -> usize {
            self.0.num_dst()
        }

        fn visit(
            &self,
            nodes: &[u32],
            each: &mut dyn FnMut(u32, u32, &[u32]) -> Result<()>,
        ) -> Result<()> {
            self.0.visit(nodes, &mut |node, degree, sources| {
                let (first, last) = sources.split_at(sources.len() / 2);
                each(node, degree, first)?;
                each(node, degree, last)
            })
        }
    }

    #[test]
    fn lists_may_come_in_pieces() {
        let key = Key::new(3);
        let end = |c: u64| key.below(c, 60) as u32;
        let edges: Vec<_> = (0..900).map(|e| (end(2 * e), end(2 * e + 1))).collect();
        let csc = Csc::from_edges(60, &edges);
        let seeds: Vec<bool> = (0..60).map(|v| v % 7 == 0).collect();
        let whole = access_probabilities(&csc, &seeds, &[3, 2], 4).unwrap();
        let pieces = access_probabilities(&Pieces(csc), &seeds, &[3, 2], 4).unwrap();
        assert_eq!(whole, pieces);
    }

    #[test]
    fn what_cannot_be_scored_is_refused() {
        let csc = Csc::from_edges(2, &[(0, 1)]);
        let message = |seeds: &[bool], fanouts: &[i64], batch| {
            access_probabilities(&csc, seeds, fanouts, batch).unwrap_err().to_string()
        };
        assert!(message(&[true], &[2], 1).contains("found 2"));
        assert!(message(&[true, true], &[], 1).contains("fan-out"));
        assert!(message(&[true, true], &[0], 1).contains("fan-out '0'"));
        assert!(message(&[true, true], &[2], 0).contains("batch size '0'"));
        let none = access_probabilities(&csc, &[false, false], &[2], 1).unwrap();
        assert_eq!(none, [0.0, 0.0], "a rank without seeds reads nothing");
    }
}
