//! The teleport of APPNP (Gasteiger et al., ICLR 2019, eq. 4).

use crate::{Tape, Var};

/// Mixes the output of a propagation, which is released, with `H⁰` of the same nodes.
pub(super) fn mix(tape: &mut Tape<'_>, passed: Var, first: Var, teleport: f32) -> Var {
    if teleport == 0.0 {
        return passed;
    }
    let scaled = tape.scale(passed, 1.0 - teleport);
    tape.release(passed);
    let first = tape.scale(first, teleport);
    tape.add(scaled, first)
}
