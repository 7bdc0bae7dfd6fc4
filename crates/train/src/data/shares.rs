//! Assignment of work to ranks: even shares, and nodes of a partitioned graph.

use gnarl_sample::parts::Routes;

/// Every rank's share: its parts where there are as many as ranks, else a piece of a part it shares
/// with other local ranks. Ranks of a machine are consecutive, and so are its parts, so that a
/// rank's nodes are on its own machine.
pub struct Shares<'a> {
    nodes: &'a Routes,
    /// First new id of each rank, and the number of nodes.
    bounds: Vec<u64>,
}

impl<'a> Shares<'a> {
    /// The shares of `size` ranks.
    pub fn new(nodes: &'a Routes, size: usize) -> Self {
        let ranges = nodes.ids().starts();
        let parts = ranges.len() - 1;
        let bound = |rank: usize| match parts >= size {
            true => ranges[first_part(rank, size, parts)],
            false => {
                let part = rank * parts / size;
                // Ranks of the part, of which this is number `rank - first`.
                let (first, end) =
                    (first_rank(part, size, parts), first_rank(part + 1, size, parts));
                let range = ranges[part]..ranges[part + 1];
                range.start
                    + (range.end - range.start) * (rank - first) as u64 / (end - first) as u64
            }
        };
        let mut bounds: Vec<u64> = (0..size).map(bound).collect();
        bounds.push(ranges[parts]);
        Self { nodes, bounds }
    }

    /// The rank of a node, and its row among that rank's nodes.
    pub fn place(&self, node: u32) -> (usize, u64) {
        let new = self.nodes.ids().new_id(node as usize);
        let rank = self.bounds.partition_point(|&first| first <= new) - 1;
        (rank, new - self.bounds[rank])
    }
}

/// The parts that `ranks` of `size` have between them. Several ranks may share one.
#[cfg_attr(
    not(any(feature = "serve", test)),
    expect(dead_code, reason = "hosts have parts with servers")
)]
pub fn parts_of(
    ranks: std::ops::Range<usize>,
    size: usize,
    parts: usize,
) -> std::ops::Range<usize> {
    if parts >= size {
        first_part(ranks.start, size, parts)..first_part(ranks.end, size, parts)
    } else {
        ranks.start * parts / size..((ranks.end - 1) * parts / size + 1)
    }
}

/// The rank that trains a part where parts train alone: one that has it, of those of [`parts_of`].
pub fn trainer_of(part: usize, size: usize, parts: usize) -> usize {
    if parts >= size {
        // The last rank whose first part is not behind this one.
        ((part + 1) * size).div_ceil(parts) - 1
    } else {
        first_rank(part, size, parts)
    }
}

/// The first part of a rank, of as many parts as ranks or more.
fn first_part(rank: usize, size: usize, parts: usize) -> usize {
    rank * parts / size
}

/// The first rank of a part, of fewer parts than ranks.
fn first_rank(part: usize, size: usize, parts: usize) -> usize {
    (part * size).div_ceil(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_trained_by_one_rank_that_has_it() {
        for size in 1..9 {
            for parts in 1..20 {
                for part in 0..parts {
                    let rank = trainer_of(part, size, parts);
                    assert!(rank < size, "part {part} of {parts}, {size} ranks");
                    let own = parts_of(rank..rank + 1, size, parts);
                    assert!(own.contains(&part), "part {part} of {parts}, {size} ranks: {own:?}");
                }
            }
        }
    }
}
