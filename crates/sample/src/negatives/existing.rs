//! Nodes that are there at the time of an edge, drawn anew for each edge.

use gnarl_common::rng::Key;
use gnarl_graph::triples::Side;

use super::{Drawn, NegativeSampler, Positives};

/// Nodes whose time is not after the edge's, drawn uniformly, with repetition, `count` per edge; the earliest node where
/// none is there yet.
pub struct Existing {
    /// Nodes by time.
    order: Vec<u32>,
    /// The time of each of them.
    times: Vec<i64>,
    count: usize,
}

impl Existing {
    /// Draws `count` of the nodes with these times.
    pub fn new(times: &[i64], count: usize) -> Self {
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        order.sort_by_key(|&node| times[node as usize]);
        let times = order.iter().map(|&node| times[node as usize]).collect();
        Self { order, times, count }
    }

    /// Number of nodes to draw among at a time: the first ones.
    fn there(&self, time: i64) -> u64 {
        self.times.partition_point(|&other| other <= time).max(1) as u64
    }
}

impl NegativeSampler for Existing {
    fn name(&self) -> &'static str {
        "existing"
    }

    fn choose(&self, batch: &Positives<'_>, _: Side, key: Key) -> Drawn {
        let own = batch.places[batch.share.clone()].iter().zip(&batch.times[batch.share.clone()]);
        let of = |(&edge, &time): (&u32, &i64)| {
            let (key, there) = (key.with(edge.into()), self.there(time));
            (0..self.count as u64).map(move |i| self.order[key.below(i, there) as usize])
        };
        let ids = own.flat_map(of).collect();
        let groups = (0..batch.share.len() as u32).collect();
        Drawn { ids, count: self.count, groups, masked: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::triples::Triples;

    #[test]
    fn candidates_are_there_at_the_time_of_their_edge() {
        let node_times: Vec<i64> = (0..100).map(|node| (node * 37) % 100).collect();
        let sampler = Existing::new(&node_times, 300);
        let mut triples = Triples::default();
        (0..4).for_each(|i| triples.push(i, 0, 50 + i));
        let (places, times) = ([7, 8, 9, 10], [99, 50, 0, -5]);
        let of = |share| {
            let batch = Positives { triples: &triples, places: &places, times: &times, share };
            sampler.draw(&batch, Side::Tail, Key::new(3))
        };
        let all = of(0..4);
        for (edge, &time) in times.iter().enumerate() {
            let ids = all.of(edge);
            assert!(
                ids.iter().all(|&id| node_times[id as usize] <= time.max(0)),
                "{time}: {ids:?}"
            );
        }
        let distinct: std::collections::HashSet<u32> = all.of(1).iter().copied().collect();
        assert!(distinct.len() > 45, "{} of 51", distinct.len());
        assert_eq!(of(1..3).of(0), all.of(1), "whatever the share");
    }
}
