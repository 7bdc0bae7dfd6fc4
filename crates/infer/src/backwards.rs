//! The nodes that layers are computed for, found from the last layer backwards.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::layers::Layers;
use crate::needed::Needed;

/// The nodes of each type that each layer is computed for, the first layer first, where those of the last one are
/// `wanted`.
pub(crate) fn needed_by_layers<L: Layers>(
    layers: &L,
    wanted: &[(usize, Vec<u32>)],
) -> Vec<Vec<Needed>> {
    let counts = layers.num_nodes();
    let mut last: Vec<Vec<u64>> = counts.iter().map(|n| vec![0; n.div_ceil(64)]).collect();
    for (node_type, nodes) in wanted {
        nodes.iter().for_each(|&node| last[*node_type][node as usize / 64] |= 1 << (node % 64));
    }
    let of = |bits: Vec<Vec<u64>>| -> Vec<Needed> {
        counts.iter().zip(bits).map(|(&nodes, bits)| Needed::of_bits(nodes, bits)).collect()
    };
    let mut all = vec![of(last)];
    for layer in (1..layers.num_layers()).rev() {
        // The last of `all` so far is what this layer is computed for.
        let needed = all.last().map_or(&[][..], |needed| needed);
        // A node reads its own row: all nodes need all, and no list has to be read to know that.
        let before = match needed.iter().all(Needed::is_all) {
            true => needed.to_vec(),
            false => of(read_by(layers, layer, needed, &counts)),
        };
        all.push(before);
    }
    all.reverse();
    all
}

/// A bit for each node that a layer reads for the nodes `needed`.
fn read_by<L: Layers>(
    layers: &L,
    layer: usize,
    needed: &[Needed],
    counts: &[usize],
) -> Vec<Vec<u64>> {
    let bits: Vec<Vec<AtomicU64>> =
        counts.iter().map(|n| (0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()).collect();
    for (node_type, needed) in needed.iter().enumerate() {
        needed.for_each(|node| {
            layers.inputs_of(layer, node_type, node, &mut |of, input| {
                let word = &bits[of][input as usize / 64];
                let bit = 1 << (input % 64);
                // Hubs are met over and over: a set bit is not written again.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            });
        });
    }
    let plain = |words: Vec<AtomicU64>| words.into_iter().map(AtomicU64::into_inner).collect();
    bits.into_iter().map(plain).collect()
}
