//! The ids that the user gave to nodes.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use gnarl_common::{Buf, Error, Result};

use crate::dataset::Dataset;
use crate::manifest::{DEFAULT_NODE_TYPE, NodeType};
use crate::names::Names;

/// Ids compared between two releases of their pages.
const PIECE: usize = 1 << 16;

/// The type of the ids of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIdKind {
    /// Integers: [`UserIds::integer`].
    Integer,
    /// Texts: [`UserIds::text`].
    Text,
}

/// The ids that the user gave to the nodes of one type, by node. They are mapped, not read.
///
/// In a part, nodes are local, halo nodes too, and ids are those in the whole graph.
#[derive(Debug, Clone)]
pub struct UserIds {
    /// What an id is one of, for messages: `node`, or the name of the node type.
    noun: String,
    count: usize,
    stored: Stored,
}

#[derive(Debug, Clone)]
enum Stored {
    /// Nodes were not renumbered.
    Numbers,
    /// Nor were those of the partitioned dataset that this is a part of.
    Originals(Buf<u64>),
    Integers(Buf<i64>),
    Texts(Names),
}

impl UserIds {
    /// The ids of the nodes of `node_type`.
    ///
    /// # Errors
    /// If the node type does not exist, or its columns are damaged (see [`Names::of_nodes`]).
    pub fn open(dataset: &Dataset, node_type: &str) -> Result<Self> {
        let NodeType { name, count, .. } = dataset.manifest().node_type(node_type)?;
        let noun = if name == DEFAULT_NODE_TYPE { "node" } else { name };
        let (stored, found) = if let Some(ids) = dataset.node_column(node_type, "user_id")? {
            (Stored::Integers(ids.values()?), ids.rows())
        } else if let Some(ids) = Names::of_nodes(dataset, node_type, "user_id")? {
            let found = ids.len();
            (Stored::Texts(ids), found)
        } else if let Some(ids) = dataset.node_column(node_type, "orig_id")? {
            (Stored::Originals(ids.values()?), ids.rows())
        } else {
            (Stored::Numbers, *count as usize)
        };
        if found as u64 != *count {
            return Err(Error::invalid(format!(
                "{}: {count} nodes of type {name} have {found} user ids",
                dataset.dir().display()
            )));
        }
        Ok(Self { noun: noun.into(), count: found, stored })
    }

    /// The type of the ids.
    pub fn kind(&self) -> UserIdKind {
        match self.stored {
            Stored::Texts(_) => UserIdKind::Text,
            _ => UserIdKind::Integer,
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True without any node.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The id of `node`.
    ///
    /// # Panics
    /// If ids are texts, or there are at most `node` nodes.
    pub fn integer(&self, node: u64) -> i64 {
        assert!(node < self.count as u64, "node {node} of {}", self.count);
        match &self.stored {
            Stored::Numbers => node as i64,
            Stored::Originals(ids) => ids[node as usize] as i64,
            Stored::Integers(ids) => ids[node as usize],
            Stored::Texts(_) => panic!("ids of {} nodes are texts", self.noun),
        }
    }

    /// The id of `node`.
    ///
    /// # Panics
    /// If ids are integers, or there are at most `node` nodes.
    pub fn text(&self, node: u64) -> &str {
        match &self.stored {
            Stored::Texts(ids) => ids.get(node as usize),
            _ => panic!("ids of {} nodes are integers", self.noun),
        }
    }

    /// The nodes with the given ids, one per line of a text, in the order of the lines. An id may
    /// be on several lines. Memory grows with the lines, not with the nodes, which are passed over
    /// once.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::InvalidInput`] naming the first line (from 1) without a known id.
    pub fn find(&self, ids: &[&str]) -> Result<Vec<u64>> {
        let nodes = match &self.stored {
            Stored::Texts(names) => {
                let wanted: Vec<_> = ids.iter().map(|&id| Some(id)).collect();
                let forget = |range: Range<usize>| names.forget(range.start, range.end);
                locate(&wanted, self.count, |node| names.get(node), forget)
            }
            stored => {
                let wanted: Vec<_> = ids.iter().map(|id| id.trim().parse::<i64>().ok()).collect();
                match stored {
                    Stored::Integers(ids) => {
                        locate(&wanted, self.count, |node| ids[node], |range| ids.forget(range))
                    }
                    Stored::Originals(ids) => locate(
                        &wanted,
                        self.count,
                        |node| ids[node] as i64,
                        |range| ids.forget(range),
                    ),
                    _ => {
                        let node = |id: &Option<i64>| id.and_then(|id| u64::try_from(id).ok());
                        let known = |&node: &u64| node < self.count as u64;
                        wanted.iter().map(|id| node(id).filter(known)).collect()
                    }
                }
            }
        };
        let found = nodes.into_iter().zip(ids).enumerate();
        found.map(|(line, (node, id))| node.ok_or_else(|| self.unknown(line + 1, id))).collect()
    }

    fn unknown(&self, line: usize, id: &str) -> Error {
        let expected = match &self.stored {
            Stored::Texts(_) => "the text that the input has".into(),
            Stored::Numbers => format!("an integer from 0 and below {}", self.count),
            _ => "an integer that the input has".into(),
        };
        Error::invalid(format!("line {line}: unknown {} id '{id}': expected {expected}", self.noun))
    }
}

/// The node of each wanted id among those of `count` nodes; none if no node has it. `forget` is
/// called with ranges of nodes whose ids are not needed any more.
fn locate<K: Hash + Eq + Copy>(
    wanted: &[Option<K>],
    count: usize,
    id: impl Fn(usize) -> K,
    forget: impl Fn(Range<usize>),
) -> Vec<Option<u64>> {
    let mut nodes: HashMap<K, Option<u64>> =
        wanted.iter().flatten().map(|&id| (id, None)).collect();
    let mut left = nodes.len();
    for start in (0..count).step_by(PIECE) {
        if left == 0 {
            break;
        }
        let end = count.min(start + PIECE);
        for node in start..end {
            if let Some(place @ None) = nodes.get_mut(&id(node)) {
                *place = Some(node as u64);
                left -= 1;
            }
        }
        forget(start..end);
    }
    wanted.iter().map(|id| id.and_then(|id| nodes[&id])).collect()
}
