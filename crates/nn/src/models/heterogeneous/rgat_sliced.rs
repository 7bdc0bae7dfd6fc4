//! R-GAT layers with message passing over feature slices.
//!
//! The scores of an edge's endpoints are narrow. All ranks gather those of all senders and groups,
//! and so have the attention of all edges; features are aggregated by slice. Projections come after
//! the aggregation, whose result then has a part per head, or before it: the result is the same, and
//! a layer takes the order that exchanges fewer values.

use std::ops::Range;

use gnarl_common::Result;

use super::rgat::Rgat;
use super::slices::{HeteroSlices, WholeRelations};
use crate::models::Softmax;
use crate::models::head_slice::HeadSlice;
use crate::{Activation, Lists, Reduce, Tape, Var};

impl Rgat {
    /// The sum over edge types of the messages of own nodes, heads side by side.
    pub(super) fn attended<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        match self.projects_first(slices.graph) {
            true => self.project_then_aggregate(tape, slices, x),
            false => self.aggregate_then_project(tape, slices, x),
        }
    }

    /// Builds the transposes that layers and their backward passes need of `graph`.
    pub(super) fn prepare(&self, graph: &WholeRelations) {
        prepare_scores(graph);
        if self.projects_first(graph) {
            graph.sent().destinations.transpose();
        } else {
            graph.heard().groups.transpose();
            graph.heard().own.transpose();
        }
    }

    /// Returns whether projected senders one way and nodes back are fewer values than nodes one way
    /// and a part per head of groups back.
    fn projects_first(&self, graph: &WholeRelations) -> bool {
        let [nodes, groups, senders] = graph.counts();
        (senders + nodes) * self.heads * self.width < (nodes + groups * self.heads) * self.input
    }

    fn project_then_aggregate<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let (graph, cols) = (slices.graph, self.heads * self.width);
        let sent = graph.sent();
        let weight = tape.param(self.weight);
        let own = HeadSlice::new(slices.nodes.columns(cols), self.width);
        let heads = own.heads();
        let attention = self.attention_sliced(tape, slices, (x, weight), heads.clone())?;
        let rows = tape.gather_rows(x, sent.own.indices());
        let projected = tape.span_linear(rows, weight, &sent.spans);
        let projected = tape.gather_rows(projected, &sent.places);
        let slice = tape.split(slices.senders, projected)?;
        let sums = own.sum(tape, &sent.destinations, slice, (attention, heads.start));
        tape.gather(slices.nodes, sums, cols)
    }

    fn aggregate_then_project<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let heard = slices.graph.heard();
        let weight = tape.param(self.weight);
        let attention = self.attention_sliced(tape, slices, (x, weight), 0..self.heads)?;
        let slice = tape.split(slices.nodes, x)?;
        let sums = tape.spmm_heads(&heard.groups, slice, attention);
        let own = tape.shape(slice).1;
        let mut parts = Vec::with_capacity(self.heads);
        for head in 0..self.heads {
            let part = tape.slice_cols(sums, head * own, own);
            parts.push(tape.gather(slices.groups, part, self.input)?);
        }
        let sums = tape.concat_cols(&parts);
        let sums = tape.gather_rows(sums, &heard.order);
        let messages = tape.span_linear_heads(sums, weight, &heard.spans, self.heads);
        Ok(tape.spmm(&heard.own, messages, Reduce::Sum, None))
    }

    /// Attention of some heads over all edges, in the order of nodes.
    fn attention_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        (x, weight): (Var, Var),
        heads: Range<usize>,
    ) -> Result<Var> {
        let (graph, heard, sent) = (slices.graph, slices.graph.heard(), slices.graph.sent());
        let (source, destination) = (tape.param(self.source), tape.param(self.destination));
        let source = tape.relation_score_weights(weight, source, self.heads);
        let destination = tape.relation_score_weights(weight, destination, self.heads);
        let of_senders = tape.relation_scores(&sent.own, &sent.spans, x, source);
        let of_groups = tape.relation_scores(&heard.ends, &heard.spans, x, destination);
        let scores = edge_scores(tape, slices, (of_senders, of_groups), heads)?;
        let scores = tape.activation(scores, Activation::LeakyRelu(self.negative_slope));
        Ok(match self.softmax {
            Softmax::Within => tape.edge_softmax(&heard.groups, scores),
            Softmax::Across => tape.edge_softmax(graph.block().block(), scores),
        })
    }
}

/// The sum of the scores of each edge's endpoints for some heads, edges in the order of nodes: from
/// the scores of own senders and own groups, both by edge type.
pub(super) fn edge_scores<'b>(
    tape: &mut Tape<'b>,
    slices: &HeteroSlices<'b>,
    (of_senders, of_groups): (Var, Var),
    heads: Range<usize>,
) -> Result<Var> {
    let of_senders = tape.gather_rows(of_senders, &slices.graph.sent().places);
    let of_senders = tape.all_rows(slices.senders, of_senders)?;
    let of_groups = tape.gather_rows(of_groups, slices.graph.heard().own.indices());
    let of_groups = tape.all_rows(slices.groups, of_groups)?;
    let of_senders = tape.slice_cols(of_senders, heads.start, heads.len());
    let of_groups = tape.slice_cols(of_groups, heads.start, heads.len());
    Ok(tape.sddmm_add(slices.graph.heard_senders(), of_senders, of_groups))
}

/// Builds the transposes that the backward pass of [`edge_scores`], and of the scores before it,
/// needs.
pub(super) fn prepare_scores(graph: &WholeRelations) {
    graph.sent().own.transpose();
    graph.heard().ends.transpose();
    graph.heard_senders().transpose();
}
