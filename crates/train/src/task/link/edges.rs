//! The edges of link prediction, by split.

use gnarl_common::{Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, Triple};

use super::endpoints::Endpoints;
use super::reader::EdgeReader;
use crate::data::asked::ways_of_type;
use crate::data::edge_set::{EdgeSet, both_ways};
use crate::data::target_edges::TargetEdges;

/// Edges with their relations. Tails are numbered after heads where the two are of different types.
pub(super) struct Edges {
    pub train: Box<dyn TargetEdges>,
    pub valid: Triples,
    pub test: Triples,
    pub triple: Triple,
    pub endpoints: Endpoints,
    pub relations: usize,
    pub names: Vec<String>,
}

impl Edges {
    /// The name of a relation, or its number.
    pub fn name(&self, relation: u32) -> String {
        self.names.get(relation as usize).cloned().unwrap_or_else(|| relation.to_string())
    }
}

/// The edges of a dataset, all of them in memory.
pub(super) struct Loaded {
    /// Training, validation and test edges.
    pub splits: [Triples; 3],
    pub triple: Triple,
    pub endpoints: Endpoints,
    pub relations: usize,
    pub names: Vec<String>,
    /// Held-out edges in the message graph, for heterogeneous graphs.
    pub held: Option<(Triple, EdgeSet)>,
}

impl Loaded {
    /// Reads the edges of a dataset.
    ///
    /// # Errors
    /// Those of [`EdgeReader`], and if there is no edge to train on, or more than batches can number.
    pub fn open(dataset: &Dataset, config: &RunConfig) -> Result<Self> {
        let reader = EdgeReader::open(dataset, config)?;
        let endpoints = reader.endpoints()?;
        let place = dataset.dir().display();
        let mut splits = <[Triples; 3]>::default();
        reader.each(&mut |edge| {
            let split = &mut splits[edge.split.unwrap_or(0)];
            split.push(edge.head, edge.relation, edge.tail + endpoints.first_tail());
            Ok(())
        })?;
        if splits[0].is_empty() {
            return Err(Error::invalid(format!("{place}: no training edges")));
        }
        let most = splits.iter().map(Triples::len).max().unwrap_or(0);
        check_count(most).map_err(|e| e.context(place.to_string()))?;
        let (relations, names) = reader.relations()?;
        let triple = reader.triple().clone();
        let held = dataset.plain().is_err().then(|| {
            let types = dataset.manifest().edge_types.iter().map(|t| t.triple.clone());
            let ways = ways_of_type(&types.collect::<Vec<_>>(), &triple);
            let mut held = EdgeSet::new();
            for split in &splits[1..] {
                held.extend(both_ways(&endpoints.in_dataset(split.clone()), |_| ways));
            }
            (triple.clone(), held)
        });
        Ok(Self { splits, triple, endpoints, relations, names, held })
    }
}

/// Rejects more edges of a split than batches can number.
///
/// # Errors
/// [`Kind::Limit`] beyond 2³².
pub(crate) fn check_count(edges: usize) -> Result<()> {
    match u32::try_from(edges) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Error::new(Kind::Limit, format!("a split has {edges} edges, more than 2^32"))
                .hint("hold out fewer, or import a sample of them"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_edges_than_batches_can_number_are_refused() {
        assert!(check_count(u32::MAX as usize).is_ok());
        let error = check_count(1 << 32).unwrap_err();
        assert!(error.to_string().contains("4294967296 edges"), "{error}");
    }
}
