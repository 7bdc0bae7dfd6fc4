//! Loads of nodes under each quota.

use gnarl_graph::EdgeStream;

use crate::balance::constraint::Constraint;
use crate::balance::quota::Quota;
use crate::edge_cut::partitioner::PartitionOptions;

/// Default constraints; the paper's algorithm balances nodes alone.
const DEFAULT_CONSTRAINTS: [Constraint; 2] = [Constraint::Nodes, Constraint::Edges];

/// The quotas of a part, that of nodes first, and the load of every node.
///
/// Memory: 4 bytes a node for the degrees if edges are balanced, a bit for each split that is.
pub(super) struct Loads {
    pub(super) quotas: Vec<Quota>,
    /// In-edges of each node, if they are balanced.
    pub(super) degree: Vec<u32>,
}

impl Loads {
    /// The quotas of `options`, with degrees yet to be counted.
    pub(super) fn new(edges: &dyn EdgeStream, options: &PartitionOptions, paper: bool) -> Self {
        let default = if paper { &[][..] } else { &DEFAULT_CONSTRAINTS };
        let chosen = options.constraints.as_deref().unwrap_or(default);
        let (nodes, edges) = (edges.num_nodes(), edges.num_edges());
        let quotas = Quota::all(options, chosen, nodes, edges);
        let counted = quotas.iter().any(Quota::is_of_degrees);
        Self { quotas, degree: vec![0; if counted { nodes as usize } else { 0 }] }
    }

    /// Number of quotas.
    pub(super) fn len(&self) -> usize {
        self.quotas.len()
    }

    /// The load of node `v` under each quota.
    pub(super) fn of(&self, v: usize) -> impl Iterator<Item = u64> + Clone {
        let degree = self.degree.get(v).copied().unwrap_or(0);
        self.quotas.iter().map(move |quota| quota.of(v, degree))
    }

    /// Sets `weights`, one per quota, to the load of node `v`.
    #[inline(always)]
    pub(super) fn weigh(&self, v: usize, weights: &mut [u64]) {
        weights.iter_mut().zip(self.of(v)).for_each(|(weight, of)| *weight = of);
    }

    /// The total load of `nodes` nodes.
    pub(super) fn totals(&self, nodes: usize) -> Vec<u64> {
        let mut totals = vec![0; self.len()];
        (0..nodes).for_each(|v| totals.iter_mut().zip(self.of(v)).for_each(|(t, w)| *t += w));
        totals
    }

    /// The cap of a part under each quota.
    pub(super) fn caps(&self) -> Vec<u64> {
        self.quotas.iter().map(|quota| quota.cap).collect()
    }
}
