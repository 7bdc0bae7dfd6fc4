//! How many neighbours to take over each edge type at each hop.

use std::collections::BTreeMap;

use gnarl_graph::{Error, Result, Triple};

use super::schema::Schema;

/// Fan-outs for each edge type: at most how many in-neighbours of a node are taken over it, the
/// seeds' hop first. -1 takes all, 0 none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedFanouts {
    default: Vec<i64>,
    of: BTreeMap<Triple, Vec<i64>>,
}

impl TypedFanouts {
    /// The fan-outs of all edge types that have none of their own; as many hops as there are here.
    pub fn new(default: &[i64]) -> Self {
        Self { default: default.to_vec(), of: BTreeMap::new() }
    }

    /// Gives an edge type fan-outs of its own.
    #[must_use]
    pub fn with(mut self, edge_type: Triple, fanouts: &[i64]) -> Self {
        self.of.insert(edge_type, fanouts.to_vec());
        self
    }

    /// Number of hops.
    pub fn hops(&self) -> usize {
        self.default.len()
    }

    /// For each edge type of `schema` the fan-out of each hop; `u32::MAX` takes all.
    pub(super) fn resolve(&self, schema: &Schema) -> Result<Vec<Vec<u32>>> {
        if self.default.is_empty() {
            return Err(Error::usage("a neighbour sampler needs at least one fan-out"));
        }
        self.of.keys().try_for_each(|triple| schema.edge_type(triple).map(drop))?;
        schema.edge_types().iter().map(|triple| self.of_type(triple)).collect()
    }

    fn of_type(&self, triple: &Triple) -> Result<Vec<u32>> {
        let fanouts = self.of.get(triple).unwrap_or(&self.default);
        if fanouts.len() != self.hops() {
            let (found, hops) = (fanouts.len(), self.hops());
            let message = format!("edge type {triple}: fan-outs for {found} hops of {hops}");
            return Err(Error::usage(message).hint("give one for each hop; 0 takes none"));
        }
        let parse = |&fanout: &i64| match fanout {
            -1 => Ok(u32::MAX),
            0.. => Ok(u32::try_from(fanout).unwrap_or(u32::MAX)),
            _ => Err(Error::usage(format!("edge type {triple}: fan-out {fanout}"))
                .hint("fan-outs are positive, 0 for none, or -1 for all")),
        };
        fanouts.iter().map(parse).collect()
    }
}
