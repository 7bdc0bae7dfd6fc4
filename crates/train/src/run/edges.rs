//! Scores of edges, and ranked candidates, of a trained run.

use gnarl_common::{Error, Result};
use gnarl_graph::triples::{Side, Triples};
use gnarl_graph::{EdgeChunk, EdgeStream, Triple};
use gnarl_infer::rows::{After, Before};
use gnarl_infer::{Figures, Needed, Places};
use gnarl_nn::Tensor;
use gnarl_nn::decoders::{Candidate, TopK};

use crate::data::times::times_of_edges;
use crate::encoder::{Output, budget_of};
use crate::run::infer::Infer;
use crate::run::trained::TrainedRun;
use crate::task::{EdgeBatch, EdgeScores, Ranking};

/// Edges scored together.
const EDGES: usize = 1 << 14;
/// Candidates compared with at a time.
const CANDIDATES: usize = 1 << 13;
/// Queries ranked together: the candidates are read once for all of them.
const QUERIES: usize = 1 << 12;

/// The edges that a trained run scores.
pub struct EdgeModel<'a> {
    run: &'a TrainedRun,
    by: &'a dyn Infer,
    scores: &'a dyn EdgeScores,
}

/// Receives some edges with their scores, one row each.
pub type KeepEdges<'k> = dyn FnMut(&EdgeBatch, &Tensor) -> Result<()> + 'k;

impl<'a> EdgeModel<'a> {
    /// The edges that `run` scores, with embeddings that `by` computes: the run itself, or ranks that have it; none if it
    /// predicts nodes.
    pub fn of(run: &'a TrainedRun, by: &'a dyn Infer) -> Option<Self> {
        run.task().edge_scores().map(|scores| Self { run, by, scores })
    }

    /// The type of the edges.
    pub fn triple(&self) -> &Triple {
        self.scores.triple()
    }

    /// Number of relations.
    pub fn num_relations(&self) -> usize {
        self.scores.num_relations()
    }

    /// Names of relations; none if they are numbers.
    pub fn relation_names(&self) -> &[String] {
        self.scores.relation_names()
    }

    /// The edges of a split; none if there is no such split.
    ///
    /// # Errors
    /// If a part of the graph does not reply.
    pub fn split(&self, name: &str) -> Result<Option<EdgeBatch>> {
        self.scores.split(name)
    }

    /// Returns whether scores depend on features of the edges, so that only edges of the dataset have some.
    pub fn reads_rows(&self) -> bool {
        self.scores.reads_rows()
    }

    /// Returns whether several labels of an edge may hold.
    pub fn has_several_labels(&self) -> bool {
        self.scores.has_several_labels()
    }

    /// Returns whether candidates can be ranked: edges are predicted, not labeled.
    pub fn ranks(&self) -> bool {
        self.scores.ranking().is_some()
    }

    /// Index of the type of the endpoints on `side` among [`TrainedRun::node_types`], and the number of its nodes.
    fn endpoints(&self, side: Side) -> (usize, usize) {
        let types = self.run.node_types();
        let of = if side == Side::Tail { types.len() - 1 } else { 0 };
        (of, types[of].1)
    }

    /// Scores `batch` and hands it to `keep` in pieces, in order.
    ///
    /// # Errors
    /// If features cannot be read; those of `keep`.
    pub fn score(&self, batch: &EdgeBatch, keep: &mut KeepEdges<'_>) -> Result<Figures> {
        if self.run.config().samples_by_time() {
            return self.score_in_time(batch, keep).map(|()| Figures::default());
        }
        let ends = [Side::Head, Side::Tail];
        let wanted = ends.map(|side| (self.endpoints(side).0, batch.edges.ends(side).to_vec()));
        let (rows, figures) = self.embeddings(wanted.into())?;
        self.pieces(&rows, batch, keep)?;
        Ok(figures)
    }

    /// Scores all edges of the dataset, in its order, and hands them to `keep`.
    ///
    /// # Errors
    /// As [`EdgeModel::score`], and if the dataset is not on this host.
    pub fn score_all(&self, keep: &mut KeepEdges<'_>) -> Result<Figures> {
        let dataset = self.run.dataset().ok_or_else(|| {
            Error::usage("the edges of the dataset are not on this host")
                .hint("name a split or a file of edges, or give the dataset with --dataset")
        })?;
        let timed = self.run.config().samples_by_time();
        let times = match timed {
            true => Some(times_of_edges(dataset, self.triple(), "sample.time")?),
            false => None,
        };
        let ends = [Side::Head, Side::Tail].map(|side| self.endpoints(side));
        let wanted = ends.map(|(of, nodes)| (of, (0..nodes as u32).collect()));
        let found = if timed { None } else { Some(self.embeddings(wanted.into())?) };
        let relation = dataset.edge_column(self.triple(), "relation")?;
        let relation = relation.map(|column| column.values::<u32>()).transpose()?;
        let relation = relation.filter(|_| self.num_relations() > 1);
        let (mut edges, mut chunk) = (dataset.edges_of(self.triple())?, EdgeChunk::default());
        edges.reset()?;
        let mut row = 0u64;
        while edges.next_chunk(&mut chunk)? {
            let mut batch = EdgeBatch::default();
            for (head, tail) in chunk.iter() {
                let of = relation.as_ref().map_or(0, |relation| relation[row as usize]);
                batch.edges.push(head as u32, of, tail as u32);
                batch.rows.push(row);
                batch.times.extend(times.as_ref().map(|times| times[row as usize]));
                row += 1;
            }
            match &found {
                Some((rows, _)) => self.pieces(rows, &batch, keep)?,
                None => self.score_in_time(&batch, keep)?,
            }
        }
        Ok(found.map_or_else(Figures::default, |(_, figures)| figures))
    }

    /// Number of rows that [`EdgeModel::top`] hands over: fewer than `k` for each query where there are not as many
    /// candidates.
    ///
    /// # Errors
    /// If a part of the graph does not reply.
    pub fn num_top(
        &self,
        side: Side,
        given: &[(u32, u32)],
        (k, unknown): (usize, bool),
    ) -> Result<u64> {
        let Some(ranking) = self.scores.ranking().filter(|_| unknown) else {
            return Ok((given.len() * k.min(self.endpoints(side).1)) as u64);
        };
        let nodes = self.endpoints(side).1;
        let mut rows = 0;
        for given in given.chunks(QUERIES) {
            let known = ranking.known_ends(side, given)?;
            rows += known.iter().map(|known| k.min(nodes - known.len()) as u64).sum::<u64>();
        }
        Ok(rows)
    }

    /// The `k` likeliest endpoints on `side` of edges of the `given` other endpoints and the relation beside each,
    /// handed to `keep` in their order: the index of a query, and its candidates, the likeliest first. `unknown` leaves
    /// out those that complete an edge of the dataset.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if edges are labeled and not predicted; as [`EdgeModel::score`].
    pub fn top(
        &self,
        side: Side,
        given: &[(u32, u32)],
        (k, unknown): (usize, bool),
        keep: &mut dyn FnMut(usize, &[Candidate]) -> Result<()>,
    ) -> Result<Figures> {
        let ranking = self.scores.ranking().ok_or_else(|| {
            Error::usage("the run labels edges, and has no candidates for their endpoints")
                .hint("score edges of your own with --edges FILE")
        })?;
        let (of, nodes) = self.endpoints(side);
        let k = k.min(nodes);
        let wanted = vec![
            (self.endpoints(side.other()).0, given.iter().map(|&(node, _)| node).collect()),
            (of, (0..nodes as u32).collect()),
        ];
        let (rows, figures) = self.embeddings(wanted)?;
        for (first, given) in (0..given.len()).step_by(QUERIES).zip(given.chunks(QUERIES)) {
            let found = self.ranked(&ranking, &rows, (side, nodes), given, (k, unknown))?;
            for (i, candidates) in found.iter().enumerate() {
                keep(first + i, candidates)?;
            }
        }
        Ok(figures)
    }

    fn ranked(
        &self,
        ranking: &Ranking<'_>,
        rows: &Before,
        (side, nodes): (Side, usize),
        given: &[(u32, u32)],
        (k, unknown): (usize, bool),
    ) -> Result<Vec<Vec<Candidate>>> {
        let (decoder, params) = (ranking.decoder, self.run.params());
        let (others, relations): (Vec<u32>, Vec<u32>) = given.iter().copied().unzip();
        let known_rows = rows.gather(self.endpoints(side.other()).0, &others)?;
        let queries = decoder.query(params, side, &known_rows, &relations);
        let known = if unknown { ranking.known_ends(side, given)? } else { Vec::new() };
        let left_out = |query: usize| known.get(query).map_or(&[][..], Vec::as_slice);
        let mut top = TopK::new(given.len(), k);
        let of = self.endpoints(side).0;
        for start in (0..nodes as u32).step_by(CANDIDATES) {
            let block: Vec<u32> = (start..(nodes as u32).min(start + CANDIDATES as u32)).collect();
            let candidates = decoder.candidate(params, side, &rows.gather(of, &block)?);
            let similarity = decoder.similarity(params);
            let first = ranking.number(start, side);
            top.add(similarity, &queries, (first, &candidates), left_out);
        }
        let mut found = top.finish();
        let first = ranking.number(0, side);
        found.iter_mut().flatten().for_each(|candidate| candidate.node -= first);
        Ok(found)
    }

    /// Embeddings of some nodes of types with outputs, in memory or in files.
    fn embeddings(&self, wanted: Vec<(usize, Vec<u32>)>) -> Result<(Before, Figures)> {
        let types = self.run.node_types();
        let mut by_type: Vec<Vec<u32>> = vec![Vec::new(); types.len()];
        wanted.into_iter().for_each(|(of, nodes)| by_type[of].extend(nodes));
        for nodes in &mut by_type {
            nodes.sort_unstable();
            nodes.dedup();
        }
        let all = types.iter().zip(&by_type);
        let places = all.map(|((_, n), nodes)| Places::from(Needed::some(*n, nodes))).collect();
        let wanted: Vec<(usize, Vec<u32>)> =
            by_type.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()).collect();
        let budget = budget_of(self.run.config());
        let mut after = After::new(&budget, places, budget.rows());
        let figures = self.by.infer(Output::Last, &wanted, &mut |of, _, rows| {
            after.append(of, rows.data(), rows.cols())
        })?;
        Ok((after.finish()?.0, figures))
    }

    fn pieces(&self, rows: &Before, batch: &EdgeBatch, keep: &mut KeepEdges<'_>) -> Result<()> {
        let [heads, tails] = [Side::Head, Side::Tail].map(|side| self.endpoints(side).0);
        for piece in pieces_of(batch) {
            let ends =
                [rows.gather(heads, &piece.edges.heads)?, rows.gather(tails, &piece.edges.tails)?];
            let scores = self.scores.score(self.run.params(), ends, &piece)?;
            keep(&piece, &scores)?;
        }
        Ok(())
    }

    /// Scores edges as of their times, or after all edges of the dataset.
    fn score_in_time(&self, batch: &EdgeBatch, keep: &mut KeepEdges<'_>) -> Result<()> {
        for piece in pieces_of(batch) {
            let ends = self.by.embeddings_before(&piece.edges, &piece.times)?;
            let scores = self.scores.score(self.run.params(), ends, &piece)?;
            keep(&piece, &scores)?;
        }
        Ok(())
    }
}

/// The edges of a batch, some at a time.
fn pieces_of(batch: &EdgeBatch) -> impl Iterator<Item = EdgeBatch> + '_ {
    let EdgeBatch { edges, rows, times } = batch;
    (0..edges.len()).step_by(EDGES).map(move |start| {
        let range = start..edges.len().min(start + EDGES);
        EdgeBatch {
            edges: Triples {
                heads: edges.heads[range.clone()].to_vec(),
                relations: edges.relations[range.clone()].to_vec(),
                tails: edges.tails[range.clone()].to_vec(),
            },
            rows: rows.get(range.clone()).map_or_else(Vec::new, <[u64]>::to_vec),
            times: times.get(range).map_or_else(Vec::new, <[i64]>::to_vec),
        }
    })
}
