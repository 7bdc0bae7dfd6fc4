//! The ranks that nodes belong to.

/// The rank that computes each node.
pub trait Owners: Sync {
    /// The rank of a node of a type.
    fn rank_of(&self, node_type: usize, node: u32) -> usize;
}

/// Owners of consecutive ranges of nodes of each type, with about as many inputs each.
#[derive(Debug, Clone)]
pub struct EvenOwners {
    /// The first node of each rank but the first one.
    bounds: Vec<Vec<u32>>,
}

impl EvenOwners {
    /// Ranges for `ranks` ranks over types with so many nodes; a node of a type has so much work.
    pub fn new(nodes: &[usize], ranks: usize, work: impl Fn(usize, u32) -> u64) -> Self {
        let of = |(node_type, &nodes): (usize, &usize)| {
            let work = |node: u32| 1 + work(node_type, node);
            let total: u64 = (0..nodes as u32).map(work).sum();
            let (mut bounds, mut done) = (Vec::new(), 0);
            for node in 0..nodes as u32 {
                while bounds.len() + 1 < ranks
                    && done * ranks as u64 >= total * (bounds.len() as u64 + 1)
                {
                    bounds.push(node);
                }
                done += work(node);
            }
            bounds
        };
        Self { bounds: nodes.iter().enumerate().map(of).collect() }
    }
}

impl Owners for EvenOwners {
    fn rank_of(&self, node_type: usize, node: u32) -> usize {
        self.bounds[node_type].partition_point(|&first| first <= node)
    }
}

/// Owners of parts: parts are dealt to ranks in order.
#[derive(Debug, Clone)]
pub struct PartOwners<P> {
    /// The part of each node of each type.
    parts: Vec<P>,
    num_parts: usize,
    ranks: usize,
}

impl<P: AsRef<[u32]> + Sync> PartOwners<P> {
    /// Owners of `num_parts` parts, not fewer than ranks; `parts` has the part of each node of each type.
    pub fn new(parts: Vec<P>, num_parts: usize, ranks: usize) -> Self {
        Self { parts, num_parts, ranks }
    }
}

impl<P: AsRef<[u32]> + Sync> Owners for PartOwners<P> {
    fn rank_of(&self, node_type: usize, node: u32) -> usize {
        self.parts[node_type].as_ref()[node as usize] as usize * self.ranks / self.num_parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_about_as_much_work_each() {
        let owners = EvenOwners::new(&[100, 0, 2], 4, |_, node| if node < 10 { 90 } else { 0 });
        let ranks: Vec<usize> = (0..100).map(|node| owners.rank_of(0, node)).collect();
        assert!(ranks.is_sorted() && ranks[99] == 3);
        assert_eq!((0..4).map(|r| ranks.iter().filter(|&&of| of == r).count()).max(), Some(91));
        assert!(ranks.iter().filter(|&&of| of == 0).count() <= 4);
        assert!((0..2).all(|node| owners.rank_of(2, node) < 4));
    }

    #[test]
    fn parts_are_dealt_in_order() {
        let owners = PartOwners::new(vec![vec![0, 3, 1, 2]], 4, 2);
        assert_eq!([0, 1, 2, 3].map(|node| owners.rank_of(0, node)), [0, 1, 0, 1]);
    }
}
