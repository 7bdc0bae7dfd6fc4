//! Ranges of nodes that are computed at a time.
//!
//! Bounded by inputs, never by nodes alone: where hubs sit together, few nodes have many inputs.

/// Cuts `nodes` into consecutive ranges of at most `most_nodes` nodes and, but for single nodes with more, at most
/// `most_inputs` inputs.
pub struct Ranges<I: Iterator<Item = u32>, F> {
    nodes: std::iter::Peekable<I>,
    inputs: F,
    most_nodes: usize,
    most_inputs: usize,
}

impl<I: Iterator<Item = u32>, F: Fn(u32) -> usize> Ranges<I, F> {
    /// Ranges of `nodes`, each with the number of inputs that `inputs` says.
    pub fn new(nodes: I, inputs: F, most_nodes: usize, most_inputs: usize) -> Self {
        Self { nodes: nodes.peekable(), inputs, most_nodes: most_nodes.max(1), most_inputs }
    }
}

impl<I: Iterator<Item = u32>, F: Fn(u32) -> usize> Iterator for Ranges<I, F> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let mut range = vec![self.nodes.next()?];
        let mut inputs = (self.inputs)(range[0]);
        while range.len() < self.most_nodes {
            let Some(&node) = self.nodes.peek() else { break };
            inputs += (self.inputs)(node);
            if inputs > self.most_inputs {
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
    fn ranges_are_bounded_by_nodes_and_by_inputs() {
        let inputs = |node: u32| if node == 4 { 100 } else { node as usize % 3 };
        let cut =
            |nodes, edges| -> Vec<Vec<u32>> { Ranges::new(0..10, inputs, nodes, edges).collect() };
        assert_eq!(cut(4, 1000), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        // The hub is alone.
        assert_eq!(cut(100, 3), [vec![0, 1, 2, 3], vec![4], vec![5, 6, 7], vec![8, 9]]);
        assert_eq!(cut(0, 1000).len(), 10, "a range has a node at least");
        assert_eq!(Ranges::new(0..0, inputs, 3, 3).count(), 0);
    }
}
