//! The forms of message graphs.

use gnarl_graph::Triple;
use serde::{Deserialize, Serialize};

/// The form of the message graph of a task of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MessageForm {
    /// No messages: nodes have embeddings alone.
    None,
    /// Edges in both directions, whatever their relation.
    Edges,
    /// An edge type per relation, and one for its reverse.
    Relations,
    /// The edge types of the dataset.
    Types,
}

/// Edge type number `number` of a message graph by relation: those of the relations come first, their reverses follow.
pub(super) fn type_of_relation(node_type: &str, number: usize, relations: usize) -> Triple {
    let rel = match number.checked_sub(relations) {
        None => format!("relation-{number}"),
        Some(number) => format!("reverse-{number}"),
    };
    Triple { src: node_type.into(), rel, dst: node_type.into() }
}
