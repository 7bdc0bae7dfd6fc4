//! Fan-outs by edge type and hop.

use std::collections::BTreeMap;

use gnarl_common::{Error, Result};
use gnarl_graph::Triple;
use gnarl_graph::blocks::Schema;

/// Fan-outs by edge type: the maximum numbers of in-neighbors of a node over it, the seeds' hop
/// first. -1 takes all, 0 none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeteroFanouts {
    default: Vec<i64>,
    of: BTreeMap<Triple, Vec<i64>>,
}

impl HeteroFanouts {
    /// Default fan-outs of all edge types; their number is the number of hops.
    pub fn new(default: &[i64]) -> Self {
        Self { default: default.to_vec(), of: BTreeMap::new() }
    }

    /// Fan-outs along a meta-path, which ends at the seeds: each hop goes over the edge type at
    /// that position, the seeds' hop first, and over no other.
    ///
    /// # Errors
    /// If there are not as many fan-outs as edge types, or one does not end where the next begins.
    pub fn along(path: &[Triple], fanouts: &[i64]) -> Result<Self> {
        if path.len() != fanouts.len() {
            let (hops, found) = (path.len(), fanouts.len());
            let message =
                format!("invalid fan-outs of a meta-path: expected {hops}, found {found}");
            return Err(Error::usage(message).hint("give one fan-out per hop"));
        }
        if let Some(pair) = path.windows(2).find(|pair| pair[0].src != pair[1].dst) {
            let message = format!("invalid meta-path: '{}' is followed by '{}'", pair[0], pair[1]);
            return Err(Error::usage(message).hint(
                "messages of a hop come from the nodes that the next edge type ends in: give the \
                 seeds' hop first",
            ));
        }
        let mut all = Self::new(&vec![0; path.len()]);
        for (hop, (edge_type, &fanout)) in path.iter().zip(fanouts).enumerate() {
            all.of.entry(edge_type.clone()).or_insert_with(|| vec![0; path.len()])[hop] = fanout;
        }
        Ok(all)
    }

    /// One hop over the edge types of hop `hop`, taking all neighbors.
    ///
    /// # Panics
    /// If an edge type has no fan-out for that hop.
    pub fn in_full(&self, hop: usize) -> Self {
        let full = |fanouts: &[i64]| vec![if fanouts[hop] == 0 { 0 } else { -1 }];
        let of = self.of.iter().map(|(edge_type, fanouts)| (edge_type.clone(), full(fanouts)));
        Self { default: full(&self.default), of: of.collect() }
    }

    /// Sets the fan-outs of one edge type.
    #[must_use]
    pub fn with(mut self, edge_type: Triple, fanouts: &[i64]) -> Self {
        self.of.insert(edge_type, fanouts.to_vec());
        self
    }

    /// Number of hops.
    pub fn hops(&self) -> usize {
        self.default.len()
    }

    /// The fan-outs of edge types that have none of their own.
    pub fn of_others(&self) -> &[i64] {
        &self.default
    }

    /// The edge types that have fan-outs of their own, and these.
    pub fn of_types(&self) -> impl Iterator<Item = (&Triple, &[i64])> {
        self.of.iter().map(|(edge_type, fanouts)| (edge_type, &fanouts[..]))
    }

    /// Per edge type of `schema` the fan-out of each hop; `u32::MAX` takes all.
    pub(super) fn resolve(&self, schema: &Schema) -> Result<Vec<Vec<u32>>> {
        if self.default.is_empty() {
            return Err(Error::usage("a neighbor sampler requires at least one fan-out"));
        }
        self.of.keys().try_for_each(|triple| schema.edge_type(triple).map(drop))?;
        schema.edge_types().iter().map(|triple| self.of_type(triple)).collect()
    }

    fn of_type(&self, triple: &Triple) -> Result<Vec<u32>> {
        let fanouts = self.of.get(triple).unwrap_or(&self.default);
        if fanouts.len() != self.hops() {
            let (found, hops) = (fanouts.len(), self.hops());
            let message =
                format!("invalid fan-outs of edge type {triple}: expected {hops}, found {found}");
            return Err(Error::usage(message).hint("give one fan-out per hop; 0 takes none"));
        }
        let parse = |&fanout: &i64| match fanout {
            -1 => Ok(u32::MAX),
            0.. => Ok(u32::try_from(fanout).unwrap_or(u32::MAX)),
            _ => Err(Error::usage(format!("invalid fan-out '{fanout}' of edge type {triple}"))
                .hint("expected a positive number, 0 for none or -1 for all")),
        };
        fanouts.iter().map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_path_has_one_edge_type_a_hop() {
        let path = ["author:writes:paper", "paper:cites:paper", "author:writes:paper"];
        let types: Vec<Triple> = path.iter().map(|name| name.parse().unwrap()).collect();
        let text = HeteroFanouts::along(&types, &[1, 2, 3]).unwrap_err().to_string();
        assert!(
            text.contains("'author:writes:paper' is followed by 'paper:cites:paper'"),
            "{text}"
        );
        let (cites, writes) = (&types[1], &types[0]);
        let path = [cites.clone(), cites.clone(), writes.clone()];
        let along = HeteroFanouts::along(&path, &[5, -1, 3]).unwrap();
        assert_eq!(along.of_type(cites).unwrap(), [5, u32::MAX, 0]);
        assert_eq!(along.of_type(writes).unwrap(), [0, 0, 3]);
        assert_eq!(along.of_type(&"a:b:paper".parse().unwrap()).unwrap(), [0, 0, 0]);
        assert_eq!(along.in_full(0).of_type(cites).unwrap(), [u32::MAX]);
        assert_eq!(along.in_full(2).of_type(cites).unwrap(), [0], "not heard in evaluation either");
    }
}
