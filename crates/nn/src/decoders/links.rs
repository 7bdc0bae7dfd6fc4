//! The loss of a batch of triples and its gradient.

use gnarl_common::{Error, Result};
use rayon::prelude::*;

use super::{Decoder, Groups, Side, score, score_backward};
use crate::kernel::chunks::each_chunk;
use crate::kernel::elementwise::add_chunk;
use crate::losses::{Loss, apply};
use crate::{Params, Tensor};

/// A batch of triples with their negatives. Entities are numbered by their row in the batch.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkBatch {
    /// Rows of the heads.
    pub heads: Vec<u32>,
    /// Relation of each triple.
    pub relations: Vec<u32>,
    /// Rows of the tails.
    pub tails: Vec<u32>,
    /// The corrupted sides, and the candidates for each.
    pub negatives: Vec<(Side, Candidates)>,
}

impl LinkBatch {
    /// Replaces each row `r` by `rows[r]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn renumber(&mut self, rows: &[u32]) {
        let place = |row: &mut u32| *row = rows[*row as usize];
        self.heads.iter_mut().chain(&mut self.tails).for_each(place);
        for (_, candidates) in &mut self.negatives {
            candidates.rows.iter_mut().for_each(place);
        }
    }
}

/// Negative endpoints, which replace the true ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    /// Rows of the candidates, group after group.
    pub rows: Vec<u32>,
    /// The group of candidates that each triple is compared with.
    pub groups: Groups,
    /// Pairs of a triple and a column of its group that are left out of the loss: true endpoints
    /// among the candidates.
    pub masked: Vec<[u32; 2]>,
}

/// The loss of a batch and its gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkLoss {
    /// Losses of all triples, summed over the corrupted sides.
    pub sum: f64,
    /// Number of losses in the sum: triples times corrupted sides.
    pub weight: f64,
    /// Gradient of the sum, for each row of the batch.
    pub rows: Tensor,
}

impl LinkBatch {
    /// The loss of the batch whose entities have `rows`, and its gradient; that of parameters is added to
    /// `grads`, laid out like [`Params::flat`]. `n3` weighs the sum of |x|³ over heads, relations and
    /// tails.
    ///
    /// # Errors
    /// A usage error if rows are not as wide as the decoder's.
    pub fn loss(
        &self,
        decoder: &dyn Decoder,
        loss: &dyn Loss,
        n3: f32,
        params: &Params,
        rows: &Tensor,
        grads: &mut [f32],
    ) -> Result<LinkLoss> {
        if rows.cols() != decoder.width() {
            let text = format!(
                "embeddings of width {} for decoder '{}' of width {}",
                rows.cols(),
                decoder.name(),
                decoder.width()
            );
            return Err(Error::usage(text));
        }
        let mut to = RowGrads::default();
        let mut sum = 0.0;
        for (side, candidates) in &self.negatives {
            let pass = Pass { batch: self, decoder, params, rows, side: *side };
            sum += pass.run(candidates, loss, &mut to, grads);
        }
        if n3 > 0.0 {
            sum += self.cubes(decoder, n3, params, rows, &mut to, grads);
        }
        let weight = (self.heads.len() * self.negatives.len()) as f64;
        Ok(LinkLoss { sum, weight, rows: to.scattered(rows.rows(), rows.cols()) })
    }

    /// The N3 regularization (Lacroix, Usunier & Obozinski, ICML 2018, section 4), once per side.
    fn cubes(
        &self,
        decoder: &dyn Decoder,
        n3: f32,
        params: &Params,
        rows: &Tensor,
        to: &mut RowGrads,
        grads: &mut [f32],
    ) -> f64 {
        let weight = n3 * self.negatives.len() as f32;
        let parts = if decoder.is_complex() { 2 } else { 1 };
        let mut sum = 0.0;
        for ends in [&self.heads, &self.tails] {
            let mut grad = gather(rows, ends);
            grad.data_mut().chunks_exact_mut(rows.cols()).for_each(|row| {
                sum += cube(row, parts, weight);
            });
            to.push(ends.clone(), grad);
        }
        if let Some(id) = decoder.relation_rows() {
            let (width, start) = (params.shape(id).1, params.spec(id).offset);
            for &relation in &self.relations {
                let at = relation as usize * width;
                let mut row = params.get(id)[at..at + width].to_vec();
                sum += cube(&mut row, parts, weight);
                add_chunk(&mut grads[start + at..start + at + width], &row);
            }
        }
        sum
    }
}

/// `weight · Σ |x|³` over the numbers of a row, which becomes the gradient `3 · weight · |x| x`.
fn cube(row: &mut [f32], parts: usize, weight: f32) -> f64 {
    let count = row.len() / parts;
    let mut sum = 0.0;
    for k in 0..count {
        let square: f32 = (0..parts).map(|p| row[p * count + k] * row[p * count + k]).sum();
        let modulus = square.sqrt();
        sum += f64::from(weight * square * modulus);
        (0..parts).for_each(|p| row[p * count + k] *= 3.0 * weight * modulus);
    }
    sum
}

/// One side of a batch.
struct Pass<'a> {
    batch: &'a LinkBatch,
    decoder: &'a dyn Decoder,
    params: &'a Params,
    rows: &'a Tensor,
    side: Side,
}

impl Pass<'_> {
    fn run(
        &self,
        candidates: &Candidates,
        loss: &dyn Loss,
        to: &mut RowGrads,
        grads: &mut [f32],
    ) -> f64 {
        let Self { batch, decoder, params, rows, side } = *self;
        let (given, own) = match side {
            Side::Tail => (&batch.heads, &batch.tails),
            Side::Head => (&batch.tails, &batch.heads),
        };
        let similarity = decoder.similarity(params);
        let (given_rows, own_rows) = (gather(rows, given), gather(rows, own));
        let candidate_rows = gather(rows, &candidates.rows);
        let query = decoder.query(params, side, &given_rows, &batch.relations);
        let right = decoder.candidate(params, side, &own_rows);
        let wrong = decoder.candidate(params, side, &candidate_rows);
        let each = Groups::each(own.len(), 1);
        let positive = score(similarity, &query, &right, &each);
        let mut negative = score(similarity, &query, &wrong, &candidates.groups);
        let count = candidates.groups.count();
        for &[triple, column] in &candidates.masked {
            negative.data_mut()[triple as usize * count + column as usize] = f32::NEG_INFINITY;
        }
        let (sum, to_positive, to_negative) = apply(loss, &positive, &negative);

        let (mut to_query, to_right, weights) =
            score_backward(similarity, &query, &right, &each, &positive, &to_positive);
        let (more, to_wrong, more_weights) =
            score_backward(similarity, &query, &wrong, &candidates.groups, &negative, &to_negative);
        add_chunk(to_query.data_mut(), more.data());
        if let Some(id) = decoder.compared_by() {
            let own = &mut grads[params.spec(id).range()];
            add_chunk(own, &weights);
            add_chunk(own, &more_weights);
        }
        let relations = &batch.relations;
        let back = decoder.query_backward(params, side, &given_rows, relations, &to_query, grads);
        to.push(given.clone(), back);
        to.push(own.clone(), decoder.candidate_backward(params, side, &own_rows, to_right, grads));
        to.push(
            candidates.rows.clone(),
            decoder.candidate_backward(params, side, &candidate_rows, to_wrong, grads),
        );
        sum
    }
}

/// The rows at `places`.
fn gather(rows: &Tensor, places: &[u32]) -> Tensor {
    let width = rows.cols();
    let mut out = Tensor::scratch(places.len(), width);
    let chunks = out.data_mut().par_chunks_mut(256 * width.max(1)).zip(places.par_chunks(256));
    chunks.for_each(|(out, places)| {
        for (out, &place) in out.chunks_exact_mut(width).zip(places) {
            out.copy_from_slice(rows.row(place as usize));
        }
    });
    out
}

/// Gradients of rows that may repeat, to be summed per row.
#[derive(Default)]
struct RowGrads {
    parts: Vec<(Vec<u32>, Tensor)>,
}

impl RowGrads {
    fn push(&mut self, places: Vec<u32>, grads: Tensor) {
        self.parts.push((places, grads));
    }

    /// Sums the gradients of each of `rows` rows, in the order of arrival.
    fn scattered(&self, rows: usize, width: usize) -> Tensor {
        let mut starts = vec![0u32; rows + 1];
        let all = || self.parts.iter().flat_map(|(places, _)| places);
        all().for_each(|&place| starts[place as usize + 1] += 1);
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let (mut next, mut entries) = (starts.clone(), vec![[0u32; 2]; starts[rows] as usize]);
        for (part, (places, _)) in self.parts.iter().enumerate() {
            for (at, &place) in places.iter().enumerate() {
                let slot = &mut next[place as usize];
                entries[*slot as usize] = [part as u32, at as u32];
                *slot += 1;
            }
        }
        let mut out = Tensor::zeros(rows, width);
        each_chunk(out.data_mut(), 16 * width.max(1), &|i, out| {
            for (j, out) in out.chunks_exact_mut(width).enumerate() {
                let row = 16 * i + j;
                let own = &entries[starts[row] as usize..starts[row + 1] as usize];
                for &[part, at] in own {
                    add_chunk(out, self.parts[part as usize].1.row(at as usize));
                }
            }
        });
        out
    }
}
