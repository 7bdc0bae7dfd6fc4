//! Evaluation: ranking metrics over all nodes as candidates, and classification metrics of edges
//! against pairs without an edge.

use std::collections::BTreeMap;
use std::ops::Range;

use gnarl_common::{Error, Kind, Result};
use gnarl_engine::Communicator;
use gnarl_graph::triples::Triples;
use gnarl_nn::decoders::{Groups, Rank, Ranker, Side, score};
use gnarl_nn::metrics::Ranks;
use gnarl_nn::{Params, Tensor};
use rayon::ThreadPool;

use super::among::Ranked;
use super::links::LinkPrediction;
use super::paired::Paired;
use super::{among, pairs};
use crate::embeddings::Rows;
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
        let all = |edges: &Triples| evaluator.ranks(edges, 0..edges.len());
        let mut found = evaluator.evaluation(&all(valid)?, &all(test)?);
        if links.encoded {
            found.valid.extend(evaluator.paired((valid, 0))?);
            found.test.extend(evaluator.paired((test, 1))?);
        }
        return Ok(found);
    }
    let (valid, test) = (evaluator.paired((valid, 0))?, evaluator.paired((test, 1))?);
    Ok(Evaluation { valid, test, ..Evaluation::default() })
}

/// Scores of the embeddings `rows` by all ranks together, each with its share of the edges. All
/// return the same.
///
/// # Errors
/// If a rank fails.
pub(super) fn together(
    links: &LinkPrediction,
    params: &Params,
    rows: Rows<'_>,
    comm: &dyn Communicator,
    pool: &ThreadPool,
) -> Result<Evaluation> {
    let evaluator = Evaluator { links, params, rows: rows.into_tensor() };
    let joined = |edges: &Triples| -> Result<Ranked> {
        let bound = |r: usize| edges.len() * r / comm.size();
        let share = bound(comm.rank())..bound(comm.rank() + 1);
        let own = pool.install(|| evaluator.ranks(edges, share))?;
        let all = comm.all_gather("evaluation: ranks", bytemuck::cast_slice(&own))?.concat();
        let joined: Ranked = bytemuck::pod_collect_to_vec(&all);
        if joined.len() == edges.len() {
            Ok(joined)
        } else {
            Err(Error::new(Kind::Rank, "a rank sent too few ranks of edges"))
        }
    };
    let nothing = Triples::default();
    let [valid, test] = links.scored(&nothing);
    Ok(evaluator.evaluation(&joined(valid)?, &joined(test)?))
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
    /// The ranks of some edges.
    ///
    /// # Errors
    /// If a part does not tell of known edges.
    fn ranks(&self, edges: &Triples, share: Range<usize>) -> Result<Ranked> {
        let edges = edges.at(&share.map(|edge| edge as u32).collect::<Vec<_>>());
        let memory = self.links.config.task.rank_memory.as_u64() as usize;
        let decoder = self.links.decoder.as_ref();
        let known = self.links.filtered()?;
        let ranker = Ranker::new(decoder, self.params, &self.rows, known, memory);
        let ends = &self.links.edges.endpoints;
        let ranker = ranker.among(ends.range(Side::Head), ends.range(Side::Tail));
        let [heads, tails] = Side::BOTH.map(|side| ranker.rank(side, &edges));
        Ok(heads.into_iter().zip(tails).map(|(head, tail)| [head, tail]).collect())
    }

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

    fn evaluation(&self, valid: &Ranked, test: &Ranked) -> Evaluation {
        Evaluation {
            valid: scores(valid),
            valid_loss: 0.0,
            test: scores(test),
            relations: relations(self.links, test),
            leakage: None,
        }
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
