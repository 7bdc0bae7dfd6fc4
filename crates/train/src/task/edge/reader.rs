//! Labeled edges of a dataset, split for edge prediction.

use gnarl_common::rng::Key;
use gnarl_common::{Buf, Error, Kind, Result};
use gnarl_config::{RandomSplit, RunConfig, TaskKind};
use gnarl_graph::splits::{Role, warn_of_unlabeled};
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream, EdgeType, Triple};

use super::targets::LabelColumn;
use crate::data::asked::asked;
use crate::data::target_edges::{ReadEdge, TakeEdge};
use crate::data::times::times_of_predicted;
use crate::task::link::count_relations;

/// Reads the edges of a dataset, those of type `task.edge_type` where there are several, with their labels.
pub(super) struct EdgeReader<'a> {
    dataset: &'a Dataset,
    triple: Triple,
    /// The dataset and the edge type, in messages.
    place: String,
    pub labels: LabelColumn,
    roles: Roles,
    relation: Option<Buf<u32>>,
    /// Times, if neighbors are sampled by time.
    time: Option<Buf<i64>>,
    /// Number of relations, at least 1.
    pub relations: usize,
    /// Nodes of the types of heads and of tails.
    pub nodes: [usize; 2],
}

impl<'a> EdgeReader<'a> {
    /// A reader of the edges of `config`.
    ///
    /// # Errors
    /// If they lack labels, splits or times that the run reads, or there are more nodes than 32 bits count.
    pub fn open(dataset: &'a Dataset, config: &RunConfig) -> Result<Self> {
        let edge_type = asked(dataset, config)?;
        let triple = edge_type.triple.clone();
        let place = format!("{}: {triple}", dataset.dir().display());
        let named = |e: Error| e.context(place.clone());
        let labels = labels(dataset, config, edge_type).map_err(named)?;
        let roles = Roles::open(dataset, config, &triple, &place)?;
        let count = |name: &str| dataset.manifest().node_type(name).map(|found| found.count);
        let nodes = [count(&triple.src)?, count(&triple.dst)?];
        let most = nodes[0].max(nodes[1]);
        if u32::try_from(most).is_err() {
            return Err(Error::new(Kind::Limit, format!("{most} nodes exceed 32-bit ids")));
        }
        let relation = match dataset.plain() {
            Ok(_) => dataset.edge_column(&triple, "relation")?,
            Err(_) => None,
        };
        let relation = relation.map(|column| column.values::<u32>()).transpose()?;
        let relations = count_relations(relation.as_deref().unwrap_or_default());
        let relations = relations.map_err(named)?.max(1);
        let nodes = nodes.map(|count| count as usize);
        let time = match config.samples_by_time() {
            true => Some(times_of_predicted(dataset, &triple)?),
            false => None,
        };
        Ok(Self { dataset, triple, place, labels, roles, relation, time, relations, nodes })
    }

    /// The type of the edges.
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// The dataset and the edge type, in messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Hands all edges to `take`. Returns the numbers of labeled and of unlabeled edges by split, see
    /// [`EdgeReader::report`].
    ///
    /// # Errors
    /// If a split is invalid; those of `take`.
    pub fn each(&self, take: &mut TakeEdge<'_>) -> Result<Kept> {
        let mut edges = self.dataset.edges_of(&self.triple)?;
        let mut chunk = EdgeChunk::default();
        let (mut row, mut kept) = (0, Kept::default());
        edges.reset()?;
        while edges.next_chunk(&mut chunk)? {
            for (head, tail) in chunk.iter() {
                let split = self.roles.of(row, (head, tail), self.labels.has(row), &mut kept);
                let split = split.map_err(|e| e.context(self.place.clone()))?;
                let relation = self.relation.as_ref().map_or(0, |relation| relation[row]);
                let time = self.time.as_ref().map_or(0, |times| times[row]);
                let (head, tail) = (head as u32, tail as u32);
                take(ReadEdge { row: row as u64, split, head, relation, tail, time })?;
                row += 1;
            }
        }
        Ok(kept)
    }

    /// Logs the number of unlabeled edges that were left out of splits.
    pub fn report(&self, kept: &Kept) {
        for (number, (split, _)) in Role::SPLITS.into_iter().enumerate() {
            let unlabeled = kept.unlabeled[number];
            let listed = kept.labeled[number] + unlabeled;
            warn_of_unlabeled(&self.place, split, unlabeled, listed, "edges");
        }
    }
}

/// Numbers of edges by split.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub labeled: [u64; 3],
    /// Edges of a stored split that are left out.
    unlabeled: [u64; 3],
}

/// The labels of a run.
fn labels(dataset: &Dataset, config: &RunConfig, edge_type: &EdgeType) -> Result<LabelColumn> {
    let name = &config.task.label;
    let column = dataset.edge_column(&edge_type.triple, name)?.ok_or_else(|| {
        Error::invalid(format!("edges have no column '{name}'"))
            .hint("import labels of edges, or name another column by task.label")
    })?;
    match config.task.kind {
        TaskKind::EdgeRegression => LabelColumn::values(&column),
        _ => LabelColumn::classes(&column, edge_type.classes.filter(|_| name == "label")),
    }
}

/// The splits of edges.
enum Roles {
    Stored(Buf<u8>),
    Drawn(Key, RandomSplit),
}

impl Roles {
    fn open(dataset: &Dataset, config: &RunConfig, triple: &Triple, place: &str) -> Result<Self> {
        if let Some(split) = &config.dataset.split {
            return Ok(Self::Drawn(Key::new(split.seed).with(0x000e_d6e5), split.clone()));
        }
        let column = dataset.edge_column(triple, "split")?.ok_or_else(|| {
            Error::invalid(format!("{place}: edges have no splits"))
                .hint("import with --edge-split, or set dataset.split in the run file")
        })?;
        Ok(Self::Stored(column.values()?))
    }

    /// The number of the split of the edge in a row, if it is in one. Counts it in `kept`.
    fn of(
        &self,
        row: usize,
        ends: (u64, u64),
        labeled: bool,
        kept: &mut Kept,
    ) -> Result<Option<usize>> {
        let split = match self {
            Self::Stored(splits) => match (splits[row], labeled) {
                (split @ 0..3, true) => Some(split.into()),
                (split @ 0..3, false) => {
                    kept.unlabeled[usize::from(split)] += 1;
                    None
                }
                (3, _) => None,
                (other, _) => {
                    return Err(Error::invalid(format!("edge {row}: invalid split '{other}'"))
                        .hint("0 is train, 1 valid, 2 test, 3 none"));
                }
            },
            Self::Drawn(..) if !labeled => None,
            Self::Drawn(key, split) => drawn(*key, split, ends),
        };
        if let Some(split) = split {
            kept.labeled[split] += 1;
        }
        Ok(split)
    }
}

/// A random split keyed by the endpoints of an edge, whatever its direction.
fn drawn(key: Key, split: &RandomSplit, (head, tail): (u64, u64)) -> Option<usize> {
    let unit = key.with(head.min(tail)).unit(head.max(tail));
    let mut end = 0.0;
    for (number, share) in [split.train, split.valid, split.test].into_iter().enumerate() {
        end += share;
        // Shares that sum up to a whole leave no edge out, whatever the rounding of their sum.
        if unit < end || (number == 2 && end > 1.0 - 1e-9) {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_in_the_split_of_its_reverse() {
        let split = RandomSplit { train: 0.5, valid: 0.2, test: 0.2, seed: 3 };
        let mut counts = [0u32; 4];
        for i in 0..10_000u64 {
            let found = drawn(Key::new(1), &split, (i, i / 7));
            assert_eq!(found, drawn(Key::new(1), &split, (i / 7, i)));
            counts[found.unwrap_or(3)] += 1;
        }
        for (count, expected) in counts.into_iter().zip([5000, 2000, 2000, 1000u32]) {
            assert!(count.abs_diff(expected) < 150, "{counts:?}");
        }
    }
}
