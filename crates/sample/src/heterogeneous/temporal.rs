//! Temporal sampling in heterogeneous graphs.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_common::{Context, Error, Result};
use gnarl_graph::blocks::Schema;

use super::block::{HeteroBatch, HeteroBlock, Relation};
use super::fanouts::HeteroFanouts;
use super::graph::HeteroSampleGraph;
use super::sampler::{HeteroScratch, duplicate_seeds};
use crate::sampler::shuffled_batches;
use crate::scratch::Scratch;
use crate::temporal::{ByTime, TemporalDraw, TimedHop, TimedLists};

/// Samples neighborhoods of seeds at times in a heterogeneous graph, with fan-outs per edge type: as
/// [`TemporalSampler`](crate::TemporalSampler) over each edge type. Edges without times, whose sources have none either,
/// are always there.
///
/// One node may be in a batch several times, at different times. Keeps eight bytes an edge with times,
/// twelve if they span more than 32 bits.
#[derive(Debug, Clone)]
pub struct HeteroTemporalSampler {
    graph: HeteroSampleGraph,
    /// Per edge type the fan-out of each hop.
    fanouts: Vec<Vec<u32>>,
    hops: usize,
    draw: TemporalDraw,
    /// Of edge types with times.
    by_time: Vec<Option<ByTime>>,
}

/// A batch of seeds at times.
#[derive(Debug)]
pub struct HeteroTemporalBatch {
    /// The blocks. Input nodes may repeat, with different times.
    pub batch: HeteroBatch,
    /// Per node type the time of each input node.
    pub times: Vec<Vec<i64>>,
    /// For each block and edge type the time of each edge.
    pub edge_times: Vec<Vec<Vec<i64>>>,
}

/// Seeds of a type: its number, nodes, and the time of each.
pub type SeedsAt<'a> = (usize, &'a [u32], &'a [i64]);

/// Starts a batch with its seeds, which `check` tells to be nodes of a type. Returns the row of each.
///
/// # Errors
/// Those of `check`, if a type is given twice, or there are not as many times as seeds.
pub(super) fn insert_seeds(
    schema: &Schema,
    seeds: &[SeedsAt<'_>],
    nodes: &mut [Scratch],
    check: impl Fn(usize, &[u32]) -> Result<()>,
) -> Result<Vec<(usize, Vec<u32>)>> {
    nodes.iter_mut().for_each(|scratch| scratch.pairs.clear());
    let mut targets: Vec<(usize, Vec<u32>)> = Vec::with_capacity(seeds.len());
    for &(of, seeds, times) in seeds {
        if targets.iter().any(|(known, _)| *known == of) {
            return Err(duplicate_seeds(schema, of));
        }
        check(of, seeds)?;
        targets.push((of, nodes[of].pairs.insert_seeds(seeds, times)?));
    }
    Ok(targets)
}

impl HeteroTemporalSampler {
    /// A sampler of `graph`. Sorts all lists by time.
    ///
    /// # Errors
    /// If no edge type has times, fan-outs are wrong, or a list is not inside the graph.
    pub fn new(
        graph: &HeteroSampleGraph,
        fanouts: &HeteroFanouts,
        draw: impl Into<TemporalDraw>,
    ) -> Result<Self> {
        let hops = fanouts.hops();
        let fanouts = fanouts.resolve(graph.schema())?;
        let order = |(number, triple)| {
            let view = graph.view(number);
            let doing = || format!("ordering edge type {triple} by time");
            view.is_timed().then(|| ByTime::new(view).while_doing(doing)).transpose()
        };
        let types = graph.schema().edge_types().iter().enumerate();
        let by_time: Vec<Option<ByTime>> = types.map(order).collect::<Result<_>>()?;
        if by_time.iter().all(Option::is_none) {
            return Err(Error::usage(
                "temporal sampling requires times of edges or nodes, which the graph lacks",
            )
            .hint("import it with a column 'time' of integers, or use another sampler"));
        }
        Ok(Self { graph: graph.clone(), fanouts, hops, draw: draw.into(), by_time })
    }

    /// A sampler of these lists, already sorted, with other fan-outs.
    ///
    /// # Errors
    /// If fan-outs are wrong.
    pub fn with_fanouts(&self, fanouts: &HeteroFanouts) -> Result<Self> {
        let hops = fanouts.hops();
        let fanouts = fanouts.resolve(self.graph.schema())?;
        Ok(Self { fanouts, hops, ..self.clone() })
    }

    /// The node and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        self.graph.schema()
    }

    /// The seeds of every batch of an epoch, as [`HeteroSampler::epoch`](crate::HeteroSampler::epoch).
    pub fn epoch(&self, train: &[u32], batch_size: usize, key: Key) -> Vec<Vec<u32>> {
        shuffled_batches(train, batch_size, key)
    }

    /// The batch for seeds of several node types, local ids of core nodes. Seeds that agree in node and time share a row.
    ///
    /// # Errors
    /// As [`HeteroSampler::sample`](crate::HeteroSampler::sample), or if there are not as many times as seeds.
    pub fn sample_at(
        &self,
        seeds: &[SeedsAt<'_>],
        key: Key,
        scratch: &mut HeteroScratch,
    ) -> Result<HeteroTemporalBatch> {
        let schema = self.graph.schema();
        let types = schema.node_types().len();
        let nodes = scratch.start((0..types).map(|number| self.graph.num_nodes(number)));
        let check = |of, seeds: &[u32]| self.graph.check_seeds(of, seeds);
        let targets = insert_seeds(schema, seeds, nodes, check)?;
        let order = schema.by_name();
        let (mut blocks, mut edge_times) = (Vec::new(), Vec::new());
        for hop in 0..self.hops {
            let (block, times) = self.block(hop, &order, key, nodes)?;
            blocks.push(block);
            edge_times.push(times);
        }
        blocks.reverse();
        edge_times.reverse();
        let input_nodes: Vec<Vec<u32>> = nodes.iter().map(|s| s.pairs.nodes.clone()).collect();
        let ids = |(of, nodes): (usize, &Vec<u32>)| {
            nodes.iter().map(|&node| self.graph.id(of, node)).collect()
        };
        let ids = input_nodes.iter().enumerate().map(ids).collect();
        let times = nodes.iter().map(|s| s.pairs.times.clone()).collect();
        let batch = HeteroBatch { schema: schema.clone(), blocks, input_nodes, ids, targets };
        Ok(HeteroTemporalBatch { batch, times, edge_times })
    }

    /// One hop from all nodes of the batch over all edge types, in the order of their names, and the times of its edges.
    fn block(
        &self,
        hop: usize,
        order: &[usize],
        key: Key,
        nodes: &mut [Scratch],
    ) -> Result<(HeteroBlock, Vec<Vec<i64>>)> {
        let schema = self.graph.schema();
        let reached: Vec<(Vec<u32>, Vec<i64>)> =
            nodes.iter().map(|s| (s.pairs.nodes.clone(), s.pairs.times.clone())).collect();
        let mut found: Vec<Option<TimedHop>> = order.iter().map(|_| None).collect();
        for &edge_type in order {
            let (src, dst) = schema.ends(edge_type);
            let (view, by_time) = (self.graph.view(edge_type), self.by_time[edge_type].as_ref());
            let lists = TimedLists { view, by_time, draw: self.draw };
            let (fanout, key) = (self.fanouts[edge_type][hop], schema.draw_key(key, edge_type));
            let Scratch { pairs, seen, .. } = &mut nodes[src];
            let (ids, times) = &reached[dst];
            let drawn = lists.hop((ids, times), fanout, key, pairs, seen);
            let triple = &schema.edge_types()[edge_type];
            found[edge_type] = Some(drawn.while_doing(|| format!("sampling edge type {triple}"))?);
        }
        let num_dst = reached.iter().map(|(nodes, _)| nodes.len()).collect();
        let num_src: Vec<usize> = nodes.iter().map(|s| s.pairs.nodes.len()).collect();
        let (mut relations, mut times) = (Vec::new(), Vec::new());
        for (edge_type, of_type) in found.into_iter().flatten().enumerate() {
            let sources = num_src[schema.ends(edge_type).0];
            relations.push(Relation::new(of_type.hop, sources, of_type.degrees));
            times.push(of_type.times);
        }
        Ok((HeteroBlock::new(num_dst, num_src, relations), times))
    }
}
