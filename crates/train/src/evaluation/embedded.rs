//! Embeddings of some nodes.

use gnarl_nn::Tensor;

/// Embeddings of nodes of one type.
pub(crate) struct Embedded {
    /// The nodes, ascending; none if they are all.
    nodes: Option<Vec<u32>>,
    rows: Tensor,
}

impl Embedded {
    /// Those of all nodes, a row each.
    pub fn all(rows: Tensor) -> Self {
        Self { nodes: None, rows }
    }

    /// Those of `nodes`, which ascend, a row each.
    pub fn some(nodes: Vec<u32>, rows: Tensor) -> Self {
        Self { nodes: Some(nodes), rows }
    }

    /// The rows of `nodes`, which are among the own ones, in their order.
    pub fn of(&self, nodes: &[u32]) -> Tensor {
        let mut out = Tensor::scratch(nodes.len(), self.rows.cols());
        let each = out.data_mut().chunks_exact_mut(self.rows.cols().max(1)).zip(nodes);
        each.for_each(|(row, &node)| row.copy_from_slice(self.rows.row(self.place(node))));
        out
    }

    fn place(&self, node: u32) -> usize {
        match &self.nodes {
            None => node as usize,
            Some(nodes) => nodes.partition_point(|&other| other < node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_nodes() {
        let rows = || Tensor::from_vec(3, 1, vec![0.5, 1.5, 2.5]);
        assert_eq!(Embedded::all(rows()).of(&[2, 0, 2]).data(), [2.5, 0.5, 2.5]);
        assert_eq!(Embedded::some(vec![4, 7, 9], rows()).of(&[9, 4]).data(), [2.5, 0.5]);
    }
}
