//! The loss of link prediction over node embeddings.

use gnarl_common::Result;

use crate::decoders::{Decoder, LinkBatch};
use crate::kernel::elementwise;
use crate::losses::Loss;
use crate::{Tape, Tensor, Var};

/// The loss of a batch of triples, not rounded to a value of the tape.
#[derive(Debug, Clone, Copy)]
pub struct LinkLoss {
    /// Sum of the losses.
    pub sum: f64,
    /// Number of summed losses.
    pub weight: f64,
}

impl Tape<'_> {
    /// The summed loss of a batch of triples over entity embeddings `rows`, as a 1 × 1 value and
    /// before rounding: see [`LinkBatch::loss`]. The gradient is computed at once.
    ///
    /// # Errors
    /// As [`LinkBatch::loss`].
    pub fn link_loss(
        &mut self,
        rows: Var,
        batch: &LinkBatch,
        decoder: &dyn Decoder,
        loss: &dyn Loss,
        n3: f32,
    ) -> Result<(Var, LinkLoss)> {
        let mut own = vec![0.0; self.params().len()];
        let found = batch.loss(decoder, loss, n3, self.params(), self.value(rows), &mut own)?;
        let (sum, weight) = (found.sum, found.weight);
        let value = Tensor::from_vec(1, 1, vec![sum as f32]);
        let var = self.push(value, true, move |grads, grad| {
            let scale = grad.data()[0];
            // A loss at the end of the tape has slope 1: its gradient is there already.
            let slope = if scale == 1.0 {
                found.rows
            } else {
                let mut slope = Tensor::scratch(found.rows.rows(), found.rows.cols());
                elementwise::scale_into(slope.data_mut(), found.rows.data(), scale);
                slope
            };
            grads.add(rows, slope);
            grads.flat().iter_mut().zip(&own).for_each(|(sum, g)| *sum += scale * g);
        });
        Ok((var, LinkLoss { sum, weight }))
    }
}
