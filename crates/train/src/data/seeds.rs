//! Seeds of batches.

/// Seeds of a batch, distinct, one list per type with endpoints.
#[derive(Debug, Default)]
pub(crate) struct Seeds {
    /// The nodes. One is there several times if it is asked for at several times.
    pub nodes: Vec<Vec<u32>>,
    /// Time of each; empty for seeds at the times of nodes, or at none.
    pub times: Vec<Vec<i64>>,
}

impl Seeds {
    /// Number of all seeds.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }
}

impl From<Vec<Vec<u32>>> for Seeds {
    fn from(nodes: Vec<Vec<u32>>) -> Self {
        Self { nodes, times: Vec::new() }
    }
}
