//! Labeled edges by split, and message-passing edges.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Kind, Result};
use gnarl_config::{MessagesOver, RandomSplit, RunConfig, TaskKind};
use gnarl_graph::splits::{Role, warn_of_unlabeled};
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, EdgeChunk, EdgeStream, EdgeType, Labels, Triple};
use gnarl_nn::models;

use super::targets::LabelColumn;
use crate::data::asked::{asked, ways_of_type};
use crate::data::edge_set::{EdgeSet, Ways, both_ways};
use crate::encoder::homogeneous::Homogeneous;
use crate::encoder::message_graph::MessageEdges;
use crate::registry::Registry;
use crate::task::link::{check_count, count_relations};

/// The edges of a split.
pub(super) struct Split {
    /// Endpoints, and relations where the dataset has some.
    pub edges: Triples,
    /// Rows in the dataset.
    pub rows: Vec<u64>,
    pub labels: Labels,
}

/// Labeled edges of one type, by split.
pub(super) struct Splits {
    pub triple: Triple,
    pub train: Split,
    pub valid: Split,
    pub test: Split,
    /// Nodes of the types of heads and of tails.
    pub nodes: [usize; 2],
    /// Edges excluded from message passing, as in the message graph.
    pub held: EdgeSet,
    /// In a graph of one node type and one edge type: message-passing edges, and the number of
    /// relations.
    heard: Option<(Triples, usize)>,
}

impl Splits {
    /// Reads the edges of `config`.
    ///
    /// # Errors
    /// If they lack labels or splits, no labeled training edge is left, or there are more nodes than 32 bits
    /// count.
    pub fn open(dataset: &Dataset, (config, registry): (&RunConfig, &Registry)) -> Result<Self> {
        let edge_type = asked(dataset, config)?;
        let triple = edge_type.triple.clone();
        let place = format!("{}: {triple}", dataset.dir().display());
        let named = |e: Error| e.context(place.clone());
        let labels = labels(dataset, config, edge_type).map_err(named)?;
        let mut roles = Roles::open(dataset, config, &triple, &place)?;
        let plain = dataset.plain().ok();
        let count = |name: &str| dataset.manifest().node_type(name).map(|found| found.count);
        let nodes = [count(&triple.src)?, count(&triple.dst)?];
        let most = nodes[0].max(nodes[1]);
        if u32::try_from(most).is_err() {
            return Err(Error::new(Kind::Limit, format!("{most} nodes exceed 32-bit ids")));
        }
        let relation = match plain.map(|_| dataset.edge_column(&triple, "relation")).transpose()? {
            Some(Some(column)) => column.values::<u32>()?.to_vec(),
            _ => Vec::new(),
        };
        let relations = count_relations(&relation).map_err(named)?.max(1);
        let (mut sets, mut others) = (<[(Triples, Vec<u64>); 3]>::default(), Triples::default());
        let mut edges = dataset.edges_of(&triple)?;
        let mut chunk = EdgeChunk::default();
        let mut row = 0;
        edges.reset()?;
        while edges.next_chunk(&mut chunk)? {
            for (head, tail) in chunk.iter() {
                let role = roles.of(row, (head, tail), labels.has(row)).map_err(named)?;
                let set = role.map_or(&mut others, |role| {
                    sets[role].1.push(row as u64);
                    &mut sets[role].0
                });
                set.push(head as u32, relation.get(row).copied().unwrap_or(0), tail as u32);
                row += 1;
            }
        }
        roles.report(&place, sets.each_ref().map(|(edges, _)| edges.len()));
        let split =
            |(edges, rows): (Triples, Vec<u64>)| Split { labels: labels.at(&rows), edges, rows };
        let [train, valid, test] = sets.map(split);
        let most = [&train, &valid, &test].map(|split| split.edges.len()).into_iter().max();
        check_count(most.unwrap_or(0)).map_err(named)?;
        if train.edges.is_empty() {
            return Err(Error::invalid(format!("{place}: no training edges"))
                .hint("import with --edge-split train=…, or set dataset.split in the run file"));
        }
        let ways = ways(dataset, (config, registry), &triple, relations)?;
        let held = match config.task.messages {
            MessagesOver::All => EdgeSet::new(),
            MessagesOver::Known => {
                let mut held = both_ways(&valid.edges, &ways);
                held.extend(both_ways(&test.edges, &ways));
                held
            }
        };
        let nodes = nodes.map(|count| count as usize);
        let mut splits = Self { triple, train, valid, test, nodes, held, heard: None };
        if plain.is_some() {
            splits.heard = Some((splits.passing(&others, ways), relations));
        }
        Ok(splits)
    }

    /// The edges of all splits, and `others`, that pass messages.
    fn passing(&self, others: &Triples, ways: impl Fn(u32) -> Ways) -> Triples {
        let mut heard = Triples::default();
        for set in [&self.train.edges, &self.valid.edges, &self.test.edges, others] {
            for i in 0..set.len() {
                let head = set.heads[i];
                let relation = set.relations[i];
                let tail = set.tails[i];
                let there = (ways(relation).forth, head.into(), tail.into());
                if !self.held.contains(&there) {
                    heard.push(head, relation, tail);
                }
            }
        }
        heard
    }

    /// The edges that pass messages in a graph of one node type and one edge type; none in others.
    pub fn message_edges(&self) -> Option<MessageEdges<'_>> {
        let (edges, relations) = self.heard.as_ref()?;
        let node_type = &self.triple.src;
        let nodes = self.nodes[0];
        let relations = *relations;
        Some(MessageEdges { edges, node_type, nodes, relations })
    }
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

/// Returns whether the model is heterogeneous; models of both kinds are where nodes need
/// embeddings.
pub(super) fn is_relational(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    node_type: &str,
) -> Result<bool> {
    let name = config.model.name.as_str();
    let bare = dataset.features(node_type)?.is_none();
    let heterogeneous = models::heterogeneous::names().contains(&name);
    let only = heterogeneous && (bare || !models::names().contains(&name));
    Ok(only || registry.has_hetero_model(name))
}

/// Edge types of message passing in the graph of the model in `config`.
fn ways(
    dataset: &Dataset,
    (config, registry): (&RunConfig, &Registry),
    triple: &Triple,
    relations: usize,
) -> Result<Box<dyn Fn(u32) -> Ways>> {
    if dataset.plain().is_err() {
        let types = dataset.manifest().edge_types.iter().map(|t| t.triple.clone());
        let ways = ways_of_type(&types.collect::<Vec<_>>(), triple);
        return Ok(Box::new(move |_| ways));
    }
    Ok(match is_relational((config, registry), dataset, &triple.src)? {
        true => Box::new(move |relation| Ways::of_relation(relation, relations)),
        false => Box::new(|_| Homogeneous::WAYS),
    })
}

/// The splits of edges.
enum Roles {
    Stored {
        splits: gnarl_common::Buf<u8>,
        /// Unlabeled edges of each split, which were left out.
        unlabeled: [u64; 3],
    },
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
        Ok(Self::Stored { splits: column.values()?, unlabeled: [0; 3] })
    }

    /// Logs the number of edges left out of the splits, whose remaining sizes are `kept`.
    fn report(&self, place: &str, kept: [usize; 3]) {
        let Self::Stored { unlabeled, .. } = self else { return };
        for (number, (split, _)) in Role::SPLITS.into_iter().enumerate() {
            let listed = kept[number] as u64 + unlabeled[number];
            warn_of_unlabeled(place, split, unlabeled[number], listed, "edges");
        }
    }

    /// The number of the split of the edge in a row, if it is in one.
    fn of(&mut self, row: usize, ends: (u64, u64), labelled: bool) -> Result<Option<usize>> {
        match self {
            Self::Stored { splits, unlabeled } => match (splits[row], labelled) {
                (split @ 0..3, true) => Ok(Some(split.into())),
                (split @ 0..3, false) => {
                    unlabeled[usize::from(split)] += 1;
                    Ok(None)
                }
                (3, _) => Ok(None),
                (other, _) => Err(Error::invalid(format!("edge {row}: invalid split '{other}'"))
                    .hint("0 is train, 1 valid, 2 test, 3 none")),
            },
            Self::Drawn(..) if !labelled => Ok(None),
            Self::Drawn(key, split) => Ok(drawn(*key, split, ends)),
        }
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
