//! Rows that a range copies where they are read by chunks.

use crate::bits::mark;
use crate::layers::Layers;
use crate::rows::Before;

/// The distinct inputs of a range, by type.
pub(crate) struct Copied {
    /// Bytes of a row; 0 for types that are read in place.
    row_bytes: Vec<usize>,
    /// A bit for each input that was counted.
    seen: Vec<Vec<u64>>,
    counted: Vec<(usize, u32)>,
}

impl Copied {
    /// No inputs yet; none if all rows are read in place.
    pub fn new<L: Layers>(layers: &L, before: &Before) -> Option<Self> {
        let counts = layers.num_nodes();
        let bytes = |of| if before.is_chunked(of) { 4 * before.width(of) } else { 0 };
        let row_bytes: Vec<usize> = (0..counts.len()).map(bytes).collect();
        let seen = counts.iter().map(|nodes| vec![0; nodes.div_ceil(64)]).collect();
        let any = row_bytes.iter().any(|&bytes| bytes > 0);
        any.then_some(Self { row_bytes, seen, counted: Vec::new() })
    }

    /// Bytes of the inputs of a node (layer, type, number) that no other node of its range has, which it begins if it is
    /// the `first`.
    pub fn bytes<L: Layers>(
        &mut self,
        layers: &L,
        (layer, node_type, node): (usize, usize, u32),
        first: bool,
    ) -> usize {
        if first {
            for (of, node) in self.counted.drain(..) {
                self.seen[of][node as usize / 64] &= !(1 << (node % 64));
            }
        }
        let mut bytes = 0;
        let counted = layers.inputs_of(layer, node_type, &[node], &mut |of, input| {
            let bits = &mut self.seen[of];
            if bits[input as usize / 64] >> (input % 64) & 1 == 0 {
                mark(bits, input);
                self.counted.push((of, input));
                bytes += self.row_bytes[of];
            }
        });
        match counted {
            Ok(()) => bytes,
            // Gathering the range names the failure.
            Err(_) => self.row_bytes[node_type] * layers.num_inputs(layer, node_type, node),
        }
    }
}
