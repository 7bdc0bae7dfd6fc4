//! What labels of edges ask of an encoder.

use gnarl_engine::Communicator;
use gnarl_graph::Result;
use gnarl_graph::rng::Key;
use gnarl_nn::{Params, Tensor};
use gnarl_sample::Scratch;
use gnarl_sample::negatives::Triples;

use super::EdgeLabels;
use super::learner::{EdgeLearner, ends};
use crate::config::{Method, RunConfig};
use crate::embeddings::Rows;
use crate::evaluation::LeakageReport;
use crate::messages::{MessageModel, Seen};
use crate::state::TrainState;
use crate::strategy::{Session, gradient};

/// Held-out edges of a split that are looked for in the message graph.
const LOOKED_FOR: usize = 1024;

/// A [`MessageModel`], whatever its batches are.
pub(super) trait Encoder: Send + Sync {
    /// See [`MessageModel::rows`].
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Vec<Tensor>>;

    /// Trains by batches.
    fn train(
        &self,
        task: &EdgeLabels,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState>;

    /// Which of the edges asked about pass messages: training edges in the first batches that are about
    /// them, held-out edges in evaluation.
    fn leakage(&self, task: &EdgeLabels) -> Result<LeakageReport>;
}

impl<M: MessageModel> Encoder for M {
    fn rows(&self, params: &Params, tables: &[Rows<'_>]) -> Result<Vec<Tensor>> {
        MessageModel::rows(self, params, tables)
    }

    fn train(
        &self,
        task: &EdgeLabels,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        gradient::train(session, &EdgeLearner::new(task, self)?, rank, state)
    }

    fn leakage(&self, task: &EdgeLabels) -> Result<LeakageReport> {
        let train = EdgeLearner::new(task, self)?.seen()?;
        let [valid, test] = [&task.targets.valid, &task.targets.test]
            .map(|split| heard(self, &task.config, &split.edges, task.two_types()));
        let (valid, test) = (valid?, test?);
        let verdict = match (train.seen, valid.seen + test.seen) {
            (0, 0) => "no edge passes messages while it is asked about".to_string(),
            (0, seen) => format!(
                "task.messages = 'all': {seen} held-out edges pass messages while they are asked \
                 about, which those that were trained on did not"
            ),
            (seen, _) => format!(
                "task.leakage = 'keep': {seen} of {} target edges are in the message graph of their \
                 own batch",
                train.edges
            ),
        };
        Ok(LeakageReport { train, valid, test, verdict })
    }
}

/// Looks for the first of some edges among all that reach their ends.
fn heard<M: MessageModel>(
    model: &M,
    config: &RunConfig,
    edges: &Triples,
    two_types: bool,
) -> Result<Seen> {
    let some: Vec<u32> = (0..edges.len().min(LOOKED_FOR) as u32).collect();
    let edges = edges.at(&some);
    let mut config = config.clone();
    (config.sample.method, config.model.layers) = (Method::Full, 1);
    let sampler = model.sampler(&config)?;
    let (nodes, _) = ends(&edges, two_types);
    let sampled = model.sample(&sampler, &nodes, Key::new(0), &mut Scratch::new())?;
    Ok(Seen::of(&edges, &model.edges(&sampled), |relation| model.ways(relation)))
}
