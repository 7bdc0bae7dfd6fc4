//! HGT layers with message passing over feature slices.
//!
//! The score of an edge is the dot product of a key and a query over the columns of a head. A rank
//! computes it for the columns of its slice, and ranks whose slices share a head add up their
//! products: a value per edge for each pair of such ranks. Nobody else reads the scores of a head,
//! so that these are fewer bytes than the scores of all heads of all edges on every rank, and none
//! if the number of ranks divides the number of heads. Slices of whole heads would never send any,
//! but shares would be uneven, and some ranks idle where there are more ranks than heads.

use gnarl_common::Result;

use super::hgt::Hgt;
use super::slices::HeteroSlices;
use crate::models::head_slice::HeadSlice;
use crate::{Lists, Reduce, Tape, Var};

impl Hgt {
    /// The sum over edge types of the messages of own nodes.
    ///
    /// Matrices of edge types are applied to queries and aggregates, of which there is one per group:
    /// nodes one way twice, groups one way and back.
    pub(super) fn attended<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let (graph, heard, cols) = (slices.graph, slices.graph.heard(), self.heads * self.width);
        let own = HeadSlice::new(slices.nodes.columns(cols), self.width);
        let attention = self.attention_sliced(tape, slices, x, &own)?;
        let value = self.value.apply(tape, x, graph.own());
        let value = tape.split(slices.nodes, value)?;
        let sums = own.sum(tape, &heard.groups, value, (attention, own.heads().start));
        let sums = tape.gather(slices.groups, sums, cols)?;
        let sums = tape.gather_rows(sums, &heard.order);
        let by_type = tape.param(self.message);
        let messages = tape.span_linear_heads(sums, by_type, &heard.spans, self.heads);
        Ok(tape.spmm(&heard.own, messages, Reduce::Sum, None))
    }

    /// Attention of the heads of a slice over all edges, in the order of nodes.
    fn attention_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        own: &HeadSlice,
    ) -> Result<Var> {
        let (graph, heard, heads) = (slices.graph, slices.graph.heard(), own.heads());
        let query = self.query.apply(tape, x, graph.own());
        let query = tape.gather_rows(query, heard.ends.indices());
        let by_type = tape.param(self.attention);
        let query = tape.span_linear_heads(query, by_type, &heard.spans, self.heads);
        let query = tape.gather_rows(query, heard.own.indices());
        let query = tape.split(slices.groups, query)?;
        let key = self.key.apply(tape, x, graph.own());
        let key = tape.split(slices.nodes, key)?;
        let scores = own.dot(tape, &heard.groups, key, query);
        let scores = tape.sum_heads(slices.nodes, scores, self.heads * self.width, self.heads)?;
        let prior = self.scaled_prior(tape);
        let prior = tape.slice_cols(prior, heads.start, heads.len());
        let prior = tape.gather_rows(prior, &heard.edge_relation());
        let scores = tape.mul(scores, prior);
        Ok(tape.edge_softmax(graph.block().block(), scores))
    }
}
