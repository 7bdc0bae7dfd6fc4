//! The endpoints of edges as seeds.

use gnarl_common::Result;
use gnarl_graph::triples::Triples;
use gnarl_nn::{Params, Tensor};

use super::numbers::Numbers;
use crate::data::seeds::Seeds;
use crate::embeddings::Rows;
use crate::encoder::Encoder;
use crate::evaluation::Forwards;

/// Distinct endpoints of edges.
pub(super) struct Ends {
    /// By node type, if endpoints are of two.
    pub seeds: Seeds,
    /// The indices of heads and of tails among the seeds, those of the second type after those of the first.
    pub numbers: [Vec<u32>; 2],
}

/// The times that edges are predicted as of: an edge hears what is before it, and neither itself nor others of its time.
pub(super) fn before(times: &[i64]) -> Vec<i64> {
    times.iter().map(|time| time.saturating_sub(1)).collect()
}

/// The endpoints of `edges`, of one node type or of two, before the `times` of the edges if there are some.
pub(super) fn ends(edges: &Triples, times: &[i64], two_types: bool) -> Ends {
    let times = before(times);
    let mut first = Numbers::default();
    let heads = first.at(&edges.heads, &times);
    if !two_types {
        let tails = first.at(&edges.tails, &times);
        let (nodes, at) = (vec![first.ids], vec![first.times]);
        let times = if times.is_empty() { Vec::new() } else { at };
        return Ends { seeds: Seeds { nodes, times }, numbers: [heads, tails] };
    }
    let count = first.ids.len() as u32;
    let mut second = Numbers::default();
    let tails = second.at(&edges.tails, &times).into_iter().map(|tail| count + tail).collect();
    let (nodes, at) = (vec![first.ids, second.ids], vec![first.times, second.times]);
    let times = if times.is_empty() { Vec::new() } else { at };
    Ends { seeds: Seeds { nodes, times }, numbers: [heads, tails] }
}

/// Embeddings of the heads and of the tails of `edges` before their `times`.
///
/// # Errors
/// If shapes disagree, or features cannot be read.
pub(crate) fn embeddings_before<E: Encoder>(
    forwards: &Forwards<'_, E>,
    weights: (&Params, &[Rows<'_>]),
    (edges, times): (&Triples, &[i64]),
    two_types: bool,
) -> Result<[Tensor; 2]> {
    let Ends { seeds, numbers } = ends(edges, times, two_types);
    let rows = forwards.of_seeds(weights, &seeds)?;
    Ok(numbers.map(|numbers| {
        let mut out = Tensor::scratch(numbers.len(), rows.cols());
        let each = out.data_mut().chunks_exact_mut(rows.cols().max(1)).zip(&numbers);
        each.for_each(|(to, &number)| to.copy_from_slice(rows.row(number as usize)));
        out
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges() -> Triples {
        let mut edges = Triples::default();
        edges.push(3, 0, 5);
        edges.push(3, 0, 3);
        edges.push(5, 0, 3);
        edges
    }

    #[test]
    fn endpoints_are_seeds_once_each() {
        let one = ends(&edges(), &[], false);
        assert_eq!(
            (one.seeds.nodes, one.numbers),
            (vec![vec![3, 5]], [vec![0, 0, 1], vec![1, 0, 0]])
        );
        let two = ends(&edges(), &[], true);
        assert_eq!(two.seeds.nodes, [[3, 5], [5, 3]]);
        assert_eq!(two.numbers, [vec![0, 0, 1], vec![2, 3, 3]]);
        assert!(two.seeds.times.is_empty());
    }

    #[test]
    fn endpoints_at_several_times_are_several_seeds_before_them() {
        let one = ends(&edges(), &[8, 9, i64::MIN], false);
        assert_eq!(one.seeds.nodes, [[3, 3, 5, 5, 3]]);
        assert_eq!(one.seeds.times, [[7, 8, i64::MIN, 7, i64::MIN]]);
        assert_eq!(one.numbers, [vec![0, 1, 2], vec![3, 1, 4]]);
    }
}
