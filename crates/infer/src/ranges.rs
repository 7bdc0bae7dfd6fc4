//! Ranges of nodes that are computed at a time.
//!
//! Bounded by the bytes of inputs, never by nodes alone: where hubs sit together, few nodes have many inputs.

/// Cuts `nodes` into consecutive ranges of at most `most_nodes` nodes and, but for single nodes with more, at most
/// `most_bytes` bytes.
pub struct Ranges<I: Iterator<Item = u32>, F> {
    nodes: std::iter::Peekable<I>,
    bytes: F,
    most_nodes: usize,
    most_bytes: usize,
}

impl<I: Iterator<Item = u32>, F: FnMut(u32, bool) -> usize> Ranges<I, F> {
    /// Ranges of `nodes`, of which each takes the bytes that `bytes` says beside those before it in a range; its flag is
    /// true for the first one.
    pub fn new(nodes: I, bytes: F, most_nodes: usize, most_bytes: usize) -> Self {
        Self { nodes: nodes.peekable(), bytes, most_nodes: most_nodes.max(1), most_bytes }
    }
}

impl<I: Iterator<Item = u32>, F: FnMut(u32, bool) -> usize> Iterator for Ranges<I, F> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let mut range = vec![self.nodes.next()?];
        let mut bytes = (self.bytes)(range[0], true);
        while range.len() < self.most_nodes {
            let Some(&node) = self.nodes.peek() else { break };
            bytes += (self.bytes)(node, false);
            if bytes > self.most_bytes {
                break;
            }
            range.push(node);
            self.nodes.next();
        }
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_bounded_by_nodes_and_by_bytes() {
        let bytes = |node: u32, _: bool| if node == 4 { 100 } else { node as usize % 3 };
        let cut =
            |nodes, most| -> Vec<Vec<u32>> { Ranges::new(0..10, bytes, nodes, most).collect() };
        assert_eq!(cut(4, 1000), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        // The hub is alone.
        assert_eq!(cut(100, 3), [vec![0, 1, 2, 3], vec![4], vec![5, 6, 7], vec![8, 9]]);
        assert_eq!(cut(0, 1000).len(), 10, "a range has a node at least");
        assert_eq!(Ranges::new(0..0, bytes, 3, 3).count(), 0);
    }
}
