//! What link prediction asks of an encoder.

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_nn::{Params, Tensor};

use super::Links;
use super::columns::ColumnLearner;
use super::encoded::EncodedLearner;
use crate::config::Strategy;
use crate::embeddings::Rows;
use crate::messages::{MessageModel, Seen, Ways};
use crate::state::TrainState;
use crate::strategy::{Session, gradient};

/// A [`MessageModel`], whatever its batches are.
pub(super) trait Encoder: Send + Sync {
    /// See [`MessageModel::ways`].
    fn ways(&self, relation: u32) -> Ways;

    /// The rows of all nodes, by full neighbours; those of the tails' type after those of the heads'.
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor>;

    /// Trains by batches, or by full-graph steps.
    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;

    /// How many of the edges that the first batches are to find are in the blocks of these batches.
    fn seen(&self, links: &Links) -> Result<Seen>;
}

impl<M: MessageModel> Encoder for M {
    fn ways(&self, relation: u32) -> Ways {
        MessageModel::ways(self, relation)
    }

    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Tensor> {
        let mut of_types = MessageModel::rows(self, params, tables)?;
        match &of_types[..] {
            [heads, tails] => Ok(Tensor::from_vec(
                heads.rows() + tails.rows(),
                heads.cols(),
                [heads.data(), tails.data()].concat(),
            )),
            _ => Ok(of_types.swap_remove(0)),
        }
    }

    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        if links.config.train.strategy == Strategy::Tensor {
            let ways = |relation| MessageModel::ways(self, relation);
            let learner = ColumnLearner::new(links, self.by_columns(rank)?, &ways, rank)?;
            return gradient::train(session, &learner, rank, state);
        }
        gradient::train(session, &EncodedLearner::new(links, self)?, rank, state)
    }

    fn seen(&self, links: &Links) -> Result<Seen> {
        EncodedLearner::new(links, self)?.seen()
    }
}
