//! The nodes that layers are computed for, found from the last layer backwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gnarl_common::Result;

use crate::bits::mark;
use crate::layers::Layers;
use crate::needed::Needed;
use crate::order::Sequence;
use crate::peers::{Peers, requested};
use crate::places::Places;

/// Nodes whose lists are read together.
const NODES: usize = 1 << 12;

/// The nodes of an inference by layer, on one of the ranks.
pub(crate) struct Plan {
    /// The wanted nodes of each type, of all ranks, by number.
    pub wanted: Vec<Needed>,
    /// The rows of each layer and type, the first layer first.
    pub layers: Vec<Vec<Places>>,
}

/// Plans the layers before the outputs of the nodes `wanted`.
///
/// # Errors
/// If lists cannot be read, or a rank fails.
pub(crate) fn plan<L: Layers>(
    layers: &L,
    wanted: &[(usize, Vec<u32>)],
    sequences: &[Option<Arc<Sequence>>],
    peers: Option<&Peers<'_>>,
) -> Result<Plan> {
    let counts = layers.num_nodes();
    let mut last: Vec<Vec<u64>> = counts.iter().map(|n| vec![0; n.div_ceil(64)]).collect();
    for (node_type, nodes) in wanted {
        nodes.iter().for_each(|&node| mark(&mut last[*node_type], node));
    }
    let places = |own: Vec<Vec<u64>>, fetched: Vec<Option<Vec<u64>>>| -> Vec<Places> {
        let each = own.into_iter().zip(fetched).zip(&counts).zip(sequences);
        let of = |(((own, fetched), &nodes), sequence): (((_, _), _), &Option<Arc<Sequence>>)| {
            Places::new(sequence.as_ref(), nodes, own, fetched)
        };
        each.map(of).collect()
    };
    let none = || vec![None; counts.len()];
    let wanted: Vec<Needed> =
        counts.iter().zip(&last).map(|(&n, bits)| Needed::of_bits(n, bits.clone())).collect();
    let own = match peers {
        Some(peers) => peers.own(last),
        None => last,
    };
    let mut all = vec![places(own, none())];
    for layer in (1..layers.num_layers()).rev() {
        // The last of `all` so far is what this layer is computed for.
        let needed = all.last().map_or(&[][..], |needed| needed);
        let before = match peers {
            // A node reads its own row: all nodes need all, and no list has to be read to know that.
            None if needed.iter().all(Places::is_all_own) => needed.to_vec(),
            None => places(read_by(layers, layer, needed, &counts)?, none()),
            Some(peers) => {
                let (own, fetched) = requested(peers, read_by(layers, layer, needed, &counts)?)?;
                places(own, fetched.into_iter().map(Some).collect())
            }
        };
        all.push(before);
    }
    all.reverse();
    Ok(Plan { wanted, layers: all })
}

/// A bit for each node that a layer reads for the own nodes of `needed`.
fn read_by<L: Layers>(
    layers: &L,
    layer: usize,
    needed: &[Places],
    counts: &[usize],
) -> Result<Vec<Vec<u64>>> {
    let bits: Vec<Vec<AtomicU64>> =
        counts.iter().map(|n| (0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()).collect();
    for (node_type, needed) in needed.iter().enumerate() {
        needed.for_each_own(NODES, |nodes| {
            layers.inputs_of(layer, node_type, nodes, &mut |of, input| {
                let word = &bits[of][input as usize / 64];
                let bit = 1 << (input % 64);
                // Hubs are met over and over: a set bit is not written again.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            })
        })?;
    }
    let plain = |words: Vec<AtomicU64>| words.into_iter().map(AtomicU64::into_inner).collect();
    Ok(bits.into_iter().map(plain).collect())
}
