//! Message passing over a column block of all nodes, forward or backward.

use gnarl_nn::Tensor;
use gnarl_nn::models::stages::Linear;
use gnarl_nn::ops::pass::Passing;
use rayon::prelude::*;

/// Values per task of elementwise work.
const CHUNK: usize = 1 << 14;

/// Forward or backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// `linear.times` propagations, or their gradients: `H ← (1 - α) P H + α H⁰`.
pub(super) struct Messages<'m, 'b> {
    pub passing: &'m Passing<'b>,
    pub linear: Linear,
    pub direction: Direction,
}

/// Column block of all nodes before the last propagation.
pub(super) struct Part {
    x: Tensor,
    /// The teleport term of the result.
    carried: Option<Tensor>,
}

impl Messages<'_, '_> {
    /// All propagations but the last.
    pub fn begin(&self, mut x: Tensor) -> Part {
        let (alpha, times) = (self.linear.teleport, self.linear.times);
        let mut carried = (alpha > 0.0).then(|| scaled(&x, alpha));
        for _ in 1..times {
            let mut y = Tensor::scratch(x.rows(), x.cols());
            self.once(&x, 0, y.data_mut());
            x = y;
            if let Some(carried) = &mut carried {
                scale(x.data_mut(), 1.0 - alpha);
                match self.direction {
                    Direction::Forward => add(x.data_mut(), carried.data(), 1.0),
                    Direction::Backward => add(carried.data_mut(), x.data(), alpha),
                }
            }
        }
        Part { x, carried }
    }

    /// The last propagation: the rows from `first` on, as many as fit into `out`.
    pub fn end(&self, part: &Part, first: usize, out: &mut [f32]) {
        self.once(&part.x, first, out);
        if let Some(carried) = &part.carried {
            scale(out, 1.0 - self.linear.teleport);
            let start = first * part.x.cols();
            add(out, &carried.data()[start..start + out.len()], 1.0);
        }
    }

    fn once(&self, x: &Tensor, first: usize, out: &mut [f32]) {
        match self.direction {
            Direction::Forward => self.passing.forward(x.data(), x.cols(), first, out),
            Direction::Backward => self.passing.backward(x.data(), x.cols(), first, out),
        }
    }
}

fn scaled(x: &Tensor, by: f32) -> Tensor {
    let mut y = Tensor::scratch(x.rows(), x.cols());
    y.data_mut().copy_from_slice(x.data());
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
