//! Evaluation: ranking metrics over all nodes as candidates, and classification metrics of edges
//! against pairs without an edge.

use std::collections::BTreeMap;

use gnarl_common::Result;
use gnarl_graph::triples::Triples;
use gnarl_nn::decoders::{Groups, Rank, Side, score};
use gnarl_nn::metrics::Ranks;
use gnarl_nn::{Params, Tensor};

use super::among::Ranked;
use super::candidates::{Candidates, Everywhere};
use super::links::LinkPrediction;
use super::paired::Paired;
use super::{among, candidates, pairs};
use crate::evaluation::{Evaluation, RelationScores, Scores};

/// Ranking metrics over all nodes; the first is the default of a run without an encoder.
pub(super) const RANKED: [&str; 5] = ["mrr", "mrr_raw", "hits@1", "hits@3", "hits@10"];

/// Edges scored together.
const EDGES: usize = 1 << 14;

/// Scores of the embeddings of all nodes, those of the tails' type after those of the heads', on the rayon pool this is
/// called from.
///
/// # Errors
/// If a metric is unknown.
pub(super) fn of_embeddings(
    links: &LinkPrediction,
    params: &Params,
    rows: Tensor,
) -> Result<Evaluation> {
    let evaluator = Evaluator { links, params, rows };
    let nothing = Triples::default();
    let [valid, test] = links.scored(&nothing);
    let candidates = links.config.evaluate.candidates;
    if links.encoded && candidates > 0 {
        let score = &mut |asked: &Paired| Ok(evaluator.scores(&asked.all));
        let ranks =
            [among::ranks(links, (valid, 0), score)?, among::ranks(links, (test, 1), score)?];
        let mut found = of_ranks(links, &ranks);
        found.valid.extend(evaluator.paired((valid, 0))?);
        found.test.extend(evaluator.paired((test, 1))?);
        return Ok(found);
    }
    if !links.encoded || RANKED.contains(&links.metric.as_str()) {
        let mut found = among_all(links, params, &Everywhere::of(&evaluator.rows))?;
        if links.encoded {
            found.valid.extend(evaluator.paired((valid, 0))?);
            found.test.extend(evaluator.paired((test, 1))?);
        }
        return Ok(found);
    }
    let (valid, test) = (evaluator.paired((valid, 0))?, evaluator.paired((test, 1))?);
    Ok(Evaluation { valid, test, ..Evaluation::default() })
}

/// Scores among all nodes, on the rayon pool this is called from. All ranks that have candidates call it, and return the
/// same.
///
/// # Errors
/// If a part does not tell of known edges, or a rank fails.
pub(super) fn among_all(
    links: &LinkPrediction,
    params: &Params,
    nodes: &dyn Candidates,
) -> Result<Evaluation> {
    let nothing = Triples::default();
    let [valid, test] = links.scored(&nothing);
    let ranks = |edges| candidates::ranks(links, params, nodes, edges);
    let (valid, test) = (ranks(valid)?, ranks(test)?);
    Ok(Evaluation {
        valid: scores(&valid),
        valid_loss: 0.0,
        test: scores(&test),
        relations: relations(links, &test),
        leakage: None,
        ..Evaluation::default()
    })
}

/// The evaluation of ranks of validation and of test edges among drawn candidates, which are filtered.
pub(super) fn of_ranks(links: &LinkPrediction, [valid, test]: &[Ranked; 2]) -> Evaluation {
    let filtered = |ranks| {
        let mut scores = scores(ranks);
        scores.remove("mrr_raw");
        scores
    };
    Evaluation {
        valid: filtered(valid),
        test: filtered(test),
        relations: relations(links, test),
        ..Evaluation::default()
    }
}

struct Evaluator<'a> {
    links: &'a LinkPrediction,
    params: &'a Params,
    rows: Tensor,
}

impl Evaluator<'_> {
    /// Scores of the edges of a split, 0 for validation, against pairs without an edge.
    fn paired(&self, split: (&Triples, usize)) -> Result<Scores> {
        pairs::scores(self.links, split, |paired| Ok(self.scores(&paired.all)))
    }

    /// The score of each edge.
    fn scores(&self, edges: &Triples) -> Vec<f32> {
        let decoder = self.links.decoder.as_ref();
        let mut out = Vec::with_capacity(edges.len());
        for start in (0..edges.len()).step_by(EDGES) {
            let range = start..edges.len().min(start + EDGES);
            let gather = |ends: &[u32]| {
                let mut rows = Tensor::scratch(range.len(), self.rows.cols());
                let width = self.rows.cols();
                for (row, &node) in
                    rows.data_mut().chunks_exact_mut(width).zip(&ends[range.clone()])
                {
                    row.copy_from_slice(self.rows.row(node as usize));
                }
                rows
            };
            let (heads, tails) = (gather(&edges.heads), gather(&edges.tails));
            let relations = &edges.relations[range.clone()];
            let query = decoder.query(self.params, Side::Tail, &heads, relations);
            let candidates = decoder.candidate(self.params, Side::Tail, &tails);
            let groups = Groups::each(range.len(), 1);
            let found = score(decoder.similarity(self.params), &query, &candidates, &groups);
            out.extend_from_slice(found.data());
        }
        out
    }
}

/// The table by relation, the most frequent first.
fn relations(links: &LinkPrediction, test: &Ranked) -> Vec<RelationScores> {
    let mut by: BTreeMap<u32, Ranked> = BTreeMap::new();
    for (&relation, &ranks) in links.edges.test.relations.iter().zip(test) {
        by.entry(relation).or_default().push(ranks);
    }
    let row = |(&relation, ranks): (&u32, &Ranked)| {
        let both = filtered(ranks.as_flattened());
        let side = |side: usize| Ranks::of(ranks.iter().map(|pair| pair[side].filtered)).mrr();
        RelationScores {
            relation: links.edges.name(relation),
            edges: ranks.len(),
            mrr: both.mrr(),
            hits_1: both.hits(1),
            hits_10: both.hits(10),
            sides: [side(0), side(1)],
        }
    };
    let mut rows: Vec<_> = by.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.edges));
    rows
}

fn filtered(ranks: &[Rank]) -> Ranks {
    Ranks::of(ranks.iter().map(|rank| rank.filtered))
}

/// The scores of both sides together; empty without edges.
fn scores(ranks: &Ranked) -> Scores {
    if ranks.is_empty() {
        return Scores::new();
    }
    let ranks = ranks.as_flattened();
    let (filtered, raw) = (filtered(ranks), Ranks::of(ranks.iter().map(|rank| rank.raw)));
    let mut scores = Scores::from([("mrr".into(), filtered.mrr()), ("mrr_raw".into(), raw.mrr())]);
    scores.extend([1, 3, 10].map(|k| (format!("hits@{k}"), filtered.hits(k))));
    scores
}
