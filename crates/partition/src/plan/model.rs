//! The formulas.

use super::batches::{Batches, Fanouts, Within, distinct};
use super::counts::{Counts, Degrees};

/// Replication factor, with full neighbor lists, of a random partition: exact in expectation.
///
/// A part other than v's own holds a halo copy of v if it owns one of the `d` nodes in whose lists
/// v occurs; each is in that part with probability 1/p. So the expected number of copies of v is
/// `(p − 1)(1 − (1 − 1/p)^d)`. Repeated edges count as separate draws.
pub(super) fn random_replication(out_degrees: &Degrees, nodes: u64, parts: usize) -> f64 {
    let p = parts as f64;
    let copies = out_degrees.sum(|d| (p - 1.0) * (1.0 - (1.0 - 1.0 / p).powf(d)));
    1.0 + copies / nodes.max(1) as f64
}

/// Expected edge cut of a random partition: exact but for self loops.
pub(super) fn random_cut(parts: usize) -> f64 {
    1.0 - 1.0 / parts as f64
}

/// Features fetched from other parts in an epoch of synchronous SGD with `fanouts` and
/// `batch` seeds a step over all ranks, one rank a part. A model, not a bound:
///
/// * seeds are in the rank's own part; a hop along a cut edge leads to another, so that after h
///   hops a node is elsewhere with probability `r·(1 − (1 − cut/r)^h)`, r = 1 − 1/p;
/// * draws hit nodes in proportion to their degree, and a row is fetched once a step.
pub(super) fn epoch_rows(counts: &Counts, parts: usize, cut: f64, fanouts: Fanouts<'_>) -> f64 {
    let remote = random_cut(parts);
    if parts < 2 || counts.train == 0 {
        return 0.0;
    }
    let batches = Batches::expect(counts, parts, Within::ALL, fanouts);
    let mut elsewhere = 0.0;
    for (hop, edges) in batches.edges.iter().enumerate() {
        let stays = (1.0 - cut / remote).clamp(0.0, 1.0).powi(hop as i32 + 1);
        elsewhere += edges * remote * (1.0 - stays);
    }
    batches.steps as f64 * parts as f64 * distinct(elsewhere, remote, counts)
}

#[cfg(test)]
mod tests {
    use gnarl_common::rng::Key;

    use super::*;

    fn regular(nodes: u64, degree: u64) -> Counts {
        let degrees: Degrees = (0..nodes).map(|_| degree).collect();
        Counts {
            nodes,
            edges: nodes * degree,
            train: nodes,
            row_bytes: 4.0,
            symmetric: true,
            in_degrees: degrees.clone(),
            out_degrees: degrees,
        }
    }

    #[test]
    fn random_replication_is_what_random_parts_have() {
        let (nodes, parts) = (4000u64, 8usize);
        let key = Key::new(1);
        let part = |v: u64| key.with(1).below(v, parts as u64);
        let mut copies = 0;
        let degree = |v: u64| v % 13;
        for v in 0..nodes {
            let others = (0..degree(v)).map(|i| part(key.with(2).below(16 * v + i, nodes)));
            let mut held: Vec<u64> = others.filter(|&p| p != part(v)).collect();
            held.sort_unstable();
            held.dedup();
            copies += held.len();
        }
        let measured = 1.0 + copies as f64 / nodes as f64;
        let degrees: Degrees = (0..nodes).map(degree).collect();
        let expected = random_replication(&degrees, nodes, parts);
        assert!((measured / expected - 1.0).abs() < 0.02, "{measured} for {expected}");
        assert_eq!(random_replication(&degrees, nodes, 1), 1.0);
    }

    #[test]
    fn batches_never_hold_more_than_the_graph() {
        let counts = regular(10_000, 20);
        let fanouts = Fanouts { each: &[10, u32::MAX, u32::MAX], batch: 1000 };
        let batches = Batches::expect(&counts, 2, Within::ALL, fanouts);
        assert_eq!((batches.steps, batches.nodes[0]), (10, 500.0));
        assert!((batches.edges[0] - 5000.0).abs() < 1e-6, "{batches:?}");
        // 5000 draws from 10 000 nodes hit 3935 of them, hardly any of the seeds.
        assert!((batches.nodes[1] - (500.0 + 0.95 * 3934.7)).abs() < 1.0, "{batches:?}");
        assert!((batches.edges[1] / batches.nodes[1] - 20.0).abs() < 1e-9, "{batches:?}");
        assert!(batches.nodes[3] <= 10_000.0 && batches.edges[2] <= 200_000.0, "{batches:?}");
        assert_eq!(Batches::expect(&regular(0, 0), 1, Within::ALL, fanouts).steps, 0);
    }

    #[test]
    fn fetched_rows_follow_the_cut() {
        let counts = regular(10_000, 20);
        let fanouts = Fanouts { each: &[10, 5], batch: 1000 };
        let rows = |parts, cut| epoch_rows(&counts, parts, cut, fanouts);
        assert_eq!(rows(1, 0.0), 0.0);
        assert_eq!(rows(4, 0.0), 0.0);
        assert!(rows(4, 0.1) < rows(4, 0.3) && rows(4, 0.3) < rows(4, 0.75));
        // No step can fetch more than all nodes of other parts, on every rank.
        assert!(rows(4, 0.75) <= 10.0 * 4.0 * 7500.0);
        let one = Fanouts { each: &[1], batch: 0 };
        // One neighbor of every node: about 3/4 of 2500 draws a rank, hardly any twice.
        let few = epoch_rows(&counts, 4, 0.75, one);
        assert!((few / 7500.0 - 1.0).abs() < 0.15, "{few}");
    }
}
