//! Homogeneous layers as layers of edge types, over feature slices.

use super::attention::Attention;
use super::model::Model;
use crate::{Reduce, Tape, Var};

/// The aggregation of the messages that a node receives over one edge type.
pub(super) enum Aggregation<'m> {
    /// A reduction column by column: the mean by weight where edges have weights, the sum over all
    /// neighbors in the whole graph.
    Reduce(Reduce),
    /// The sum by attention.
    Attention(&'m dyn Attending),
}

/// Attention of a relation layer, by scores of the endpoints of edges, one per head.
pub(super) trait Attending {
    /// Number of heads.
    fn heads(&self) -> usize;

    /// The coefficients of scores.
    fn attention(&self) -> &Attention;

    /// Scores of sources from their mapped messages.
    fn source_scores(&self, tape: &mut Tape<'_>, messages: Var) -> Var;

    /// Scores of destinations from their input.
    fn destination_scores(&self, tape: &mut Tape<'_>, x: Var) -> Var;
}

/// A model of one layer without activation, in steps that messages over several edge types can be
/// exchanged between. Senders map their rows, or send them as they are; the slices of messages are
/// aggregated; destinations receive the aggregate.
pub(super) trait RelationLayer: Model {
    /// Number of random keys that the layer draws on a block: one for its input and one for its
    /// output, of which it drops nothing, and in between one for attention, if it has any.
    fn draws(&self) -> u64 {
        2
    }

    /// The column-wise aggregation; `None` if it mixes columns.
    fn aggregation(&self) -> Option<Aggregation<'_>>;

    /// Columns of messages: of unmapped ones, if the layer has those, and of mapped ones.
    fn widths(&self) -> (Option<usize>, usize);

    /// The mapped messages of senders, from their input.
    fn send(&self, tape: &mut Tape<'_>, x: Var) -> Var;

    /// The output of destinations with the input `x`, from the aggregate of messages, `mapped` or
    /// not.
    fn receive(&self, tape: &mut Tape<'_>, x: Var, aggregate: Var, mapped: bool) -> Var;
}
