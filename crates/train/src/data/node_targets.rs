//! Labels and splits of nodes, by local id.

use gnarl_graph::Labels;
use gnarl_graph::splits::{Role, Roles};

/// Targets of the nodes of a graph, or of a part of one, by local id.
#[derive(Debug, Clone)]
pub struct NodeTargets {
    /// Their labels.
    pub labels: Labels,
    /// Columns of predictions.
    pub outputs: usize,
    /// Training nodes, ascending; core nodes only.
    pub train: Vec<u32>,
    /// Validation nodes.
    pub valid: Vec<u32>,
    /// Test nodes.
    pub test: Vec<u32>,
    /// Whether validation and whether test nodes are scored.
    pub scored: [bool; 2],
}

impl NodeTargets {
    /// The targets of core nodes, of which `ids` are the dataset ids in local order.
    pub fn new(
        labels: Labels,
        outputs: usize,
        roles: &Roles,
        ids: impl Iterator<Item = u64> + Clone,
    ) -> Self {
        let with = |role: Role| -> Vec<u32> {
            let found = ids.clone().zip(0..).filter(|(id, _)| roles.get(*id) == role);
            found.map(|(_, node)| node).collect()
        };
        let train = with(Role::Train);
        let valid = with(Role::Valid);
        let test = with(Role::Test);
        Self { labels, outputs, train, valid, test, scored: [true; 2] }
    }

    /// The validation and the test nodes that are scored.
    pub fn scored(&self) -> [&[u32]; 2] {
        let nodes = [&self.valid[..], &self.test];
        [0, 1].map(|split| if self.scored[split] { nodes[split] } else { &[] })
    }
}
