//! Attention of the layers of edge types over feature slices.

use gnarl_common::Result;

use super::hetero::Hetero;
use super::hetero_sliced::{rows_of, split_messages};
use super::rgat_sliced::edge_scores;
use super::slices::{HeteroSlices, WholeRelations};
use crate::models::attention::Attention;
use crate::models::head_slice::HeadSlice;
use crate::models::relation_layer::{Aggregation, Attending};
use crate::{Activation, Lists, Tape, Var};

impl Hetero {
    /// The slice of each group's sum of projected sources by attention. All ranks gather the scores
    /// of all senders and groups. The layers of all edge types have `heads` of `width` columns and one
    /// form of `attention`.
    pub(super) fn attended<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        (heads, width): (usize, usize),
        attention: &Attention,
    ) -> Result<Var> {
        let (graph, heard) = (slices.graph, slices.graph.heard());
        let messages = self.messages(tape, graph, x);
        let rows = tape.gather_rows(x, heard.ends.indices());
        let mut of_senders = Vec::with_capacity(messages.len());
        let mut of_groups = Vec::with_capacity(messages.len());
        for ((edge_type, layer), &message) in self.attending().enumerate().zip(&messages) {
            of_senders.push(layer.source_scores(tape, message));
            let rows = tape.row_range(rows, rows_of(&heard.spans, edge_type));
            of_groups.push(layer.destination_scores(tape, rows));
        }
        let ends = (tape.concat_rows(&of_senders), tape.concat_rows(&of_groups));
        let scores = edge_scores(tape, slices, ends, 0..heads)?;
        let scores = tape.activation(scores, Activation::LeakyRelu(attention.slope()));
        let weights = tape.edge_softmax(&heard.groups, scores);
        let weights = self.drop_edges(tape, graph, weights, attention.dropout());
        let slice = split_messages(tape, slices, &messages)?;
        let own = HeadSlice::new(slices.senders.columns(heads * width), width);
        Ok(own.sum(tape, graph.heard_senders(), slice, (weights, 0)))
    }

    fn attending(&self) -> impl Iterator<Item = &dyn Attending> {
        self.relations.iter().filter_map(|layer| match layer.aggregation() {
            Some(Aggregation::Attention(layer)) => Some(layer),
            _ => None,
        })
    }

    /// Drops the weights of edges, in the order of nodes, that the layers of edge types drop on
    /// blocks, drawing one after the other.
    fn drop_edges<'b>(
        &self,
        tape: &mut Tape<'b>,
        graph: &'b WholeRelations,
        weights: Var,
        probability: f32,
    ) -> Var {
        let block = graph.block();
        if probability == 0.0 || !tape.is_training() || block.position().is_empty() {
            tape.skip_draws(self.relations.iter().map(|layer| layer.draws()).sum());
            return weights;
        }
        let weights = tape.gather_rows(weights, block.position());
        let mut blocks = block.homogeneous().iter().peekable();
        let (mut parts, mut first) = (Vec::new(), 0);
        for (edge_type, layer) in self.relations.iter().enumerate() {
            let Some(one) = blocks.next_if(|one| one.relation == edge_type) else {
                tape.skip_draws(layer.draws());
                continue;
            };
            let edges = first..first + one.block.num_edges();
            first = edges.end;
            let part = tape.row_range(weights, edges);
            tape.skip_draws(1);
            parts.push(tape.edge_dropout(&one.block, part, probability));
            tape.skip_draws(1);
        }
        let by_type = tape.concat_rows(&parts);
        tape.gather_rows(by_type, block.place())
    }
}
