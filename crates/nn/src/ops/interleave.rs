//! Interleaved rows of several matrices.

use crate::kernel::elementwise::copy;
use crate::relations::Span;
use crate::{Tape, Tensor, Var};

impl<'b> Tape<'b> {
    /// The rows of `parts` in the order of `spans`: each span takes the next rows of the part its
    /// weight names. Parts that no span names may be absent.
    ///
    /// # Panics
    /// If a part is absent, has other columns than `cols`, or other rows than its spans.
    pub fn interleave(&mut self, parts: &[Option<Var>], spans: &'b [Span], cols: usize) -> Var {
        let rows = spans.last().map_or(0, |span| span.rows.end);
        let mut y = Tensor::scratch(rows, cols);
        let mut next = vec![0usize; parts.len()];
        let mut rest = y.data_mut();
        for span in spans {
            let part = parts[span.weight].expect("every span's part is there");
            let value = self.value(part);
            assert_eq!(value.cols(), cols, "interleave");
            let from = next[span.weight];
            let (out, tail) = rest.split_at_mut(span.rows.len() * cols);
            copy(out, &value.data()[from * cols..(from + span.rows.len()) * cols]);
            next[span.weight] += span.rows.len();
            rest = tail;
        }
        for (part, next) in parts.iter().zip(&next) {
            assert!(part.is_none_or(|part| self.shape(part).0 == *next), "spans take all rows");
        }
        let needed = parts.iter().flatten().any(|&part| self.needs_grad(part));
        let parts = parts.to_vec();
        self.push(y, needed, move |grads, grad| {
            for (weight, part) in parts.iter().enumerate() {
                let Some(part) = part.filter(|&part| grads.wants(part)) else { continue };
                let mut to_part = Tensor::scratch(next[weight], cols);
                let mut rest = to_part.data_mut();
                for span in spans.iter().filter(|span| span.weight == weight) {
                    let (out, tail) = rest.split_at_mut(span.rows.len() * cols);
                    let from = &grad.data()[span.rows.start * cols..span.rows.end * cols];
                    copy(out, from);
                    rest = tail;
                }
                grads.add(part, to_part);
            }
        })
    }
}
