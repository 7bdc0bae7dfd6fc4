//! Weighted sums over neighbors, one or several times: `H ← (1 - α) P H + α H⁰`.

use std::ops::Range;
use std::sync::Arc;

use gnarl_nn::Tensor;
use gnarl_nn::models::stages::{Linear, Pass};
use gnarl_nn::ops::pass::Passing;
use rayon::prelude::*;

use super::column_pass::{ColumnPass, Direction, Made, Part, Random};
use crate::step::chunked::matrix::copy;

/// Values per task of elementwise work.
const CHUNK: usize = 1 << 14;

/// `linear.times` propagations.
pub(super) struct LinearPass<'a> {
    pub passing: Arc<Passing<'a>>,
    pub linear: Linear,
}

/// All propagations but the last.
struct Propagated<'p, 'a> {
    pass: &'p LinearPass<'a>,
    direction: Direction,
    x: Tensor,
    /// The teleport term of the result.
    carried: Option<Tensor>,
}

impl LinearPass<'_> {
    fn begin(&self, mut x: Tensor, direction: Direction) -> Box<dyn Part + '_> {
        let Linear { teleport: alpha, times, .. } = self.linear;
        let mut carried = (alpha > 0.0).then(|| scaled(&x, alpha));
        for _ in 1..times {
            let mut y = Tensor::scratch(x.rows(), x.cols());
            self.once(direction, &x, 0, y.data_mut());
            x = y;
            if let Some(carried) = &mut carried {
                scale(x.data_mut(), 1.0 - alpha);
                match direction {
                    Direction::Forward => add(x.data_mut(), carried.data(), 1.0),
                    Direction::Backward => add(carried.data_mut(), x.data(), alpha),
                }
            }
        }
        Box::new(Propagated { pass: self, direction, x, carried })
    }

    fn once(&self, direction: Direction, x: &Tensor, first: usize, out: &mut [f32]) {
        match direction {
            Direction::Forward => self.passing.forward(x.data(), x.cols(), first, out),
            Direction::Backward => self.passing.backward(x.data(), x.cols(), first, out),
        }
    }
}

impl ColumnPass for LinearPass<'_> {
    fn pass(&self) -> Pass {
        Pass::Linear(self.linear)
    }

    fn forward(&self, _: Range<usize>, _: Random, sent: Tensor) -> Made<'_> {
        Ok(self.begin(sent, Direction::Forward))
    }

    fn backward(&self, _: Range<usize>, _: Random, _: Option<Tensor>, grad: Tensor) -> Made<'_> {
        Ok(self.begin(grad, Direction::Backward))
    }
}

impl Part for Propagated<'_, '_> {
    fn rows(&self, first: usize, out: &mut [f32]) {
        self.pass.once(self.direction, &self.x, first, out);
        if let Some(carried) = &self.carried {
            scale(out, 1.0 - self.pass.linear.teleport);
            let start = first * self.x.cols();
            add(out, &carried.data()[start..start + out.len()], 1.0);
        }
    }
}

fn scaled(x: &Tensor, by: f32) -> Tensor {
    let mut y = Tensor::scratch(x.rows(), x.cols());
    copy(y.data_mut(), x.data());
    scale(y.data_mut(), by);
    y
}

fn scale(values: &mut [f32], by: f32) {
    values.par_chunks_mut(CHUNK).for_each(|chunk| chunk.iter_mut().for_each(|v| *v *= by));
}

/// `values += by * others`.
fn add(values: &mut [f32], others: &[f32], by: f32) {
    let chunks = values.par_chunks_mut(CHUNK).zip(others.par_chunks(CHUNK));
    chunks.for_each(|(v, o)| v.iter_mut().zip(o).for_each(|(v, o)| *v += by * o));
}
