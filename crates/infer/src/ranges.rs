//! Ranges of nodes that are computed at a time.
//!
//! Bounded by the bytes of inputs, never by nodes alone: where hubs sit together, few nodes have many inputs.

/// Says by the nodes that a range has whether it gains by more.
pub type Gains<'a> = Box<dyn Fn(&[u32]) -> bool + 'a>;

/// Most nodes of a range.
pub struct MostNodes<'a> {
    /// Of a range that does not gain by more.
    pub usual: usize,
    /// Of one that gains.
    pub large: usize,
    /// Tells the two apart.
    pub gains: Gains<'a>,
}

impl MostNodes<'_> {
    /// As many for all ranges.
    pub fn all(nodes: usize) -> Self {
        Self { usual: nodes, large: nodes, gains: Box::new(|_| false) }
    }
}

/// Cuts `nodes` into consecutive ranges of bounded numbers of nodes and, but for single nodes with more, of at most
/// `most_bytes` bytes.
pub struct Ranges<'a, I: Iterator<Item = u32>, F> {
    nodes: std::iter::Peekable<I>,
    bytes: F,
    most_nodes: MostNodes<'a>,
    most_bytes: usize,
}

impl<'a, I: Iterator<Item = u32>, F: FnMut(u32, bool) -> usize> Ranges<'a, I, F> {
    /// Ranges of `nodes`, of which each takes the bytes that `bytes` says beside those before it in a range; its flag is
    /// true for the first one.
    pub fn new(nodes: I, bytes: F, most_nodes: MostNodes<'a>, most_bytes: usize) -> Self {
        Self { nodes: nodes.peekable(), bytes, most_nodes, most_bytes }
    }
}

impl<I: Iterator<Item = u32>, F: FnMut(u32, bool) -> usize> Iterator for Ranges<'_, I, F> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let mut range = vec![self.nodes.next()?];
        let mut bytes = (self.bytes)(range[0], true);
        let MostNodes { usual, large, gains } = &self.most_nodes;
        let mut most = *usual;
        loop {
            if range.len() == *usual && gains(&range) {
                most = *large;
            }
            if range.len() >= most {
                break;
            }
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
        let cut = |nodes, most| -> Vec<Vec<u32>> {
            Ranges::new(0..10, bytes, MostNodes::all(nodes), most).collect()
        };
        assert_eq!(cut(4, 1000), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        // The hub is alone.
        assert_eq!(cut(100, 3), [vec![0, 1, 2, 3], vec![4], vec![5, 6, 7], vec![8, 9]]);
        assert_eq!(cut(0, 1000).len(), 10, "a range has a node at least");
        assert_eq!(Ranges::new(0..0, bytes, MostNodes::all(3), 3).count(), 0);
    }

    #[test]
    fn ranges_that_gain_have_more_nodes() {
        let most = |gains: fn(&[u32]) -> bool| {
            let nodes = MostNodes { usual: 2, large: 5, gains: Box::new(gains) };
            Ranges::new(0..10, |_, _| 1, nodes, 4).map(|range| range.len()).collect::<Vec<_>>()
        };
        assert_eq!(most(|_| false), [2; 5]);
        assert_eq!(most(|range| range == [2, 3]), [2, 4, 2, 2], "by their bytes");
    }
}
