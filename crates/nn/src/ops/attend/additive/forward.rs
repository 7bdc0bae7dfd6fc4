//! Sums by attention of the destinations of a task.

use super::{Coefficients, Shape};
use crate::Tensor;
use crate::kernel::row_source::add_scaled;
use crate::kernel::{multiversion, prefetch};
use crate::ops::attend::{AHEAD, exponentials};

multiversion! {
    /// The sums of the destinations from `first` on, and what is kept of them.
    pub(super) fn list_chunk(
        out: &mut [f32],
        kept: &mut [f32],
        first: usize,
        of: &Coefficients<'_>,
        destination: &Tensor,
        x: &Tensor,
        shape: Shape,
    ) {
        let Shape { heads, width } = shape;
        let indptr = of.block.indptr();
        let indices = of.block.indices();
        let mut weights = Vec::new();
        let rows = out.chunks_exact_mut(heads * width);
        for (i, (out, kept)) in rows.zip(kept.chunks_exact_mut(3 * heads)).enumerate() {
            let d = first + i;
            let edges = indptr[d] as usize..indptr[d + 1] as usize;
            let (to, rest) = kept.split_at_mut(heads);
            let (top, factor) = rest.split_at_mut(heads);
            to.copy_from_slice(destination.row(d));
            of.scores(edges.clone(), to, &mut weights);
            exponentials(&mut weights, top, factor);
            if edges.is_empty() {
                out.fill(0.0);
                continue;
            }
            for e in edges.clone() {
                if let Some(&next) = indices.get(e + AHEAD) {
                    prefetch(x.row(next as usize));
                }
                let source = indices[e] as usize;
                let row = x.row(source);
                let dropped = of.kept.of(source, d);
                let weights = &weights[(e - edges.start) * heads..][..heads];
                for (h, out) in out.chunks_exact_mut(width).enumerate() {
                    let weight = weights[h] * factor[h] * dropped(h);
                    add_scaled(out, &row[h * width..(h + 1) * width], weight, e == edges.start);
                }
            }
        }
    }
}
