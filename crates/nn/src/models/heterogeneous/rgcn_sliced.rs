//! R-GCN layers with message passing over feature slices.
//!
//! A layer is linear up to its activation, so that matrices can be applied before or after
//! messages, and those of a basis decomposition by edge type or by basis. All orders give the same
//! result; a layer takes the one that exchanges the fewest values.

use gnarl_common::Result;

use super::rgcn::{Rgcn, Weights};
use super::slices::{HeteroSlices, WholeRelations};
use crate::{Lists, ParamId, Reduce, Tape, Var};

/// The order of matrices and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Aggregates, then maps each group's mean: nodes one way, groups back.
    HearThenMap,
    /// Maps the messages of each sender, then aggregates: senders one way, nodes back.
    MapThenHear,
    /// Aggregates once per basis, which is then applied: nodes one way, nodes times bases back.
    HearThenBases,
    /// Applies the bases, then aggregates: nodes times bases one way, nodes back.
    BasesThenHear,
}

impl Rgcn {
    /// The sum over edge types of the messages of own nodes, in the order that exchanges least.
    pub(super) fn heard_sliced<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        self.heard_by(self.way(slices.graph), tape, slices, x)
    }

    /// Builds the transposes that layers and their backward passes need of `graph`.
    pub(super) fn prepare(&self, graph: &WholeRelations) {
        match self.way(graph) {
            Way::HearThenMap => {
                graph.heard().groups.transpose();
                graph.heard().own.transpose();
            }
            Way::HearThenBases => {
                graph.heard().groups.transpose();
                graph.heard().destinations.transpose();
            }
            Way::MapThenHear => {
                graph.sent().destinations.transpose();
            }
            Way::BasesThenHear => {
                graph.sent().nodes.transpose();
                graph.sent().destinations.transpose();
            }
        }
    }

    /// As [`Rgcn::heard_sliced`], in a given order.
    pub(super) fn heard_by<'b>(
        &self,
        way: Way,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        match (way, &self.weights) {
            (Way::HearThenBases, &Weights::Bases(coefficients, bases)) => {
                self.hear_then_bases(tape, slices, x, (coefficients, bases))
            }
            (Way::BasesThenHear, &Weights::Bases(coefficients, bases)) => {
                self.bases_then_hear(tape, slices, x, (coefficients, bases))
            }
            (Way::MapThenHear, _) => self.map_then_hear(tape, slices, x),
            _ => self.hear_then_map(tape, slices, x),
        }
    }

    /// The order that exchanges the fewest values; the first of equal ones.
    fn way(&self, graph: &WholeRelations) -> Way {
        let [nodes, groups, senders] = graph.counts();
        let (input, output) = self.dims;
        let mut ways = vec![
            (Way::HearThenMap, (nodes + groups) * input),
            (Way::MapThenHear, (senders + nodes) * output),
        ];
        if let Weights::Bases(_, _) = self.weights {
            ways.push((Way::HearThenBases, (1 + self.bases) * nodes * input));
            ways.push((Way::BasesThenHear, (self.bases + 1) * nodes * output));
        }
        ways.into_iter().min_by_key(|(_, values)| *values).map_or(Way::HearThenMap, |(way, _)| way)
    }

    fn hear_then_map<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let heard = slices.graph.heard();
        let means = self.means(tape, slices, x)?;
        let means = tape.gather(slices.groups, means, self.dims.0)?;
        let means = tape.gather_rows(means, &heard.order);
        let (matrices, blocks) = self.matrices(tape);
        let messages = tape.span_linear_heads(means, matrices, &heard.spans, blocks);
        Ok(tape.spmm(&heard.own, messages, Reduce::Sum, None))
    }

    fn map_then_hear<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
    ) -> Result<Var> {
        let sent = slices.graph.sent();
        let rows = tape.gather_rows(x, sent.own.indices());
        let (matrices, blocks) = self.matrices(tape);
        let mapped = tape.span_linear_heads(rows, matrices, &sent.spans, blocks);
        let mapped = tape.gather_rows(mapped, &sent.places);
        let mapped = tape.split(slices.senders, mapped)?;
        let weights = Some(sent.weights.clone());
        let sums = tape.spmm(&sent.destinations, mapped, Reduce::Sum, weights);
        tape.gather(slices.nodes, sums, self.dims.1)
    }

    fn hear_then_bases<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        (coefficients, bases): (ParamId, ParamId),
    ) -> Result<Var> {
        let (heard, (input, output)) = (slices.graph.heard(), self.dims);
        let means = self.means(tape, slices, x)?;
        let coefficients = tape.param(coefficients);
        let of_groups = tape.gather_rows(coefficients, &heard.relation);
        let mut sums = Vec::with_capacity(self.bases);
        for basis in 0..self.bases {
            let weights = tape.slice_cols(of_groups, basis, 1);
            let sum = tape.spmm_weighted(&heard.destinations, means, weights);
            sums.push(tape.gather(slices.nodes, sum, input)?);
        }
        let sums = tape.concat_cols(&sums);
        let bases = tape.param(bases);
        let bases = tape.reshape(bases, self.bases * input, output);
        Ok(tape.matmul(sums, bases))
    }

    fn bases_then_hear<'b>(
        &self,
        tape: &mut Tape<'b>,
        slices: &HeteroSlices<'b>,
        x: Var,
        (coefficients, bases): (ParamId, ParamId),
    ) -> Result<Var> {
        let (sent, (input, output)) = (slices.graph.sent(), self.dims);
        let (coefficients, bases) = (tape.param(coefficients), tape.param(bases));
        let of_senders = tape.gather_rows(coefficients, &sent.relation);
        let mut all = None;
        for basis in 0..self.bases {
            let matrix = tape.gather_rows(bases, &[basis as u32]);
            let matrix = tape.reshape(matrix, input, output);
            let mapped = tape.matmul(x, matrix);
            let mapped = tape.split(slices.nodes, mapped)?;
            let weights = tape.slice_cols(of_senders, basis, 1);
            let own = tape.spmm_weighted(&sent.nodes, mapped, weights);
            all = Some(all.map_or(own, |all| tape.add(all, own)));
        }
        // The configuration has at least one basis.
        let all = all.expect("a basis");
        let weights = Some(sent.weights.clone());
        let sums = tape.spmm(&sent.destinations, all, Reduce::Sum, weights);
        tape.gather(slices.nodes, sums, output)
    }

    /// This rank's feature slice of the mean over each group.
    fn means<'b>(&self, tape: &mut Tape<'b>, slices: &HeteroSlices<'b>, x: Var) -> Result<Var> {
        let heard = slices.graph.heard();
        let columns = tape.split(slices.nodes, x)?;
        let reduce = if heard.weights.is_some() { Reduce::Sum } else { Reduce::Mean };
        Ok(tape.spmm(&heard.groups, columns, reduce, heard.weights.clone()))
    }
}
