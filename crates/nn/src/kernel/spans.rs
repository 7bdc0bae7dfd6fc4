//! Spans of kernels in a profile, with the work that they count.
//!
//! Values are counted once where they are read or written, whatever caches hold them.

use gnarl_common::profile::{self, Span, Work};

use super::gemm::Heads;

/// A product that takes so many rows of its left side.
pub(crate) fn product(name: &'static str, Heads { heads, k, n }: Heads, rows: usize) -> Span {
    profile::kernel(name, || {
        let [heads, k, n, rows] = [heads, k, n, rows].map(|count| count as f64);
        let values = heads * (rows * k + k * n + rows * n);
        Work { flops: 2.0 * heads * rows * k * n, bytes: 4.0 * values }
    })
}

/// A pass over edges that reads a row of so many columns for each, and does `flops` for each of its values.
pub(crate) fn over_edges(name: &'static str, edges: usize, cols: usize, flops: f64) -> Span {
    profile::kernel(name, || {
        let values = (edges * cols) as f64;
        Work { flops: flops * values, bytes: 4.0 * (values + edges as f64) }
    })
}

/// A pass over values that are read and written.
pub(crate) fn over_values(name: &'static str, values: usize) -> Span {
    profile::kernel(name, || Work { flops: values as f64, bytes: 8.0 * values as f64 })
}
