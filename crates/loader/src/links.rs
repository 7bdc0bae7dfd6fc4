//! Neighborhoods of edges and their negatives.

use std::collections::HashSet;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_sample::{FrontierBatch, HeteroScratch};

use crate::batch::BatchLinks;
use crate::endpoints::{EdgeKind, Ends, LeftOut};
use crate::negatives::Negatives;
use crate::sampler::{NeighborSampler, Trees};

/// The neighborhood of the edges at `places`, whose endpoints are `ends`, in time as of `times`; the positions of these.
pub(crate) fn around(
    sampler: &NeighborSampler,
    of: EdgeKind,
    (places, ends, times): (&[u32], &Ends, Option<&[i64]>),
    key: Key,
    scratch: &mut HeteroScratch,
) -> Result<(FrontierBatch, BatchLinks)> {
    let (found, links) = match sampler.is_disjoint() {
        true => disjoint(sampler, of, (places, ends), times, key, scratch)?,
        false => shared(sampler, of, ends, key, scratch)?,
    };
    let mut found = found;
    let Some(left_out) = of.left_out else { return Ok((sampler.finished(found), links)) };
    // Before they get reverses, and again: the reverse of another edge may be the same pair.
    leave_out(&mut found, left_out, ends);
    let mut found = sampler.finished(found);
    leave_out(&mut found, left_out, ends);
    Ok((found, links))
}

/// A neighborhood in which endpoints that are equal share a node.
fn shared(
    sampler: &NeighborSampler,
    of: EdgeKind,
    ends: &Ends,
    key: Key,
    scratch: &mut HeteroScratch,
) -> Result<(FrontierBatch, BatchLinks)> {
    let src = of.source_type;
    let dst = of.destination_type;
    let from: [&[u32]; 2] = [&ends.sources, &ends.negative_sources];
    let to: [&[u32]; 2] = [&ends.destinations, &ends.negative_destinations];
    let trees = Trees { names: &[], times: None };
    let (found, of_sources, of_destinations) = if src == dst {
        let (all, mut positions) = distinct(&[from[0], from[1], to[0], to[1]]);
        let of_destinations = positions.split_off(2);
        (sampler.around(&[(src, &all)], trees, key, scratch)?, positions, of_destinations)
    } else {
        let (sources, of_sources) = distinct(&from);
        let (destinations, of_destinations) = distinct(&to);
        let seeds: [(usize, &[u32]); 2] = [(src, &sources), (dst, &destinations)];
        (sampler.around(&seeds, trees, key, scratch)?, of_sources, of_destinations)
    };
    let mut of_sources = of_sources.into_iter();
    let mut of_destinations = of_destinations.into_iter();
    let links = BatchLinks {
        sources: of_sources.next().unwrap_or_default(),
        negative_sources: of_sources.next().unwrap_or_default(),
        destinations: of_destinations.next().unwrap_or_default(),
        negative_destinations: of_destinations.next().unwrap_or_default(),
    };
    Ok((found, links))
}

/// Removes the edges of a batch from its neighborhood. Nodes that they reached stay.
fn leave_out(found: &mut FrontierBatch, of: LeftOut, ends: &Ends) {
    let known: HashSet<(u32, u32)> =
        ends.sources.iter().copied().zip(ends.destinations.iter().copied()).collect();
    let FrontierBatch { schema, nodes, edges, .. } = found;
    for (edge_type, own) in edges.iter_mut().enumerate() {
        let forwards = edge_type == of.edge_type;
        let backwards = Some(edge_type) == of.reversed;
        if !forwards && !backwards {
            continue;
        }
        let (src, dst) = schema.ends(edge_type);
        let is_kept = |(&source, &destination): (&u32, &u32)| {
            let source = nodes[src][source as usize];
            let destination = nodes[dst][destination as usize];
            !(forwards && known.contains(&(source, destination))
                || backwards && known.contains(&(destination, source)))
        };
        let kept: Vec<bool> = own.sources.iter().zip(&own.destinations).map(is_kept).collect();
        let mut first = 0;
        for count in &mut own.of_hop {
            let drawn = *count;
            *count = kept[first..first + drawn].iter().filter(|&&kept| kept).count();
            first += drawn;
        }
        keep(&mut own.sources, &kept);
        keep(&mut own.destinations, &kept);
        keep(&mut own.rows, &kept);
        if let Some(weights) = &mut own.weights {
            keep(weights, &kept);
        }
    }
}

/// Keeps the values of some places; there may be none at all.
fn keep<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut each = kept.iter();
    values.retain(|_| each.next().copied().unwrap_or(true));
}

/// A neighborhood in which each endpoint has nodes of its own. Trees of an edge, its endpoints and its negatives have the
/// number of the edge, as PyTorch Geometric tells them.
fn disjoint(
    sampler: &NeighborSampler,
    of: EdgeKind,
    (places, ends): (&[u32], &Ends),
    times: Option<&[i64]>,
    key: Key,
    scratch: &mut HeteroScratch,
) -> Result<(FrontierBatch, BatchLinks)> {
    let src = of.source_type;
    let dst = of.destination_type;
    let count = places.len();
    // Negatives come round by round.
    let rounds = by_round(of.negatives, ends.negative_destinations.len(), count);
    let mut sources = ends.sources.clone();
    sources.extend_from_slice(&ends.negative_sources);
    let mut destinations = ends.destinations.clone();
    destinations.extend(rounds.iter().map(|&negative| ends.negative_destinations[negative]));
    // Of each root the edge that it belongs to, and its number among the roots of that edge.
    let own = |end: u64| (0..count).map(move |edge| (edge, end));
    let negatives = |end: u64, some: usize| {
        let all = rounds[..some].iter();
        all.map(move |&negative| {
            let (edge, round) = of.negatives.example(negative, count);
            (edge, 2 + 2 * round as u64 + end)
        })
    };
    let roots: Vec<(usize, u64)> = own(0)
        .chain(negatives(0, ends.negative_sources.len()))
        .chain(own(1))
        .chain(negatives(1, rounds.len()))
        .collect();
    let names: Vec<u64> =
        roots.iter().map(|&(edge, root)| u64::from(places[edge]) << 32 | root).collect();
    let root_times: Option<Vec<i64>> =
        times.map(|times| roots.iter().map(|&(edge, _)| times[edge]).collect());
    let trees = Trees { names: &names, times: root_times.as_deref() };
    let first = sources.len();
    let mut found = if src == dst {
        sources.append(&mut destinations);
        sampler.around(&[(src, &sources)], trees, key, scratch)?
    } else {
        sampler.around(&[(src, &sources), (dst, &destinations)], trees, key, scratch)?
    };
    for trees in found.trees.iter_mut().flatten() {
        trees.iter_mut().for_each(|tree| *tree = roots[*tree as usize].0 as u32);
    }
    let offset = if src == dst { first as i64 } else { 0 };
    let mut negative_destinations = vec![0; rounds.len()];
    for (at, &negative) in rounds.iter().enumerate() {
        negative_destinations[negative] = offset + (count + at) as i64;
    }
    let links = BatchLinks {
        sources: (0..count as i64).collect(),
        negative_sources: (count as i64..first as i64).collect(),
        destinations: (offset..offset + count as i64).collect(),
        negative_destinations,
    };
    Ok((found, links))
}

/// The numbers of negatives, those that are the first of their edge before the second.
fn by_round(negatives: Negatives, count: usize, edges: usize) -> Vec<usize> {
    match negatives {
        Negatives::Destinations(each) => {
            (0..each).flat_map(|round| (0..edges).map(move |edge| edge * each + round)).collect()
        }
        _ => (0..count).collect(),
    }
}

/// Distinct nodes, ascending, and the position of each of several lists among them.
pub(crate) fn distinct(lists: &[&[u32]]) -> (Vec<u32>, Vec<Vec<i64>>) {
    let mut all: Vec<u32> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let place = |node: &u32| all.partition_point(|known| known < node) as i64;
    let places = lists.iter().map(|list| list.iter().map(place).collect()).collect();
    (all, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_have_distinct_ones_in_order() {
        let (all, places) = distinct(&[&[7, 3, 7], &[9], &[]]);
        assert_eq!((all, places), (vec![3, 7, 9], vec![vec![1, 0, 1], vec![2], vec![]]));
    }

    #[test]
    fn negatives_of_a_round_are_together() {
        assert_eq!(by_round(Negatives::Destinations(3), 6, 2), [0, 3, 1, 4, 2, 5]);
        assert_eq!(by_round(Negatives::Pairs(1.5), 3, 2), [0, 1, 2]);
    }
}
