//! Layers of edge types with message passing over feature slices.
//!
//! Nodes map their messages, and receive aggregates, type by type; in between, messages over all
//! edge types are exchanged and aggregated together. A layer that can send its input as it is sends
//! a row per node, else it maps a row per sender: the way that exchanges fewer values.

use std::ops::Range;
use std::sync::Arc;

use gnarl_common::Result;

use super::hetero::Hetero;
use super::slices::{HeteroSlices, WholeRelations};
use super::stack::HeteroLayer;
use crate::lists::EdgeLists;
use crate::models::model::lstm_mixes;
use crate::models::relation_layer::{Aggregation, RelationLayer};
use crate::{Activation, Lists, Reduce, Span, Tape, Var};

impl Hetero {
    /// The output of own nodes, before the activation.
    pub(super) fn combined<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let pairs = slices.graph.pairs();
        let rows = tape.gather_rows(x, &pairs.nodes);
        let mut outputs = Vec::with_capacity(self.relations.len() + self.own.len());
        if let Some(layer) = self.relations.first() {
            let mapped = messages_of(layer.as_ref(), slices.graph).0;
            let aggregates = self.aggregates(tape, slices, x, layer.as_ref())?;
            let aggregates = tape.spmm(&pairs.groups, aggregates, Reduce::Sum, None);
            for (layer, range) in self.relations.iter().zip(&pairs.relations) {
                let rows = tape.row_range(rows, range.clone());
                let own = tape.row_range(aggregates, range.clone());
                outputs.push(layer.receive(tape, rows, own, mapped));
            }
        }
        for (map, range) in self.own.iter().zip(&pairs.silent) {
            let Some((weight, bias)) = *map else { continue };
            let rows = tape.row_range(rows, range.clone());
            outputs.push(tape.linear(rows, weight, Some(bias), Activation::None));
        }
        // Outputs without rows are among them: a rank that has none takes part in all exchanges,
        // those of gradients included.
        let outputs = tape.concat_rows(&outputs);
        Ok(tape.spmm(&pairs.of_nodes, outputs, self.across, None))
    }

    /// Builds the transposes that layers and their backward passes need of `graph`.
    pub(super) fn prepare(&self, graph: &WholeRelations) {
        graph.pairs().groups.transpose();
        graph.pairs().of_nodes.transpose();
        let Some(layer) = self.relations.first() else { return };
        match messages_of(layer.as_ref(), graph).0 {
            true => graph.heard_senders().transpose(),
            false => graph.heard().groups.transpose(),
        };
        if let Some(Aggregation::Attention(one)) = layer.aggregation()
            && one.attention().dropout() > 0.0
        {
            graph.block().homogeneous();
        }
    }

    /// The aggregates of own groups, by edge type. `layer` is that of one edge type: all are alike.
    fn aggregates<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        layer: &dyn RelationLayer,
    ) -> Result<Var> {
        let cols = messages_of(layer, slices.graph).1;
        let aggregates = match layer.aggregation() {
            None => return Err(lstm_mixes(Self::NAME)),
            Some(Aggregation::Attention(one)) => {
                let heads = (one.heads(), cols / one.heads());
                self.attended(tape, slices, x, heads, one.attention())?
            }
            Some(Aggregation::Reduce(reduce)) => self.reduced(tape, slices, x, (layer, reduce))?,
        };
        let aggregates = tape.gather(slices.groups, aggregates, cols)?;
        Ok(tape.gather_rows(aggregates, &slices.graph.heard().order))
    }

    /// The slice of each group's reduction.
    fn reduced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        (layer, reduce): (&dyn RelationLayer, Reduce),
    ) -> Result<Var> {
        let graph = slices.graph;
        tape.skip_draws(self.relations.iter().map(|layer| layer.draws()).sum());
        if !messages_of(layer, graph).0 {
            let slice = tape.split(slices.nodes, x)?;
            return Ok(aggregate(tape, graph, &graph.heard().groups, slice, reduce));
        }
        let messages = self.messages(tape, graph, x);
        let slice = split_messages(tape, slices, &messages)?;
        Ok(aggregate(tape, graph, graph.heard_senders(), slice, reduce))
    }

    /// The mapped messages of the own senders of each edge type.
    pub(super) fn messages(&self, tape: &mut Tape<'_>, graph: &WholeRelations, x: Var) -> Vec<Var> {
        let sent = graph.sent();
        let rows = tape.gather_rows(x, sent.own.indices());
        let mut messages = Vec::with_capacity(self.relations.len());
        for (edge_type, layer) in self.relations.iter().enumerate() {
            let rows = tape.row_range(rows, rows_of(&sent.spans, edge_type));
            messages.push(layer.send(tape, rows));
        }
        messages
    }
}

/// The rows of an edge type among `spans`, which may be none.
pub(super) fn rows_of(spans: &[Span], edge_type: usize) -> Range<usize> {
    let span = spans.iter().find(|span| span.weight == edge_type);
    span.map_or(0..0, |span| span.rows.clone())
}

/// The slice of the messages of all senders, from those of the own senders of each edge type.
pub(super) fn split_messages<'b>(
    tape: &mut Tape<'b>,
    slices: &HeteroSlices<'b>,
    messages: &[Var],
) -> Result<Var> {
    let messages = tape.concat_rows(messages);
    let messages = tape.gather_rows(messages, &slices.graph.sent().places);
    tape.split(slices.senders, messages)
}

/// Returns whether senders map their messages, and the columns of messages.
fn messages_of(layer: &dyn RelationLayer, graph: &WholeRelations) -> (bool, usize) {
    let [nodes, groups, senders] = graph.counts();
    let (unmapped, mapped) = layer.widths();
    match unmapped {
        Some(cols) if (nodes + groups) * cols <= (senders + groups) * mapped => (false, cols),
        _ => (true, mapped),
    }
}

/// Reduces the rows `x` of the sources of `lists`, one list per group.
fn aggregate<'b>(
    tape: &mut Tape<'b>,
    graph: &'b WholeRelations,
    lists: &'b EdgeLists,
    x: Var,
    reduce: Reduce,
) -> Var {
    match (reduce, &graph.heard().weights) {
        (Reduce::Sum, _) => tape.spmm(lists, x, Reduce::Sum, sum_weights(graph)),
        (Reduce::Mean, Some(weights)) => tape.spmm(lists, x, Reduce::Sum, Some(weights.clone())),
        (Reduce::Mean | Reduce::Max, _) => tape.spmm(lists, x, reduce, None),
    }
}

/// Weights of edges in sums over groups: where some edges of a group are not there, the others stand
/// for all of them.
fn sum_weights(graph: &WholeRelations) -> Option<Arc<[f32]>> {
    let (block, offsets) = (graph.block(), graph.heard().groups.indptr());
    let groups = block.destinations().indices().iter().zip(offsets.windows(2));
    let counts = groups.map(|(&group, ends)| (block.degrees()[group as usize], ends[1] - ends[0]));
    let own = block.block().weights();
    if counts.clone().all(|(degree, edges)| degree == edges) {
        return own.map(Arc::from);
    }
    let scales = counts.flat_map(|(degree, edges)| {
        std::iter::repeat_n(degree as f32 / edges as f32, edges as usize)
    });
    Some(match own {
        Some(own) => scales.zip(own).map(|(scale, weight)| scale * weight).collect(),
        None => scales.collect(),
    })
}
