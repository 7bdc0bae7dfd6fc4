//! Batches of edges and their negatives.

use gnarl_common::Result;
use gnarl_config::Sides;
use gnarl_nn::decoders::{Candidates, Groups, LinkBatch, Side};
use gnarl_sample::negatives::{Drawn, Positives};

use super::links::{LinkPrediction, queries_of};
use super::negatives;
use crate::data::batch::BatchSpec;
use crate::data::resident::NodesInMemory;
use crate::data::target_edges::TargetBatch;
use crate::task::ends::before;
use crate::task::numbers::Numbers;

/// Edges and candidates, with the nodes that they index.
pub(super) struct LinkExamples {
    pub batch: LinkBatch,
    /// Distinct nodes, those of the tails' type numbered after those of the heads'.
    pub ids: Vec<u32>,
    /// The time of each; empty if neighbors are not sampled by time.
    pub times: Vec<i64>,
}

/// Draws this rank's examples of a batch, perhaps none; negatives among the nodes `there`, where not all are.
///
/// # Errors
/// If a part does not reply.
pub(super) fn draw(
    links: &LinkPrediction,
    spec: &BatchSpec,
    (found, there): (&TargetBatch, Option<&NodesInMemory>),
) -> Result<LinkExamples> {
    let mut numbers = Numbers::default();
    if found.share.is_empty() {
        let [heads, relations, tails] = [const { Vec::new() }; 3];
        let batch = LinkBatch { heads, relations, tails, negatives: Vec::new() };
        return Ok(LinkExamples { batch, ids: numbers.ids, times: numbers.times });
    }
    let own = found.own();
    let positives = Positives {
        triples: &found.edges,
        places: &found.places,
        times: &found.times,
        share: found.share.clone(),
    };
    let times = before(found.own_times());
    let heads = numbers.at(&own.heads, &times);
    let tails = numbers.at(&own.tails, &times);
    let sides = sides(links.config.negatives.sides);
    let known = match links.config.negatives.filtered {
        false => None,
        true => {
            let queries = sides.iter().flat_map(|&side| queries_of(&own, side));
            Some(links.known.training(&queries.collect::<Vec<_>>())?)
        }
    };
    let mut negatives = Vec::new();
    for &side in sides {
        let mut drawn = match there {
            Some(there) => negatives::in_memory(links, there)?.draw(&positives, side, spec.key),
            None => links.negatives().draw(&positives, side, spec.key),
        };
        if let Some(known) = &known {
            drawn.mask_known(&positives, side, known);
        }
        let candidates = Candidates {
            rows: numbers.at(&drawn.ids, &of_candidates(&drawn, &times)),
            groups: Groups::new(drawn.groups, drawn.count),
            masked: drawn.masked,
        };
        negatives.push((side, candidates));
    }
    let batch = LinkBatch { heads, relations: own.relations, tails, negatives };
    let Numbers { ids, times: at, .. } = numbers;
    let times = if times.is_empty() { Vec::new() } else { at };
    Ok(LinkExamples { batch, ids, times })
}

/// The time of each candidate, that of its edge: no two edges share candidates if there are `times`.
fn of_candidates(drawn: &Drawn, times: &[i64]) -> Vec<i64> {
    if times.is_empty() {
        return Vec::new();
    }
    let mut of = vec![0; drawn.ids.len()];
    for (&group, &time) in drawn.groups.iter().zip(times) {
        of[group as usize * drawn.count..][..drawn.count].fill(time);
    }
    of
}

/// Sides that negatives replace.
fn sides(sides: Sides) -> &'static [Side] {
    match sides {
        Sides::Both => &Side::BOTH,
        Sides::Head => &[Side::Head],
        Sides::Tail => &[Side::Tail],
    }
}
