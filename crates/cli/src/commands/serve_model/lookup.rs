//! The node of an id.

use std::hash::{BuildHasher, RandomState};

use gnarl_graph::{UserIdKind, UserIds};
use hashbrown::HashTable;

use super::body::Id;

/// Ids of the nodes of one type, and the way to find a node by its id without a pass over all of them.
pub(super) struct Lookup {
    ids: UserIds,
    index: Index,
}

enum Index {
    /// Ids are the nodes' numbers.
    Numbers,
    /// Ids ascend: binary search in the mapped column.
    Ascending,
    /// Nodes by the hash of their ids, which themselves stay in the mapped column: 6 to 12 bytes a node.
    Hashed(HashTable<u32>, RandomState),
}

impl Lookup {
    /// Reads all ids once.
    pub fn new(ids: UserIds) -> Self {
        let integers = ids.kind() == UserIdKind::Integer;
        let nodes = || 0..ids.len() as u64;
        let ascends = |one: u64| match integers {
            true => ids.integer(one - 1) < ids.integer(one),
            false => ids.text(one - 1) < ids.text(one),
        };
        let index = if integers && nodes().all(|node| ids.integer(node) == node as i64) {
            Index::Numbers
        } else if nodes().skip(1).all(ascends) {
            Index::Ascending
        } else {
            hashed(&ids)
        };
        Self { ids, index }
    }

    /// The node with the id `id`; of several with the same id, the first. Integers may be given as texts.
    pub fn find(&self, id: &Id) -> Option<u32> {
        match (self.ids.kind(), id) {
            (UserIdKind::Integer, Id::Integer(id)) => self.integer(*id),
            (UserIdKind::Integer, Id::Text(id)) => self.integer(id.trim().parse().ok()?),
            (UserIdKind::Text, Id::Integer(id)) => self.text(&id.to_string()),
            (UserIdKind::Text, Id::Text(id)) => self.text(id),
        }
    }

    fn integer(&self, id: i64) -> Option<u32> {
        match &self.index {
            Index::Numbers => {
                u32::try_from(id).ok().filter(|&node| (node as usize) < self.ids.len())
            }
            Index::Ascending => self.search(|node| self.ids.integer(node).cmp(&id)),
            Index::Hashed(table, hasher) => {
                let same = |&node: &u32| self.ids.integer(node.into()) == id;
                table.find(hasher.hash_one(id), same).copied()
            }
        }
    }

    fn text(&self, id: &str) -> Option<u32> {
        match &self.index {
            Index::Numbers => None,
            Index::Ascending => self.search(|node| self.ids.text(node).cmp(id)),
            Index::Hashed(table, hasher) => {
                let same = |&node: &u32| self.ids.text(node.into()) == id;
                table.find(hasher.hash_one(id), same).copied()
            }
        }
    }

    /// Binary search: `compare` orders a node's id and the wanted one.
    fn search(&self, compare: impl Fn(u64) -> std::cmp::Ordering) -> Option<u32> {
        let mut range = 0..self.ids.len() as u64;
        while !range.is_empty() {
            let middle = range.start + (range.end - range.start) / 2;
            match compare(middle) {
                std::cmp::Ordering::Equal => return Some(middle as u32),
                std::cmp::Ordering::Less => range.start = middle + 1,
                std::cmp::Ordering::Greater => range.end = middle,
            }
        }
        None
    }
}

fn hashed(ids: &UserIds) -> Index {
    let hasher = RandomState::new();
    let integers = ids.kind() == UserIdKind::Integer;
    let hash = |&node: &u32| match integers {
        true => hasher.hash_one(ids.integer(node.into())),
        false => hasher.hash_one(ids.text(node.into())),
    };
    let same = |one: u32, other: u32| match integers {
        true => ids.integer(one.into()) == ids.integer(other.into()),
        false => ids.text(one.into()) == ids.text(other.into()),
    };
    let mut table = HashTable::with_capacity(ids.len());
    for node in 0..ids.len() as u32 {
        // The first of equal ids stays, as a pass over all of them finds it.
        table.entry(hash(&node), |&other| same(node, other), hash).or_insert(node);
    }
    Index::Hashed(table, hasher)
}
