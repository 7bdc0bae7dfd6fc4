//! The counters of one rank.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;

use super::board::{Board, OfRank, OfScore, OfStage, Seconds};
use super::events::Events;
use crate::telemetry::{EpochRecord, Stages, Tally};

/// One rank's own numbers, not the mean over ranks.
#[derive(Debug, Clone)]
pub struct Meter {
    board: Arc<Board>,
    /// Receives the epochs, from one rank of each process.
    events: Option<Arc<Events>>,
    rank: usize,
    steps: Counter,
    edges: Counter,
    seeds: Counter,
    stages: [Seconds; Stages::COUNT],
}

impl Meter {
    /// A meter at 0, for a rank of a run of `planned` epochs.
    pub(super) fn new(
        board: &Arc<Board>,
        events: Option<Arc<Events>>,
        rank: usize,
        planned: usize,
    ) -> Self {
        let of = OfRank { rank };
        board.epoch.get_or_create(&of).set(0);
        board.planned.get_or_create(&of).set(planned as i64);
        let stage = |stage| board.stage.get_or_create_owned(&OfStage { rank, stage });
        Self {
            steps: board.steps.get_or_create_owned(&of),
            edges: board.edges.get_or_create_owned(&of),
            seeds: board.seeds.get_or_create_owned(&of),
            stages: Stages::NAMES.map(stage),
            board: board.clone(),
            events,
            rank,
        }
    }

    /// Counts a step, with its `tally`.
    pub(crate) fn step(&self, tally: &Tally) {
        self.steps.inc();
        self.edges.inc_by(tally.edges);
        self.seeds.inc_by(tally.seeds);
        self.spent(tally.stages);
    }

    /// Counts time outside of steps.
    pub(crate) fn spent(&self, stages: Stages) {
        for (counter, seconds) in self.stages.iter().zip(stages.to_array()) {
            counter.inc_by(seconds);
        }
    }

    /// Counts a finished epoch, of this run or of the one that it continues.
    pub(crate) fn epoch(&self, record: &EpochRecord) {
        let (board, of) = (&self.board, OfRank { rank: self.rank });
        board.epoch.get_or_create(&of).set(record.epoch as i64);
        board.loss.get_or_create(&of).set(record.loss);
        board.rate.get_or_create(&of).set(record.lr.into());
        // A record without batch workers says that none lives, if there were some.
        if record.batch_workers.is_some() || board.batch_workers.get(&of).is_some() {
            let living = record.batch_workers.unwrap_or(0);
            board.batch_workers.get_or_create(&of).set(living as i64);
        }
        for (metric, &score) in &record.valid {
            let of = OfScore { rank: self.rank, metric: metric.clone() };
            board.score.get_or_create(&of).set(score);
        }
        if let Some(events) = &self.events {
            events.publish(record);
        }
    }
}
