//! The node and edge types, by index.

use gnarl_common::rng::{Key, mix};
use gnarl_common::{Error, Result};

use crate::manifest::{Manifest, Triple};

/// The types of a graph's nodes and edges. Blocks and batches refer to them by index, in the order
/// given here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    node_types: Vec<String>,
    edge_types: Vec<Triple>,
    /// Indices of each edge type's source and destination type.
    ends: Vec<(usize, usize)>,
}

impl Schema {
    /// The types of a dataset, in its order.
    ///
    /// # Errors
    /// If an edge type joins a node type that is not there.
    pub fn of(manifest: &Manifest) -> Result<Self> {
        let mut schema = Self::default();
        manifest.node_types.iter().for_each(|t| schema.add_node_type(&t.name));
        for t in &manifest.edge_types {
            let ends = (schema.node_type(&t.triple.src)?, schema.node_type(&t.triple.dst)?);
            schema.add_edge_type(t.triple.clone(), ends.0, ends.1);
        }
        Ok(schema)
    }

    /// Adds a node type, whose index is the number of types before.
    pub fn add_node_type(&mut self, name: &str) {
        self.node_types.push(name.into());
    }

    /// Adds an edge type between the node types of indices `src` and `dst`.
    pub fn add_edge_type(&mut self, triple: Triple, src: usize, dst: usize) {
        self.edge_types.push(triple);
        self.ends.push((src, dst));
    }

    /// Names of the node types.
    pub fn node_types(&self) -> &[String] {
        &self.node_types
    }

    /// Names of the edge types.
    pub fn edge_types(&self) -> &[Triple] {
        &self.edge_types
    }

    /// Indices of the source and destination node types of edge type `edge_type`.
    pub fn ends(&self, edge_type: usize) -> (usize, usize) {
        self.ends[edge_type]
    }

    /// Index of the node type `name`.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn node_type(&self, name: &str) -> Result<usize> {
        self.node_types.iter().position(|known| known == name).ok_or_else(|| {
            Error::usage(format!("unknown node type '{name}'"))
                .hint(format!("there are: {}", self.node_types.join(", ")))
        })
    }

    /// Index of the edge type `triple`.
    ///
    /// # Errors
    /// Lists the known ones if there is none.
    pub fn edge_type(&self, triple: &Triple) -> Result<usize> {
        self.edge_types.iter().position(|known| known == triple).ok_or_else(|| {
            let known: Vec<String> = self.edge_types.iter().map(Triple::to_string).collect();
            Error::usage(format!("unknown edge type '{triple}'"))
                .hint(format!("there are: {}", known.join(", ")))
        })
    }

    /// Indices of the edge types in the order of their names, which does not depend on any file's
    /// order.
    pub fn by_name(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.edge_types.len()).collect();
        order.sort_unstable_by_key(|&e| &self.edge_types[e]);
        order
    }

    /// The key of draws for nodes of a type, a function of its name.
    pub fn node_key(&self, node_type: usize) -> Key {
        Key::new(hash(&self.node_types[node_type]))
    }

    /// The key of draws over an edge type, a function of its name. The only edge type of a graph
    /// has `key` itself, so that a homogeneous graph may be sampled as a heterogeneous one.
    pub fn draw_key(&self, key: Key, edge_type: usize) -> Key {
        match self.edge_types.len() {
            1 => key,
            _ => key.with(hash(&self.edge_types[edge_type].to_string())),
        }
    }
}

/// A hash of a name, equal on every machine.
fn hash(name: &str) -> u64 {
    name.bytes().fold(name.len() as u64, |sum, byte| mix(sum.rotate_left(8) ^ u64::from(byte)))
}
