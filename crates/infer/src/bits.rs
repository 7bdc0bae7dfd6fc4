//! Sets of nodes as bits.

/// Sets the bit of a node.
pub(crate) fn mark(bits: &mut [u64], node: u32) {
    bits[node as usize / 64] |= 1 << (node % 64);
}

/// The nodes whose bits are set.
pub(crate) fn set_in(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
    bits.iter().enumerate().flat_map(|(word, &bits)| {
        (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| (64 * word) as u32 + bit)
    })
}
