//! The edges of link prediction, by split.

use gnarl_common::{Buf, Error, Kind, Result};
use gnarl_config::RunConfig;
use gnarl_graph::times::node_times;
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
    /// Times of validation and of test edges; empty if neighbors are not sampled by time.
    pub times: [Vec<i64>; 2],
    /// Times of the nodes of the types of heads and of tails, if neighbors are sampled by time and nodes have some.
    pub node_times: [Option<Buf<i64>>; 2],
    pub triple: Triple,
    pub endpoints: Endpoints,
    pub relations: usize,
    pub names: Vec<String>,
}

impl Edges {
    /// Returns whether a head and a tail are there at the time of a validation edge (`split` 0) or of a test edge.
    pub fn are_there(&self, split: usize, edge: usize, [head, tail]: [u32; 2]) -> bool {
        let Some(&time) = self.times[split].get(edge) else { return true };
        let [of_heads, of_tails] = &self.node_times;
        let there = |times: &Option<Buf<i64>>, node: u32| {
            times.as_ref().is_none_or(|times| times[node as usize] <= time)
        };
        there(of_heads, head) && there(of_tails, tail - self.endpoints.first_tail())
    }

    /// The name of a relation, or its number.
    pub fn name(&self, relation: u32) -> String {
        self.names.get(relation as usize).cloned().unwrap_or_else(|| relation.to_string())
    }
}

/// The edges of a dataset, all of them in memory.
pub(super) struct Loaded {
    /// Training, validation and test edges.
    pub splits: [Triples; 3],
    /// Their times; empty if neighbors are not sampled by time.
    pub times: [Vec<i64>; 3],
    /// Times of the nodes of the types of heads and of tails, likewise.
    pub node_times: [Option<Buf<i64>>; 2],
    pub triple: Triple,
    pub endpoints: Endpoints,
    pub relations: usize,
    pub names: Vec<String>,
    /// Edges excluded from the message graph, for heterogeneous graphs.
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
        let mut times = <[Vec<i64>; 3]>::default();
        let timed = config.samples_by_time();
        reader.each(&mut |edge| {
            let split = edge.split.unwrap_or(0);
            splits[split].push(edge.head, edge.relation, edge.tail + endpoints.first_tail());
            if timed {
                times[split].push(edge.time);
            }
            Ok(())
        })?;
        if splits[0].is_empty() {
            return Err(Error::invalid(format!("{place}: no training edges")));
        }
        let most = splits.iter().map(Triples::len).max().unwrap_or(0);
        check_count(most).map_err(|e| e.context(place.to_string()))?;
        let (relations, names) = reader.relations()?;
        let triple = reader.triple().clone();
        let of_nodes = |name: &str| if timed { node_times(dataset, name) } else { Ok(None) };
        let node_times = [of_nodes(&triple.src)?, of_nodes(&triple.dst)?];
        let held = dataset.plain().is_err().then(|| {
            let types = dataset.manifest().edge_types.iter().map(|t| t.triple.clone());
            let ways = ways_of_type(&types.collect::<Vec<_>>(), &triple);
            let mut held = EdgeSet::new();
            // Times tell which edges pass messages.
            for split in splits[1..].iter().filter(|_| !timed) {
                held.extend(both_ways(&endpoints.in_dataset(split.clone()), |_| ways));
            }
            (triple.clone(), held)
        });
        Ok(Self { splits, times, node_times, triple, endpoints, relations, names, held })
    }
}

impl Loaded {
    /// The edges of all splits with their times, which pass messages to later edges; none if neighbors are not sampled by
    /// time, or edge types of the dataset pass messages.
    pub fn before_any_edge(&self) -> Option<(Triples, Vec<i64>)> {
        if self.times[0].is_empty() || self.held.is_some() {
            return None;
        }
        let [mut all, valid, test] = self.splits.clone();
        for more in [valid, test] {
            all.heads.extend(more.heads);
            all.relations.extend(more.relations);
            all.tails.extend(more.tails);
        }
        Some((all, self.times.concat()))
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
