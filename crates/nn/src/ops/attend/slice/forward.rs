//! Sums by attention of the destinations of a task.

use super::Attended;
use crate::kernel::row_source::add_scaled;
use crate::kernel::{multiversion, prefetch};
use crate::ops::attend::{AHEAD, exponentials};

multiversion! {
    /// The sums of the destinations from `first` on.
    pub(super) fn sum_chunk(out: &mut [f32], first: usize, of: &Attended<'_>) {
        let slice = &of.slice;
        let heads = slice.heads.len();
        let mut weights = Vec::new();
        let mut top = vec![0.0; heads];
        let mut factor = vec![0.0; heads];
        for (i, out) in out.chunks_exact_mut(slice.columns).enumerate() {
            let d = first + i;
            out.fill(0.0);
            of.scores(d, of.to(d), &mut weights);
            exponentials(&mut weights, &mut top, &mut factor);
            let list = slice.block.sources(d);
            for ((entry, source), weights) in
                slice.sources(d).enumerate().zip(weights.chunks_exact(heads))
            {
                if let Some(&next) = list.get(entry + AHEAD) {
                    prefetch(of.rows.row(next as usize));
                }
                let row = of.rows.row(source as usize);
                let dropped = slice.kept.of(source as usize, d);
                for (h, columns) in slice.heads.iter().enumerate() {
                    let weight = weights[h] * factor[h] * dropped(h);
                    add_scaled(&mut out[columns.clone()], &row[columns.clone()], weight, false);
                }
            }
        }
    }
}
