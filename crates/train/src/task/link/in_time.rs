//! Evaluation as of the times of edges.

use gnarl_common::Result;
use gnarl_engine::Communicator;
use gnarl_graph::triples::Triples;
use gnarl_nn::{Params, Tensor};

use super::links::LinkPrediction;
use super::paired::Paired;
use super::{among, pairs, ranking};
use crate::embeddings::Rows;
use crate::encoder::Encoder;
use crate::evaluation::{Evaluation, Forwards, by_shares};
use crate::task::ends::embeddings_before;
use crate::task::{EdgeBatch, EdgeScores};

/// Edges whose endpoints are embedded together.
const EDGES: usize = 1 << 14;

/// Scores of held-out edges against pairs without an edge, each pair as of the time of its edge, on the rayon pool this is
/// called from: by this rank, or by all of `comm` together.
///
/// # Errors
/// If shapes disagree, features cannot be read, or a rank fails.
pub(super) fn evaluate<E: Encoder>(
    links: &LinkPrediction,
    forwards: &Forwards<'_, E>,
    weights: (&Params, &[Rows<'_>]),
    comm: Option<&dyn Communicator>,
) -> Result<Evaluation> {
    let nothing = Triples::default();
    let splits = links.scored(&nothing);
    let of = |split: usize| {
        pairs::scores(links, (splits[split], split), |paired| {
            scores(links, forwards, weights, (paired, &links.edges.times[split]), comm)
        })
    };
    let mut found = Evaluation::default();
    if links.config.evaluate.candidates > 0 {
        let ranks = |split: usize| {
            let times = &links.edges.times[split];
            let mut start = 0;
            among::ranks(links, (splits[split], split), &mut |asked| {
                let count = asked.all.len() - asked.of.len();
                start += count;
                scores(links, forwards, weights, (asked, &times[start - count..start]), comm)
            })
        };
        found = ranking::of_ranks(links, &[ranks(0)?, ranks(1)?]);
    }
    found.valid.extend(of(0)?);
    found.test.extend(of(1)?);
    Ok(found)
}

/// The score of each of some edges and pairs; `times` are those of the edges.
fn scores<E: Encoder>(
    links: &LinkPrediction,
    forwards: &Forwards<'_, E>,
    weights: (&Params, &[Rows<'_>]),
    (paired, times): (&Paired, &[i64]),
    comm: Option<&dyn Communicator>,
) -> Result<Vec<f32>> {
    let two_types = links.edges.endpoints.are_two_types();
    let edges = 0..times.len() as u32;
    let of: Vec<u32> = edges.chain(paired.of.iter().copied()).collect();
    let found = by_shares(comm, of.len(), |own| {
        let mut out = Vec::with_capacity(own.len());
        for start in own.clone().step_by(EDGES) {
            let places: Vec<u32> = (start..own.end.min(start + EDGES)).map(|i| i as u32).collect();
            let edges = links.edges.endpoints.in_dataset(paired.all.at(&places));
            let at = &of[start..start + places.len()];
            let times: Vec<i64> = at.iter().map(|&edge| times[edge as usize]).collect();
            let ends = embeddings_before(forwards, weights, (&edges, &times), two_types)?;
            let batch = EdgeBatch { edges, ..EdgeBatch::default() };
            out.extend_from_slice(links.score(weights.0, ends, &batch)?.data());
        }
        Ok(Tensor::from_vec(own.len(), 1, out))
    })?;
    Ok(found.data().to_vec())
}
