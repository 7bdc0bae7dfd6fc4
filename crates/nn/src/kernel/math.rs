//! Elementary functions written so that loops over them vectorize.

/// eˣ within 2 units in the last place for results that are normal numbers; 0 below -87.3.
/// Range reduction to ±ln 2 / 2 and a polynomial of degree 6 (as in Cephes' `expf`).
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³: adding it rounds to the nearest integer
    let clamped = x.clamp(-87.3, 88.7);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4f32;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let y = p * r * r + r + 1.0;
    // Two factors: 2¹²⁸ itself is out of range, and n reaches 128.
    // The lowest bits of the shifted value are those of the integer; a cast would check its range, value by value.
    let integer = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = integer >> 1;
    let rest = integer.wrapping_sub(half);
    let power = |k: i32| f32::from_bits((k.wrapping_add(127) as u32) << 23);
    let value = y * power(half) * power(rest);
    if x < -87.3 { 0.0 } else { value }
}

/// 1 / (1 + e⁻ˣ).
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Hyperbolic tangent by way of e²ˣ, odd by construction; its error stays below 1e-6.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let e = exp(-2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_standard_library() {
        for i in -8700..8800 {
            let x = i as f32 * 0.01;
            let (ours, exact) = (exp(x), (x as f64).exp() as f32);
            assert!((ours - exact).abs() <= 3e-7 * exact, "exp({x}) = {ours}, not {exact}");
            assert!((tanh(x) - x.tanh()).abs() < 1e-6);
            assert!((sigmoid(x) - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6);
        }
        assert_eq!((exp(-200.0), exp(0.0)), (0.0, 1.0));
    }
}
