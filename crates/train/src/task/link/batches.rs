//! Batches of edges and their negatives.

use gnarl_config::Sides;
use gnarl_nn::decoders::{Candidates, Groups, LinkBatch, Side};
use gnarl_sample::negatives::Positives;

use super::links::LinkPrediction;
use crate::data::batch::BatchSpec;
use crate::task::numbers::Numbers;

/// Edges and candidates, with the nodes that they index.
pub(super) struct LinkExamples {
    pub batch: LinkBatch,
    /// Distinct nodes, those of the tails' type numbered after those of the heads'.
    pub ids: Vec<u32>,
}

/// Draws this rank's examples of a batch, perhaps none.
pub(super) fn draw(links: &LinkPrediction, spec: &BatchSpec) -> LinkExamples {
    let mut numbers = Numbers::default();
    if spec.share.is_empty() {
        let [heads, relations, tails] = [const { Vec::new() }; 3];
        let batch = LinkBatch { heads, relations, tails, negatives: Vec::new() };
        return LinkExamples { batch, ids: numbers.ids };
    }
    let triples = links.edges.train.at(&spec.batch);
    let share = spec.share.clone();
    let positives = Positives { triples: &triples, places: &spec.batch, share: share.clone() };
    let heads = numbers.of(&triples.heads[share.clone()]);
    let tails = numbers.of(&triples.tails[share.clone()]);
    let mut negatives = Vec::new();
    for &side in sides(links.config.negatives.sides) {
        let drawn = links.negatives().draw(&positives, side, spec.key);
        let candidates = Candidates {
            rows: numbers.of(&drawn.ids),
            groups: Groups::new(drawn.groups, drawn.count),
            masked: drawn.masked,
        };
        negatives.push((side, candidates));
    }
    let relations = triples.relations[share].to_vec();
    LinkExamples { batch: LinkBatch { heads, relations, tails, negatives }, ids: numbers.ids }
}

/// Sides that negatives replace.
fn sides(sides: Sides) -> &'static [Side] {
    match sides {
        Sides::Both => &Side::BOTH,
        Sides::Head => &[Side::Head],
        Sides::Tail => &[Side::Tail],
    }
}
