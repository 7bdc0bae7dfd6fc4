//! Labeled edges by split, and message-passing edges.

use gnarl_common::{Error, Result};
use gnarl_config::{MessagesOver, RunConfig};
use gnarl_graph::triples::Triples;
use gnarl_graph::{Dataset, Labels, Triple};
use gnarl_nn::models;

use super::reader::EdgeReader;
use crate::data::asked::ways_of_type;
use crate::data::edge_set::{EdgeSet, Ways, both_ways};
use crate::encoder::homogeneous::Homogeneous;
use crate::encoder::message_graph::MessageEdges;
use crate::registry::Registry;
use crate::task::link::check_count;

/// The edges of a split.
pub(super) struct Split {
    /// Endpoints, and relations where the dataset has some.
    pub edges: Triples,
    /// Rows in the dataset.
    pub rows: Vec<u64>,
    /// Times; empty if neighbors are not sampled by time.
    pub times: Vec<i64>,
    pub labels: Labels,
}

/// Held-out edges, and the nodes that edges are between.
pub(super) struct HeldOut {
    pub triple: Triple,
    pub valid: Split,
    pub test: Split,
    /// Nodes of the types of heads and of tails.
    pub nodes: [usize; 2],
}

/// Labeled edges of one type by split, all of them in memory.
pub(super) struct Loaded {
    pub train: Split,
    pub held_out: HeldOut,
    /// Edges excluded from message passing, as in the message graph.
    pub held: EdgeSet,
    /// In a graph of one node type and one edge type: message-passing edges, their times if neighbors are sampled by time,
    /// and the number of relations.
    heard: Option<(Triples, Vec<i64>, usize)>,
}

impl Loaded {
    /// Reads the edges of `config`.
    ///
    /// # Errors
    /// Those of [`EdgeReader`], and if no labeled training edge is left.
    pub fn open(dataset: &Dataset, (config, registry): (&RunConfig, &Registry)) -> Result<Self> {
        let reader = EdgeReader::open(dataset, config)?;
        let mut sets = <[(Triples, Vec<u64>, Vec<i64>); 3]>::default();
        let (mut others, mut times_of_others) = (Triples::default(), Vec::new());
        let timed = config.samples_by_time();
        let kept = reader.each(&mut |edge| {
            let (set, times) = match edge.split {
                None => (&mut others, &mut times_of_others),
                Some(split) => {
                    let (edges, rows, times) = &mut sets[split];
                    rows.push(edge.row);
                    (edges, times)
                }
            };
            set.push(edge.head, edge.relation, edge.tail);
            if timed {
                times.push(edge.time);
            }
            Ok(())
        })?;
        reader.report(&kept);
        let place = reader.place();
        let split = |(edges, rows, times): (Triples, Vec<u64>, Vec<i64>)| Split {
            labels: reader.labels.at(&rows),
            edges,
            rows,
            times,
        };
        let [train, valid, test] = sets.map(split);
        let most = [&train, &valid, &test].map(|split| split.edges.len()).into_iter().max();
        check_count(most.unwrap_or(0)).map_err(|e| e.context(place.to_string()))?;
        if train.edges.is_empty() {
            return Err(Error::invalid(format!("{place}: no training edges"))
                .hint("import with --edge-split train=…, or set dataset.split in the run file"));
        }
        let (triple, relations) = (reader.triple().clone(), reader.relations);
        let ways = ways(dataset, (config, registry), &triple, relations)?;
        let held = match config.task.messages {
            MessagesOver::All => EdgeSet::new(),
            // Times tell which edges pass messages.
            MessagesOver::Known if timed => EdgeSet::new(),
            MessagesOver::Known => {
                let mut held = both_ways(&valid.edges, &ways);
                held.extend(both_ways(&test.edges, &ways));
                held
            }
        };
        let held_out = HeldOut { triple, valid, test, nodes: reader.nodes };
        let mut loaded = Self { train, held_out, held, heard: None };
        if dataset.plain().is_ok() {
            let passing = loaded.passing((&others, &times_of_others), ways);
            loaded.heard = Some((passing.0, passing.1, relations));
        }
        Ok(loaded)
    }

    /// The edges of all splits, and `others`, that pass messages, and their times if they are read.
    fn passing(
        &self,
        others: (&Triples, &[i64]),
        ways: impl Fn(u32) -> Ways,
    ) -> (Triples, Vec<i64>) {
        let (mut heard, mut heard_at) = (Triples::default(), Vec::new());
        let HeldOut { valid, test, .. } = &self.held_out;
        let splits = [&self.train, valid, test].map(|split| (&split.edges, &split.times[..]));
        for (set, times) in splits.into_iter().chain([others]) {
            for i in 0..set.len() {
                let head = set.heads[i];
                let relation = set.relations[i];
                let tail = set.tails[i];
                let there = (ways(relation).forth, head.into(), tail.into());
                if !self.held.contains(&there) {
                    heard.push(head, relation, tail);
                    heard_at.extend(times.get(i));
                }
            }
        }
        (heard, heard_at)
    }

    /// The edges that pass messages in a graph of one node type and one edge type; none in others.
    pub fn message_edges(&self) -> Option<MessageEdges<'_>> {
        let (edges, times, relations) = self.heard.as_ref()?;
        let node_type = &self.held_out.triple.src;
        let nodes = self.held_out.nodes[0];
        let relations = *relations;
        Some(MessageEdges { edges, times, node_type, nodes, relations })
    }
}

/// Returns whether the model is heterogeneous; models of both kinds are where nodes need
/// embeddings.
pub(super) fn is_relational(
    (config, registry): (&RunConfig, &Registry),
    dataset: &Dataset,
    node_type: &str,
) -> Result<bool> {
    Ok(relational((config, registry), dataset.features(node_type)?.is_none()))
}

/// Returns whether the model is heterogeneous, over nodes that are `bare` of features or not.
pub(super) fn relational((config, registry): (&RunConfig, &Registry), bare: bool) -> bool {
    let name = config.model.name.as_str();
    let heterogeneous = models::heterogeneous::names().contains(&name);
    let only = heterogeneous && (bare || !models::names().contains(&name));
    only || registry.has_hetero_model(name)
}

/// Edge types of message passing in the graph of the model in `config`.
pub(super) fn ways(
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
