//! Walks in a heterogeneous graph.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::Triple;

use crate::HeteroSampleGraph;

/// Random walks whose steps follow given edge types (metapath2vec: Dong et al., KDD 2017, section
/// 3.2), each against its direction: from a node of the destination type to one of its
/// in-neighbors of the source type.
///
/// So `item:rated_by:user` leads from a user to an item, and `user:rates:item` from there to
/// another user. A walk is a pure function of the key, its number, its start and the path; it ends
/// early at a node without in-neighbors over the step's edge type.
///
/// ```
/// use gnarl_common::rng::Key;
/// use gnarl_graph::{Csc, Triple};
/// use gnarl_sample::{MetaPathWalk, HeteroSampleGraph};
///
/// let rated: Triple = "item:rated_by:user".parse()?;
/// let rates: Triple = "user:rates:item".parse()?;
/// let graph = HeteroSampleGraph::new()
///     .with_nodes("user", 2)?
///     .with_nodes("item", 1)?
///     .with_edges(&rated, Csc::from_edges(2, &[(0, 0), (0, 1)]))?
///     .with_edges(&rates, Csc::from_edges(1, &[(1, 0)]))?;
/// let walk = MetaPathWalk::new(&graph, &[rated, rates], 3)?; // the path, and its start again
/// let mut nodes = Vec::new();
/// walk.walk(0, 0, Key::new(1), &mut nodes)?;
/// assert_eq!(nodes, [0, 0, 1, 0]); // user 0, item 0, user 1, item 0
/// # Ok::<(), gnarl_common::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MetaPathWalk {
    graph: HeteroSampleGraph,
    path: Vec<usize>,
    length: usize,
}

impl MetaPathWalk {
    /// Walks of `length` steps over the edge types of `path`, which begins anew when it is at its
    /// end.
    ///
    /// # Errors
    /// If `path` or `length` is empty, the graph lacks an edge type, or one does not begin at the
    /// node type that the one before leads to.
    pub fn new(graph: &HeteroSampleGraph, path: &[Triple], length: usize) -> Result<Self> {
        if path.is_empty() || length == 0 {
            return Err(Error::usage(
                "a meta-path walk requires at least one edge type and one step",
            ));
        }
        let find = |triple| graph.schema().edge_type(triple);
        let numbers = path.iter().map(find).collect::<Result<Vec<_>>>()?;
        for step in 1..length.min(path.len() + 1) {
            let (last, next) = (&path[step - 1], &path[step % path.len()]);
            if last.src != next.dst {
                return Err(Error::usage(format!(
                    "meta-path: {last} leads to '{}' nodes, but {next} starts from '{}' nodes",
                    last.src, next.dst
                ))
                .hint("steps lead from an edge type's destinations to its sources"));
            }
        }
        Ok(Self { graph: graph.clone(), path: numbers, length })
    }

    /// Number of the node type of the start and of the nodes after each step, `length + 1` values.
    pub fn node_types(&self) -> Vec<usize> {
        let ends = |step: usize| self.graph.schema().ends(self.path[step % self.path.len()]);
        std::iter::once(ends(0).1).chain((0..self.length).map(|step| ends(step).0)).collect()
    }

    /// Appends walk number `number` from `start` to `out`: the start, then the node after each
    /// step. Walks of the same key and number make the same choices, from whatever start.
    ///
    /// # Errors
    /// If `start` is not a node of the type the path begins at, or a list is not inside the graph.
    pub fn walk(&self, start: u32, number: u64, key: Key, out: &mut Vec<u32>) -> Result<()> {
        let schema = self.graph.schema();
        let node_type = schema.ends(self.path[0]).1;
        let (nodes, name) = (self.graph.num_nodes(node_type), &schema.node_types()[node_type]);
        if start as usize >= nodes {
            let message = format!("start {start} is not one of the {nodes} nodes of type '{name}'");
            return Err(Error::invalid(message));
        }
        out.push(start);
        let (key, mut node) = (key.with(number), start);
        for step in 0..self.length {
            let view = self.graph.view(self.path[step % self.path.len()]);
            let (from, degree) = view.list(node)?;
            if degree == 0 {
                break;
            }
            node = view.source(from + key.with(step as u64).below(1, degree.into()) as usize)?;
            out.push(node);
        }
        Ok(())
    }
}
