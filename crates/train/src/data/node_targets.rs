//! Labels and splits of nodes, by local id.

use gnarl_graph::Labels;
use gnarl_graph::splits::{Role, Roles};

use crate::task::objective::Targets;

/// Labels of the nodes of a graph, or of some of them.
#[derive(Debug, Clone)]
pub struct NodeLabels {
    labels: Labels,
    /// The nodes, ascending; none if labels are in the order of local ids.
    nodes: Option<Vec<u32>>,
}

impl NodeLabels {
    /// Labels of all nodes, by local id.
    pub fn all(labels: Labels) -> Self {
        Self { labels, nodes: None }
    }

    /// Labels of `nodes` alone, which ascend.
    #[cfg(feature = "serve")]
    pub fn some(labels: Labels, nodes: Vec<u32>) -> Self {
        debug_assert!(nodes.is_sorted());
        Self { labels, nodes: Some(nodes) }
    }

    /// The stored labels: their kind, and how many classes or labels there are.
    pub fn stored(&self) -> &Labels {
        &self.labels
    }

    /// True if a node has a label; false for nodes without a row.
    #[cfg(feature = "serve")]
    pub fn has(&self, node: usize) -> bool {
        self.row(node as u32).is_some_and(|row| self.labels.has(row as usize))
    }

    /// The labels of `nodes`, which all have one.
    pub fn of(&self, nodes: &[u32]) -> Targets {
        match &self.nodes {
            None => Targets::of(&self.labels, nodes),
            Some(_) => {
                let rows = nodes.iter().map(|&node| self.row(node));
                let rows: Option<Vec<u32>> = rows.collect();
                Targets::of(&self.labels, &rows.expect("targets have labels"))
            }
        }
    }

    fn row(&self, node: u32) -> Option<u32> {
        match &self.nodes {
            None => Some(node),
            Some(nodes) => nodes.binary_search(&node).ok().map(|row| row as u32),
        }
    }
}

/// Targets of the nodes of a graph, or of a part of one, by local id.
#[derive(Debug, Clone)]
pub struct NodeTargets {
    /// Their labels.
    pub labels: NodeLabels,
    /// Columns of predictions.
    pub outputs: usize,
    /// Training nodes, ascending; core nodes only.
    pub train: Vec<u32>,
    /// Validation nodes.
    pub valid: Vec<u32>,
    /// Test nodes.
    pub test: Vec<u32>,
    /// True for each of the validation, test and training nodes that are scored.
    pub scored: [bool; 3],
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
        let labels = NodeLabels::all(labels);
        Self { labels, outputs, train, valid, test, scored: [true, true, false] }
    }

    /// The validation, the test and the training nodes that are scored.
    pub fn scored(&self) -> [&[u32]; 3] {
        let nodes = [&self.valid[..], &self.test, &self.train];
        [0, 1, 2].map(|split| if self.scored[split] { nodes[split] } else { &[] })
    }
}
