//! Products of the precision that is asked for.

use super::bf16;
use super::gemm::{Heads, View, gemm};

/// Precision in which matrix products read their two sides. Sums, and all that is no product of matrices, are of f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As they are.
    #[default]
    F32,
    /// Rounded to bf16, with 8 significant bits of 24 and the same exponents.
    Bf16,
}

impl Precision {
    /// Returns whether this processor has instructions for it; without them, bf16 is slower than f32.
    pub fn is_native(self) -> bool {
        self == Self::F32 || bf16::is_native()
    }

    /// Returns whether the processor has faster instructions for it that the system keeps from this process: then products
    /// may be slower than in f32.
    pub fn is_withheld(self) -> bool {
        self == Self::Bf16 && bf16::is_withheld()
    }

    /// Bytes of a value.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }

    /// `out = a · b`, on the calling thread. `a` is `m × k`, `b` is `k × n`; row `i` of the result starts at
    /// `out[i * stride]`.
    pub(crate) fn product(
        self,
        out: &mut [f32],
        stride: usize,
        (m, n, k): (usize, usize, usize),
        a: View<'_>,
        b: View<'_>,
    ) {
        Right::new(self, b, (k, n)).product(out, stride, (m, n, k), a);
    }
}

/// The right side of products, prepared once for all tasks.
pub(crate) enum Right<'a> {
    F32(View<'a>),
    Bf16(bf16::Right),
}

impl<'a> Right<'a> {
    /// The `k × n` matrix `b`.
    pub(crate) fn new(precision: Precision, b: View<'a>, shape: (usize, usize)) -> Self {
        match precision {
            Precision::F32 => Self::F32(b),
            Precision::Bf16 => Self::Bf16(bf16::Right::new(b, shape)),
        }
    }

    /// `out = a · self`, on the calling thread, as [`Precision::product`].
    pub(crate) fn product(
        &self,
        out: &mut [f32],
        stride: usize,
        shape: (usize, usize, usize),
        a: View<'_>,
    ) {
        match self {
            Self::F32(b) => gemm(out, stride, shape, a, *b, false),
            Self::Bf16(b) => b.product(out, stride, shape, a),
        }
    }
}

/// The right sides of a product head by head.
pub(crate) struct RightHeads<'a> {
    pub(super) shape: Heads,
    sides: Vec<Right<'a>>,
}

impl<'a> RightHeads<'a> {
    /// Columns `h·n..` of `b`, of `k` rows, in head `h`.
    pub(crate) fn new(precision: Precision, shape: Heads, b: View<'a>) -> Self {
        let side = |h| Right::new(precision, b.skip_cols(h * shape.n), (shape.k, shape.n));
        Self { shape, sides: (0..shape.heads).map(side).collect() }
    }

    /// The transposed matrices: of `n` rows and `k` columns.
    pub(crate) fn transposed(precision: Precision, shape: Heads, b: View<'a>) -> Self {
        let Heads { heads, k, n } = shape;
        let side = |h| Right::new(precision, b.skip_cols(h * n).t(), (n, k));
        Self { shape: Heads { heads, k: n, n: k }, sides: (0..heads).map(side).collect() }
    }

    /// `out = a · self` head by head, on the calling thread.
    pub(crate) fn product(&self, out: &mut [f32], a: View<'_>) {
        let Heads { k, n, .. } = self.shape;
        let cols = self.shape.cols();
        let rows = out.len() / cols;
        for (h, side) in self.sides.iter().enumerate() {
            side.product(&mut out[h * n..], cols, (rows, n, k), a.skip_cols(h * k));
        }
    }
}
