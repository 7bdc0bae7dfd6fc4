//! Products of rows of complex numbers, whose real parts come first, then the imaginary ones.

use super::Side;

/// The sign of the relation's imaginary part. As `Re Σ h r t̄ = Re Σ h̄ (r̄ t)`, and `|h r − t| = |h − r̄ t|`
/// where `|r| = 1`, heads are ranked with the conjugate of the relation.
pub(super) fn sign(side: Side) -> f32 {
    match side {
        Side::Tail => 1.0,
        Side::Head => -1.0,
    }
}

/// `out = x r`, the imaginary part of `r` times `sign`; all of equal length.
pub(super) fn multiply(out: &mut [f32], x: &[f32], r: &[f32], sign: f32) {
    let dim = out.len() / 2;
    let ((out, out_i), (x, x_i), (r, r_i)) =
        (out.split_at_mut(dim), x.split_at(dim), r.split_at(dim));
    for k in 0..dim {
        out[k] = x[k] * r[k] - sign * x_i[k] * r_i[k];
        out_i[k] = sign * x[k] * r_i[k] + x_i[k] * r[k];
    }
}

/// The backward pass of [`multiply`] from gradient `g`: sets that of `x`, and adds that of `r` to
/// `to_r`.
pub(super) fn multiply_backward(
    (to_x, to_r): (&mut [f32], &mut [f32]),
    (x, r, g): (&[f32], &[f32], &[f32]),
    sign: f32,
) {
    let dim = x.len() / 2;
    let ((to_x, to_x_i), (to_r, to_r_i)) = (to_x.split_at_mut(dim), to_r.split_at_mut(dim));
    let ((x, x_i), (r, r_i), (g, g_i)) = (x.split_at(dim), r.split_at(dim), g.split_at(dim));
    for k in 0..dim {
        to_x[k] = g[k] * r[k] + sign * g_i[k] * r_i[k];
        to_x_i[k] = g_i[k] * r[k] - sign * g[k] * r_i[k];
        to_r[k] += g[k] * x[k] + g_i[k] * x_i[k];
        to_r_i[k] += sign * (g_i[k] * x[k] - g[k] * x_i[k]);
    }
}
