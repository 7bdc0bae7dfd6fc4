//! The formulas.

use super::counts::{Counts, Degrees};

/// Replication factor, with full neighbour lists, of a random partition: exact in expectation.
///
/// A part other than v's own holds a copy of v if it owns one of the `d` nodes in whose lists v
/// stands; each is in that part with probability 1/p. So the expected copies of v are
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

/// Expected distinct nodes of `draws` from a share of the nodes, a node's chance being
/// proportional to its out-degree: `Σ_v share·(1 − exp(−draws·d_v / (share·E)))`.
fn distinct(draws: f64, share: f64, counts: &Counts) -> f64 {
    if share <= 0.0 {
        return 0.0;
    }
    let ends = share * counts.edges.max(1) as f64;
    share * counts.out_degrees.sum(|d| 1.0 - (-draws * d / ends).exp())
}

/// Neighbours drawn on average for a node: for one of all nodes, and for one found at the end of
/// an edge (more often a node of high degree, which symmetric graphs tell).
fn drawn(fanout: f64, counts: &Counts) -> (f64, f64) {
    let few = |d: f64| d.min(fanout);
    let uniform = counts.in_degrees.sum(few) / counts.nodes.max(1) as f64;
    let reached = counts.in_degrees.sum(|d| d * few(d)) / counts.edges.max(1) as f64;
    (uniform, if counts.symmetric { reached } else { uniform })
}

/// Feature rows fetched from other parts in an epoch of synchronous SGD with `fanouts` and
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
    let batch = if fanouts.batch == 0 { counts.train } else { fanouts.batch.min(counts.train) };
    let steps = (counts.train as f64 / batch as f64).ceil();
    let seeds = counts.train as f64 / steps / parts as f64;
    let (mut draws, mut elsewhere) = (0.0, 0.0);
    for (hop, &fanout) in fanouts.each.iter().enumerate() {
        let (of_seed, of_reached) = drawn(f64::from(fanout), counts);
        let more = seeds * of_seed + distinct(draws, 1.0, counts) * of_reached;
        let stays = (1.0 - cut / remote).clamp(0.0, 1.0).powi(hop as i32 + 1);
        draws += more;
        elsewhere += more * remote * (1.0 - stays);
    }
    steps * parts as f64 * distinct(elsewhere, remote, counts)
}

/// How neighbours are sampled.
#[derive(Debug, Clone, Copy)]
pub struct Fanouts<'a> {
    /// Neighbours of a node at each hop, from the seeds outwards.
    pub each: &'a [u32],
    /// Seeds of a step over all ranks; 0 takes all training nodes at once.
    pub batch: u64,
}

#[cfg(test)]
mod tests {
    use gnarl_graph::rng::Key;

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
        // One neighbour of every node: about 3/4 of 2500 draws a rank, hardly any twice.
        let few = epoch_rows(&counts, 4, 0.75, one);
        assert!((few / 7500.0 - 1.0).abs() < 0.15, "{few}");
    }
}
