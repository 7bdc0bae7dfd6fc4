//! Heterogeneous graphs of four node types and any number of edge types, with learnable labels:
//! nodes of all types belong to communities, and edges mostly join nodes of one community.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};
use serde::Serialize;

use super::attributes::Attributes;
use super::permute::Permutation;
use super::stream::{DrawnEdges, EdgeFunction};
use super::{Generated, Stages};
use crate::edges::{EdgeChunk, EdgeStream};
use crate::manifest::{EdgeFacts, Triple};
use crate::writer::{DatasetWriter, FinishOptions, IdWidth};

/// Names of the node types, and the share of the nodes that each has, in sixteenths. Those of the
/// first are labeled and split; the first two have features.
const TYPES: [(&str, u64); 4] = [("paper", 8), ("author", 5), ("venue", 1), ("topic", 2)];
/// Number of [`TYPES`] with features.
const WITH_FEATURES: usize = 2;

/// Options of [`heterogeneous`](super::heterogeneous()).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeteroOptions {
    /// Nodes of all types.
    pub nodes: u64,
    /// Edges drawn over all types; each type has as many.
    pub edges: u64,
    /// Number of edge types. The first four join each node type to the next, so that every type
    /// receives messages from another; the further ones join others.
    pub relations: usize,
    /// Number of communities; they are the classes of the labeled type.
    pub communities: u64,
    /// Share of the edges that leave their community.
    pub mixing: f64,
    /// Preference among sources: the source of rank share `u` in its community is drawn
    /// by `u^skew`, so that 1 draws evenly.
    pub skew: f64,
    /// Random seed.
    pub seed: u64,
    /// Features of the first two node types; labels and splits of the first. `classes` plays no part.
    pub attributes: Attributes,
    /// Memory limit of building the topology, in bytes.
    pub memory: u64,
}

impl Default for HeteroOptions {
    fn default() -> Self {
        Self {
            nodes: 200_000,
            edges: 2_000_000,
            relations: 8,
            communities: 16,
            mixing: 0.3,
            skew: 2.0,
            seed: 0,
            attributes: Attributes {
                features: 64,
                train: 0.5,
                valid: 0.2,
                test: 0.3,
                ..Attributes::default()
            },
            memory: 1 << 30,
        }
    }
}

impl HeteroOptions {
    fn check(&self) -> Result<()> {
        let Self { nodes, relations, communities, mixing, skew, .. } = *self;
        if communities == 0 || nodes / 16 < communities.max(1) || nodes > 1 << 48 {
            let message = format!("{communities} communities of {nodes} nodes cannot be made");
            return Err(Error::usage(message)
                .hint("each of the four node types needs a node in every community"));
        }
        if communities > u64::from(u32::MAX) || !(4..=60_000).contains(&relations) {
            return Err(Error::usage(format!("{relations} edge types cannot be made"))
                .hint("choose 4 to 60000"));
        }
        if !((0.0..=1.0).contains(&mixing) && skew >= 1.0 && skew.is_finite()) {
            return Err(Error::usage(format!("invalid mixing '{mixing}' or skew '{skew}'"))
                .hint("expected a mixing in [0, 1] and a skew of at least 1"));
        }
        Ok(())
    }

    /// Names and counts of the node types.
    pub fn node_types(&self) -> [(&'static str, u64); 4] {
        let mut types = TYPES.map(|(name, share)| (name, self.nodes / 16 * share));
        types[0].1 += self.nodes % 16;
        types
    }

    /// The edge types, with the indices of their source and destination types.
    pub fn edge_types(&self) -> Vec<(Triple, usize, usize)> {
        let of = |i: usize| {
            // Distances 1, 2, 3 and 0 around the circle of node types.
            let (src, dst) = (i % 4, (i + 1 + i / 4) % 4);
            let rel = format!("r{i}");
            (Triple { src: TYPES[src].0.into(), rel, dst: TYPES[dst].0.into() }, src, dst)
        };
        (0..self.relations).map(of).collect()
    }
}

/// Nodes of a type in communities: equal ranges of a random order.
#[derive(Debug, Clone)]
struct Communities {
    nodes: u64,
    communities: u64,
    order: Permutation,
}

impl Communities {
    fn new(nodes: u64, communities: u64, key: Key) -> Self {
        Self { nodes, communities, order: Permutation::new(nodes, key) }
    }

    fn start(&self, community: u64) -> u64 {
        (u128::from(community) * u128::from(self.nodes) / u128::from(self.communities)) as u64
    }

    /// The community of a node.
    fn of(&self, node: u64) -> u64 {
        let place = u128::from(self.order.apply(node));
        // The last range that starts at or before the place.
        (((place + 1) * u128::from(self.communities) - 1) / u128::from(self.nodes)) as u64
    }

    /// The node at the share `unit` of a community.
    fn node(&self, community: u64, unit: f64) -> u64 {
        let (start, end) = (self.start(community), self.start(community + 1));
        let rank = ((unit * (end - start) as f64) as u64).min(end - start - 1);
        self.order.invert(start + rank)
    }
}

/// The edges of one type, by index, in constant memory.
struct RelationEdges {
    src: Communities,
    dst: Communities,
    draws: u64,
    mixing: f64,
    skew: f64,
    key: Key,
}

impl EdgeFunction for RelationEdges {
    fn num_nodes(&self) -> u64 {
        self.src.nodes.max(self.dst.nodes)
    }

    fn num_draws(&self) -> u64 {
        self.draws
    }

    fn edges_per_draw(&self) -> u64 {
        1
    }

    fn draw(&self, draws: Range<u64>, chunk: &mut EdgeChunk) {
        for i in draws {
            let key = self.key.with(i);
            let home = key.below(0, self.dst.communities);
            let from =
                if key.unit(1) < self.mixing { key.below(2, self.src.communities) } else { home };
            chunk.src.push(self.src.node(from, key.unit(3).powf(self.skew)));
            chunk.dst.push(self.dst.node(home, key.unit(4)));
        }
    }
}

/// Writes a heterogeneous graph to `out`: four node types, of which `paper` is labeled and split,
/// `paper` and `author` have features, `venue` and `topic` have none.
///
/// # Errors
/// If the options are invalid, `out` cannot be written, or memory does not suffice for the
/// degrees of the nodes.
pub fn heterogeneous(options: &HeteroOptions, out: &Path) -> Result<Generated> {
    write(options, out).while_doing(|| "generating a heterogeneous graph")
}

fn write(options: &HeteroOptions, out: &Path) -> Result<Generated> {
    options.check()?;
    options.attributes.check()?;
    let types = options.node_types();
    let largest = types.iter().map(|t| t.1).max().unwrap_or(0);
    let mut seconds = Stages::default();
    let mut writer = DatasetWriter::create(out, IdWidth::for_nodes(largest))?;
    let described = serde_json::to_value(options).expect("plain numbers serialise");
    writer.origin(serde_json::json!({ "generator": "typed", "options": described }));
    for (name, count) in types {
        writer.add_node_type(name, count);
    }
    let key = Key::new(options.seed).with(0x7479_7065);
    let communities: Vec<Communities> = (0..)
        .zip(types)
        .map(|(i, (_, count))| Communities::new(count, options.communities, key.with(0).with(i)))
        .collect();

    let start = Instant::now();
    let mut drawn = 0;
    for (number, (triple, src, dst)) in options.edge_types().into_iter().enumerate() {
        let edges = RelationEdges {
            src: communities[src].clone(),
            dst: communities[dst].clone(),
            draws: options.edges / options.relations as u64,
            mixing: options.mixing,
            skew: options.skew,
            key: key.with(1).with(number as u64),
        };
        let mut column = writer.edge_writer(&triple, Some((types[src].1, types[dst].1)))?;
        let mut edges = DrawnEdges::new(edges);
        let mut chunk = EdgeChunk::default();
        while edges.next_chunk(&mut chunk)? {
            column.push(&chunk.src, &chunk.dst)?;
        }
        drawn += edges.num_edges();
        writer.add_edge_type(triple, column.finish()?);
    }
    seconds.edges = start.elapsed().as_secs_f64();

    let start = Instant::now();
    for (i, (name, count)) in types.iter().enumerate().take(WITH_FEATURES) {
        let attributes =
            Attributes { classes: options.communities as u32, ..options.attributes.clone() };
        // Only the first type has labels; the classes of the others shape their features alone.
        let class = |v| communities[i].of(v) as u32;
        let key = key.with(2).with(i as u64);
        match i {
            0 => attributes.write(&mut writer, name, *count, key, &class)?,
            _ => attributes.write_rows(&mut writer, name, *count, key, &class)?,
        }
    }
    seconds.attributes = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let dataset = writer.finish(FinishOptions {
        memory: options.memory,
        coalesce: false,
        ..Default::default()
    })?;
    seconds.topology = start.elapsed().as_secs_f64();
    let facts = total(dataset.manifest().edge_types.iter().map(|t| &t.facts));
    Ok(Generated { dataset, drawn, facts, seconds })
}

/// Facts summed over all edge types.
fn total<'a>(all: impl Iterator<Item = &'a EdgeFacts>) -> EdgeFacts {
    let mut total = EdgeFacts::default();
    for facts in all {
        total.self_loops += facts.self_loops;
        total.duplicates += facts.duplicates;
        total.without_in_edges += facts.without_in_edges;
        total.max_in_degree = total.max_in_degree.max(facts.max_in_degree);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_communities_agree() {
        for (nodes, communities) in [(10, 3), (1000, 7), (64, 64), (1001, 64)] {
            let all = Communities::new(nodes, communities, Key::new(3));
            for community in 0..communities {
                for unit in [0.0, 0.5, 1.0 - 1e-16] {
                    assert_eq!(all.of(all.node(community, unit)), community, "{nodes}");
                }
            }
            let mut sizes = vec![0u64; communities as usize];
            (0..nodes).for_each(|v| sizes[all.of(v) as usize] += 1);
            assert!(sizes.iter().all(|s| s.abs_diff(nodes / communities) <= 1), "{sizes:?}");
        }
    }

    #[test]
    fn every_node_type_hears_another() {
        for relations in [4, 8, 40] {
            let options = HeteroOptions { relations, ..HeteroOptions::default() };
            let edge_types = options.edge_types();
            assert_eq!(edge_types.len(), relations);
            for dst in 0..4 {
                assert!(edge_types.iter().any(|&(_, from, to)| to == dst && from != dst));
            }
        }
        let options = HeteroOptions { nodes: 1003, ..HeteroOptions::default() };
        assert_eq!(options.node_types().iter().map(|t| t.1).sum::<u64>(), 1003);
    }
}
