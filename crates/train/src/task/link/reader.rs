//! Edges of a dataset, split for link prediction.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Error, Kind, Result};
use gnarl_config::{RunConfig, SplitBy, TaskSection};
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream, EdgeType, Triple};

use super::endpoints::Endpoints;
use super::latest::Latest;
use super::relations::{count, names};
use crate::data::asked::asked;
use crate::data::target_edges::{ReadEdge, TakeEdge};
use crate::data::times::{times_of_edges, times_of_predicted};

/// Reads the edges of a dataset, those of type `task.edge_type` where there are several. Their column `relation` has
/// relations, `split` held-out edges, as `gnarl import triples` writes them; without it `[task]` sets the shares, which are
/// the latest edges, or drawn so that an edge goes with its reverse.
pub(super) struct EdgeReader<'a> {
    dataset: &'a Dataset,
    edge: &'a EdgeType,
    split: Option<Buf<u8>>,
    relation: Option<Buf<u32>>,
    /// Times, if they are read.
    time: Option<Buf<i64>>,
    drawn: Drawn,
}

/// Held-out edges of a dataset without splits.
enum Drawn {
    ByEndpoints(Draw),
    ByTime(Latest),
}

impl<'a> EdgeReader<'a> {
    /// A reader of the edges of `config`.
    ///
    /// # Errors
    /// If no such type is named, columns are damaged, or edges lack times that the run reads.
    pub fn open(dataset: &'a Dataset, config: &RunConfig) -> Result<Self> {
        let edge = asked(dataset, config)?;
        let split = dataset.edge_column(&edge.triple, "split")?;
        let split = split.map(|column| column.values::<u8>()).transpose()?;
        let relation = dataset.edge_column(&edge.triple, "relation")?;
        let relation = relation.map(|column| column.values::<u32>()).transpose()?;
        let by_time = split.is_none() && config.split_by() == SplitBy::Time;
        let time = match (config.samples_by_time(), by_time) {
            (false, false) => None,
            (true, _) => Some(times_of_predicted(dataset, &edge.triple)?),
            (false, true) => Some(times_of_edges(dataset, &edge.triple, "task.split_by")?),
        };
        let drawn = match &time {
            Some(times) if by_time => {
                let shares = (config.task.valid, config.task.test);
                Drawn::ByTime(Latest::of(times, shares)?)
            }
            _ => Drawn::ByEndpoints(Draw::new(&config.task)),
        };
        Ok(Self { dataset, edge, split, relation, time, drawn })
    }

    /// The type of the edges.
    pub fn triple(&self) -> &'a Triple {
        &self.edge.triple
    }

    /// Returns whether splits are stored with the edges.
    pub fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// The endpoints of the edges.
    ///
    /// # Errors
    /// [`Kind::Limit`] if there are more nodes than 32 bits count.
    pub fn endpoints(&self) -> Result<Endpoints> {
        let (manifest, triple) = (self.dataset.manifest(), self.triple());
        let count = |name: &str| manifest.node_type(name).map(|found| found.count);
        let counts = [count(&triple.src)?, count(&triple.dst)?];
        let nodes = counts[0].saturating_add(counts[1]);
        if u32::try_from(nodes).is_err() {
            return Err(Error::new(Kind::Limit, format!("{nodes} nodes exceed 32-bit ids")));
        }
        let types = [triple.src.clone(), triple.dst.clone()];
        Ok(Endpoints::new(types, counts.map(|count| count as u32)))
    }

    /// Number of relations, and their names; no names if they are numbers.
    ///
    /// # Errors
    /// If their numbers have gaps, or names are damaged.
    pub fn relations(&self) -> Result<(usize, Vec<String>)> {
        let relations = match &self.relation {
            Some(relation) => count(relation).map_err(|e| e.context(self.place()))?,
            None => usize::from(self.edge.count > 0),
        };
        Ok((relations, names(self.dataset, self.triple())?))
    }

    fn place(&self) -> String {
        self.dataset.dir().display().to_string()
    }

    /// Hands all edges of the splits to `take`. Of a symmetric graph without a column `split` one direction is enough, unless
    /// its edges have times, which may differ by direction.
    ///
    /// # Errors
    /// If a split is invalid; those of `take`.
    pub fn each(&self, take: &mut TakeEdge<'_>) -> Result<()> {
        let once = self.split.is_none() && self.time.is_none() && self.edge.facts.symmetric;
        let mut edges = self.dataset.edges_of(self.triple())?;
        let mut chunk = EdgeChunk::default();
        let mut row = 0;
        edges.reset()?;
        while edges.next_chunk(&mut chunk)? {
            for (head, tail) in chunk.iter() {
                let time = self.time.as_ref().map_or(0, |times| times[row]);
                let split = match (&self.split, &self.drawn) {
                    (Some(split), _) => split[row],
                    (None, Drawn::ByEndpoints(draw)) => draw.of(head, tail),
                    (None, Drawn::ByTime(latest)) => latest.of_time(time),
                };
                if split > 2 {
                    let text = format!("{}: edge {row}: invalid split '{split}'", self.place());
                    return Err(Error::invalid(text).hint("0 is train, 1 valid, 2 test"));
                }
                if !once || head < tail {
                    let relation = self.relation.as_ref().map_or(0, |relation| relation[row]);
                    take(ReadEdge {
                        row: row as u64,
                        split: Some(split.into()),
                        head: head as u32,
                        relation,
                        tail: tail as u32,
                        time,
                    })?;
                }
                row += 1;
            }
        }
        Ok(())
    }
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
