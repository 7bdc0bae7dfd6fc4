//! The edges of a dataset by split.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_config::{RunConfig, TaskSection};
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream, Triple};

use super::endpoints::Endpoints;
use super::relations::{count, names};
use crate::data::asked::{asked, ways_of_type};
use crate::data::edge_set::{EdgeSet, both_ways};

/// Edges with their relations, in dataset ids.
#[derive(Debug)]
pub(super) struct Edges {
    pub train: Triples,
    pub valid: Triples,
    pub test: Triples,
    pub triple: Triple,
    pub endpoints: Endpoints,
    /// Held-out edges in the message graph, for heterogeneous graphs.
    pub held: Option<(Triple, EdgeSet)>,
    pub relations: usize,
    names: Vec<String>,
}

impl Edges {
    /// Reads the edges of a dataset, those of type `task.edge_type` where there are several. Their
    /// column `relation` has relations, `split` held-out edges, as `gnarl import triples` writes
    /// them; without it `[task]` sets the shares, and an edge goes with its reverse.
    ///
    /// # Errors
    /// If no such type is named, there is no edge to train on, relations whose numbers have gaps, or more nodes
    /// than 32 bits count.
    pub fn open(dataset: &Dataset, config: &RunConfig) -> Result<Self> {
        let edge = asked(dataset, config)?;
        let endpoints = endpoints_of(dataset, &edge.triple)?;
        let place = dataset.dir().display();
        let split = dataset.edge_column(&edge.triple, "split")?;
        let split = split.map(|column| column.values::<u8>()).transpose()?;
        let relation = match dataset.edge_column(&edge.triple, "relation")? {
            Some(column) => column.values::<u32>()?.to_vec(),
            None => vec![0; edge.count as usize],
        };
        let drawn = Draw::new(&config.task);
        // Of a symmetric graph one direction is enough.
        let once = split.is_none() && edge.facts.symmetric;
        let mut sets = [Triples::default(), Triples::default(), Triples::default()];
        let mut edges = dataset.edges_of(&edge.triple)?;
        let mut chunk = EdgeChunk::default();
        let mut row = 0;
        edges.reset()?;
        while edges.next_chunk(&mut chunk)? {
            for (head, tail) in chunk.iter() {
                let number = split.as_ref().map_or_else(|| drawn.of(head, tail), |s| s[row]);
                let set = sets.get_mut(number as usize).ok_or_else(|| {
                    Error::invalid(format!("{place}: edge {row}: invalid split '{number}'"))
                        .hint("0 is train, 1 valid, 2 test")
                })?;
                if !once || head < tail {
                    set.push(head as u32, relation[row], tail as u32 + endpoints.first_tail());
                }
                row += 1;
            }
        }
        let [train, valid, test] = sets;
        if train.is_empty() {
            return Err(Error::invalid(format!("{place}: no training edges")));
        }
        let most = [&train, &valid, &test].map(Triples::len).into_iter().max().unwrap_or(0);
        check_count(most).map_err(|e| e.context(place.to_string()))?;
        let relations = count(&relation).map_err(|e| e.context(place.to_string()))?;
        let names = names(dataset, &edge.triple)?;
        let held = dataset.plain().is_err().then(|| {
            let types = dataset.manifest().edge_types.iter().map(|t| t.triple.clone());
            let ways = ways_of_type(&types.collect::<Vec<_>>(), &edge.triple);
            let mut held = both_ways(&endpoints.in_dataset(valid.clone()), |_| ways);
            held.extend(both_ways(&endpoints.in_dataset(test.clone()), |_| ways));
            (edge.triple.clone(), held)
        });
        let triple = edge.triple.clone();
        Ok(Self { train, valid, test, triple, endpoints, held, relations, names })
    }

    /// Names of relations; none if they are numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a relation, or its number.
    pub fn name(&self, relation: u32) -> String {
        self.names.get(relation as usize).cloned().unwrap_or_else(|| relation.to_string())
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

/// The endpoints of edges of a type.
fn endpoints_of(dataset: &Dataset, triple: &Triple) -> Result<Endpoints> {
    let count = |name: &str| dataset.manifest().node_type(name).map(|found| found.count);
    let counts = [count(&triple.src)?, count(&triple.dst)?];
    let nodes = counts[0].saturating_add(counts[1]);
    if u32::try_from(nodes).is_err() {
        return Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32-bit ids")));
    }
    Ok(Endpoints::new([triple.src.clone(), triple.dst.clone()], counts.map(|count| count as u32)))
}

/// Draws the held-out edges by a function of an edge's endpoints, whatever its direction.
struct Draw {
    key: Key,
    valid: f64,
    test: f64,
}

impl Draw {
    fn new(section: &TaskSection) -> Self {
        let key = Key::new(section.split_seed).with(0x11_4e5);
        Self { key, valid: section.valid, test: section.test }
    }

    /// The split of an edge.
    fn of(&self, head: u64, tail: u64) -> u8 {
        let unit = self.key.with(head.min(tail)).unit(head.max(tail));
        match unit {
            unit if unit < self.test => 2,
            unit if unit < self.test + self.valid => 1,
            _ => 0,
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

    #[test]
    fn an_edge_is_held_out_with_its_reverse() {
        let draw = Draw::new(&TaskSection { valid: 0.05, test: 0.1, ..Default::default() });
        let mut counts = [0u32; 3];
        for i in 0..10_000u64 {
            assert_eq!(draw.of(i, i / 7), draw.of(i / 7, i));
            counts[draw.of(i, i / 7) as usize] += 1;
        }
        assert!(counts[1].abs_diff(500) < 70 && counts[2].abs_diff(1000) < 95, "{counts:?}");
    }
}
