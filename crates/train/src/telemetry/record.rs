//! The record of each epoch.

use gnarl_config::TrainSection;
use serde::{Deserialize, Serialize};

use super::bottleneck::Verdict;
use super::load_balance::Balance;
use super::stage_times::Stages;
use super::tally::{Figures, Tally};
use crate::evaluation::Scores;
use crate::json;

/// One line of `metrics.jsonl`, including the verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean training loss.
    pub loss: f64,
    /// Learning rate.
    pub lr: f32,
    /// Root mean square over the optimizer steps of the norm of the gradient, before clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Training scores, if evaluated after this epoch and asked for.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub train: Scores,
    /// Validation scores, if evaluated after this epoch.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub valid: Scores,
    /// Test scores, if evaluated after this epoch.
    #[serde(default, deserialize_with = "json::floats", skip_serializing_if = "Scores::is_empty")]
    pub test: Scores,
    /// Wall seconds, evaluation not included.
    pub seconds: f64,
    /// Stage times, averaged over the workers.
    pub stages: Stages,
    /// Edges of all blocks, over all workers.
    pub sampled_edges: u64,
    /// Seeds, over all workers.
    pub seeds: u64,
    /// Cache hit rate of remote features, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// Bytes exchanged between workers, summed over all of them, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanged_bytes: Option<ExchangedBytes>,
    /// Bytes of parts read into memory, over all workers, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Batch workers that lived at its end, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_workers: Option<usize>,
    /// Load balance, if there are several workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
}

/// Bytes of exchanges, evaluation not included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangedBytes {
    /// Of activations.
    pub forward: u64,
    /// Of gradients.
    pub backward: u64,
}

impl EpochRecord {
    /// The line of `metrics.jsonl`: the record with its verdict, as JSON.
    pub fn line(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            #[serde(flatten)]
            record: &'a EpochRecord,
            verdict: String,
        }
        let verdict = self.verdict().to_string();
        serde_json::to_string(&Line { record: self, verdict }).unwrap_or_default()
    }

    /// The bottleneck of the epoch.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.stages, self.seconds, self.batch_workers.unwrap_or(0))
    }
}

impl Tally {
    /// The record from all ranks' counters, in their order.
    pub(crate) fn record(ranks: &[Figures], epoch: usize, lr: f32, seconds: f64) -> EpochRecord {
        let mut sums = [0.0; Self::FIGURES];
        for figures in ranks {
            sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        }
        let mut stages = [0.0; Stages::COUNT];
        for (mean, sum) in stages.iter_mut().zip(&sums[Self::FIRST_STAGE..]) {
            *mean = sum / ranks.len() as f64;
        }
        let exchanged = ExchangedBytes { forward: sums[6] as u64, backward: sums[7] as u64 };
        EpochRecord {
            epoch,
            loss: if sums[1] > 0.0 { sums[0] / sums[1] } else { 0.0 },
            lr,
            grad_norm: (sums[12] > 0.0).then(|| (sums[11] / sums[12]).sqrt()),
            seconds,
            stages: Stages::from_array(stages),
            sampled_edges: sums[2] as u64,
            seeds: sums[3] as u64,
            cache_hit_rate: (sums[4] + sums[5] > 0.0).then(|| sums[4] / (sums[4] + sums[5])),
            exchanged_bytes: (exchanged != ExchangedBytes::default()).then_some(exchanged),
            read_bytes: (sums[10] > 0.0).then_some(sums[10] as u64),
            balance: Balance::of(ranks),
            ..EpochRecord::default()
        }
    }
}

impl Verdict {
    /// The verdict on a run with the settings `train`.
    pub fn of_run(history: &[EpochRecord], train: &TrainSection) -> Self {
        let (mut stages, mut seconds) = (Stages::default(), 0.0);
        for record in history {
            stages.add(record.stages);
            seconds += record.seconds;
        }
        let last = history.last().and_then(|record| record.batch_workers).unwrap_or(0);
        let verdict = Self::of(&stages, seconds, last);
        match (verdict.stage, train.eval_every) {
            // A run of one evaluation has the least there can be.
            ("evaluate", 0) => Self::of(&Stages { evaluate: 0.0, ..stages }, seconds, last),
            ("evaluate", every) if every < train.epochs => {
                Self { advice: "a larger train.eval_every would help".into(), ..verdict }
            }
            _ => verdict,
        }
    }
}
