//! The first look at a dataset, of bounded cost.

use gnarl_common::Result;
use serde::{Deserialize, Serialize};

use super::homophily::{Homophily, Mixing};
use crate::dataset::Dataset;
use crate::edges::{EdgeChunk, EdgeStream};
use crate::features::Labels;

/// Counts of a dataset, with the classes and the homophily of one node type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Names and counts of the node types.
    pub nodes: Vec<(String, u64)>,
    /// Names and counts of the edge types.
    pub edges: Vec<(String, u64)>,
    /// Nodes of each class; empty without one label per node, or if there are too many nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<u64>,
    /// Agreement of labels along the edges within the type; none without one label per node, or if there are too many
    /// edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homophily: Option<Homophily>,
}

/// Looks at a dataset, and at the labels of `node_type` if there is one. At most `most` nodes and as many edges are read:
/// classes and homophily of larger graphs are left out.
///
/// # Errors
/// If a column is missing or damaged.
pub fn overview(dataset: &Dataset, node_type: Option<&str>, most: u64) -> Result<Overview> {
    let manifest = dataset.manifest();
    let nodes = manifest.node_types.iter().map(|t| (t.name.clone(), t.count)).collect();
    let edges = manifest.edge_types.iter().map(|t| (t.triple.to_string(), t.count)).collect();
    let found = Overview { nodes, edges, ..Overview::default() };
    let Some(node_type) = node_type else { return Ok(found) };
    if manifest.node_type(node_type)?.count > most {
        return Ok(found);
    }
    let Some(labels) = dataset.labels(node_type)? else { return Ok(found) };
    let Labels::Single { classes: of_nodes, count } = &labels else { return Ok(found) };
    let classes = histogram(of_nodes, *count);
    let within = manifest.edge_types.iter();
    let within =
        || within.clone().filter(|t| t.triple.src == node_type && t.triple.dst == node_type);
    if within().map(|t| t.count).sum::<u64>() > most {
        return Ok(Overview { classes, ..found });
    }
    let mut mixing = Mixing::new(of_nodes, *count);
    let mut chunk = EdgeChunk::default();
    for t in within() {
        let mut edges = dataset.edges_of(&t.triple)?;
        while edges.next_chunk(&mut chunk)? {
            mixing.add(&chunk);
        }
    }
    Ok(Overview { classes, homophily: mixing.finish(), ..found })
}

/// Nodes of each of `count` classes. A label beyond them, which is damage, is left out, and asks for no room.
fn histogram(of_nodes: &[i32], count: usize) -> Vec<u64> {
    let mut classes = vec![0; count];
    for &class in of_nodes {
        if let Some(nodes) = usize::try_from(class).ok().and_then(|class| classes.get_mut(class)) {
            *nodes += 1;
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Attributes, CommunityOptions, community};
    use crate::inspect::inspect;

    #[test]
    fn labels_beyond_the_classes_ask_for_no_room() {
        assert_eq!(histogram(&[0, i32::MAX, -1, 2, 0, 3], 3), [2, 0, 1]);
    }

    #[test]
    fn an_overview_agrees_with_the_description_and_keeps_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let attributes = Attributes { classes: 3, ..Default::default() };
        let options =
            CommunityOptions { nodes: 300, communities: 3, attributes, ..Default::default() };
        let made = community(&options, &dir.path().join("graph")).unwrap().dataset;
        let whole = inspect(&made).unwrap();
        let node_type = whole.nodes[0].name.clone();
        let found = overview(&made, Some(&node_type), 1 << 20).unwrap();
        assert_eq!(found.nodes, [(node_type.clone(), 300)]);
        assert_eq!(found.edges[0].1, whole.edges[0].count);
        assert_eq!(found.classes, whole.nodes[0].labels.as_ref().unwrap().histogram);
        assert_eq!(found.homophily, whole.edges[0].homophily);
        let nodes_alone = overview(&made, Some(&node_type), 300).unwrap();
        assert_eq!((nodes_alone.classes.len(), nodes_alone.homophily), (3, None));
        assert!(overview(&made, Some(&node_type), 299).unwrap().classes.is_empty());
    }
}
