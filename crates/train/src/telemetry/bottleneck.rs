//! The bottleneck of an epoch, and advice against it.

use std::borrow::Cow;
use std::fmt;

use super::stage_times::Stages;

/// Share of an epoch below which stages ahead of compute keep up with it. If compute
/// waits for them all the same, they are uneven and too few batches are buffered.
const BUSY: f64 = 0.6;

/// The bottleneck and advice; prints as one short sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Name of the stage.
    pub stage: &'static str,
    /// Its time as a share of the epoch. Evaluation comes after the epoch and can
    /// take more than one; the others are at most 1.
    pub share: f64,
    /// The denominator of the share, and the activity.
    pub doing: &'static str,
    /// Advice to shorten it; empty where there is none.
    pub advice: Cow<'static, str>,
}

impl Verdict {
    /// The verdict on an epoch of `seconds` of wall time, evaluation not included, whose batches `batch_workers` batch workers
    /// prepared, if any.
    pub fn of(stages: &Stages, seconds: f64, batch_workers: usize) -> Self {
        if stages.evaluate > seconds {
            return Self {
                stage: "evaluate",
                share: share(stages.evaluate, seconds),
                doing: "the epoch's time again, for evaluation",
                advice: Cow::Borrowed(""),
            };
        }
        let stage = stages.bottleneck();
        if stage == "receive" {
            return Self::of_receiving(stages, seconds, batch_workers);
        }
        let (spent, doing, advice) = match stage {
            "load" => (
                stages.wait,
                "the epoch waiting for parts",
                "more disaggregated.slots with fewer parts each, or more memory, would help",
            ),
            "sample" => (stages.wait, "the epoch waiting for sampling", ahead(stages, seconds)),
            "fetch" => (stages.wait, "the epoch waiting for features", ahead(stages, seconds)),
            "exchange" => (
                stages.exchange,
                "the epoch redistributing features among workers or waiting for them",
                "fewer train.workers, narrower layers or model.decoupled would help",
            ),
            "reduce" => (
                stages.reduce,
                "the epoch exchanging with other workers or waiting for them",
                "a larger sample.batch_size, or train.sync_every of 'average', would help",
            ),
            _ => (
                stages.compute,
                "the epoch computing",
                "batches are ready in time; more cores or a smaller model would help",
            ),
        };
        Self { stage, share: share(spent, seconds).min(1.0), doing, advice: advice.into() }
    }

    /// The verdict on an epoch that waited for batches of others.
    fn of_receiving(stages: &Stages, seconds: f64, batch_workers: usize) -> Self {
        let working = (seconds - stages.wait).max(0.01 * seconds);
        // As many as prepare batches in the time that is not spent waiting, if each goes on at its pace.
        let balanced = (batch_workers as f64 * share(seconds, working)).ceil() as usize;
        let (doing, advice) = match batch_workers {
            0 => ("the epoch waiting for prepared batches", "a faster disk would help".into()),
            _ if stages.receive < BUSY * seconds => (
                "the epoch waiting for batches of batch workers",
                "batches are uneven; a larger train.prefetch would help".into(),
            ),
            now => (
                "the epoch waiting for batches of batch workers",
                Cow::Owned(format!(
                    "{balanced} batch workers like these {now} would keep up with compute"
                )),
            ),
        };
        let share = share(stages.wait, seconds).min(1.0);
        Self { stage: "receive", share, doing, advice }
    }
}

/// Advice on waiting for batches.
fn ahead(stages: &Stages, seconds: f64) -> &'static str {
    match stages.sample.max(stages.fetch) < BUSY * seconds {
        true => "batches are uneven; a larger train.prefetch would help",
        false if stages.busiest_ahead() == "sample" => {
            "more train.preparation_threads (where cores are idle or other hosts are asked), smaller sample.fanouts or \
             more train.workers would help"
        }
        false => {
            "narrower features (f16), more memory, more train.preparation_threads (where other hosts are asked) or more \
             train.workers would help"
        }
    }
}

fn share(spent: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { spent / seconds } else { 0.0 }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, share, doing, advice } = self;
        write!(f, "bound by {stage}: {:.0} % of {doing}", 100.0 * share)?;
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::EpochRecord;
    use gnarl_config::TrainSection;

    /// The verdict on an epoch of one second, as text.
    fn said(stages: Stages) -> String {
        Verdict::of(&stages, 1.0, 0).to_string()
    }

    #[test]
    fn slow_sampling_asks_for_less_of_it() {
        let text = said(Stages { sample: 0.9, fetch: 0.3, wait: 0.5, compute: 0.4, ..none() });
        assert!(
            text.starts_with("bound by sample: 50 % of the epoch waiting for sampling"),
            "{text}"
        );
        assert!(text.contains("sample.fanouts"), "{text}");
    }

    #[test]
    fn slow_batch_workers_ask_for_as_many_as_keep_up() {
        let stages = Stages { receive: 0.9, wait: 0.6, compute: 0.4, ..none() };
        let text = Verdict::of(&stages, 1.0, 2).to_string();
        let expected = "bound by receive: 60 % of the epoch waiting for batches of batch workers; 5 batch workers like";
        assert!(text.starts_with(expected), "{text}");
        assert!(said(stages).contains("prepared batches"));
        let bound = Stages { receive: 0.9, wait: 0.1, compute: 0.8, ..none() };
        assert!(Verdict::of(&bound, 1.0, 2).to_string().starts_with("bound by compute"));
    }

    #[test]
    fn slow_parts_ask_for_fewer_changes() {
        let text = said(Stages { load: 0.8, sample: 0.3, wait: 0.5, compute: 0.4, ..none() });
        assert!(text.starts_with("bound by load: 50 % of the epoch waiting for parts"), "{text}");
        assert!(text.contains("disaggregated.slots"), "{text}");
    }

    #[test]
    fn slow_fetching_asks_for_fewer_bytes() {
        let text = said(Stages { sample: 0.3, fetch: 0.95, wait: 0.62, compute: 0.3, ..none() });
        assert!(
            text.starts_with("bound by fetch: 62 % of the epoch waiting for feature"),
            "{text}"
        );
        assert!(text.contains("f16"), "{text}");
    }

    #[test]
    fn waiting_for_idle_stages_asks_for_more_ahead() {
        for (sample, fetch) in [(0.4, 0.1), (0.1, 0.4)] {
            let text = said(Stages { sample, fetch, wait: 0.6, compute: 0.4, ..none() });
            assert!(text.contains("uneven") && text.contains("train.prefetch"), "{text}");
        }
    }

    #[test]
    fn exchanges_ask_for_fewer_of_them() {
        let text = said(Stages { wait: 0.1, compute: 0.2, reduce: 0.7, ..none() });
        assert!(text.starts_with("bound by reduce: 70 % of the epoch exchanging"), "{text}");
        assert!(text.contains("sample.batch_size") && text.contains("train.sync_every"), "{text}");
    }

    #[test]
    fn exchanges_of_columns_ask_for_fewer_columns() {
        let text = said(Stages { compute: 0.2, exchange: 0.5, reduce: 0.3, ..none() });
        assert!(text.starts_with("bound by exchange: 50 % of the epoch redistributing"), "{text}");
        assert!(text.contains("model.decoupled"), "{text}");
    }

    #[test]
    fn arithmetic_asks_for_cores() {
        let text = said(Stages { sample: 0.9, wait: 0.1, compute: 0.8, ..none() });
        assert!(text.starts_with("bound by compute: 80 % of the epoch computing"), "{text}");
        assert!(text.contains("more cores"), "{text}");
    }

    #[test]
    fn evaluation_longer_than_the_epoch_asks_for_fewer() {
        let text = said(Stages { compute: 0.8, evaluate: 2.3, ..none() });
        assert!(text.starts_with("bound by evaluate: 230 % of the epoch's time again"), "{text}");
        assert!(!text.contains("help"), "an epoch does not know how often: {text}");
    }

    #[test]
    fn a_larger_eval_every_is_advised_where_there_is_one() {
        let stages = Stages { compute: 0.8, evaluate: 2.3, ..none() };
        let history = vec![EpochRecord { seconds: 1.0, stages, ..EpochRecord::default() }; 10];
        for (eval_every, stage, advised) in
            [(0, "compute", false), (1, "evaluate", true), (10, "evaluate", false)]
        {
            let train = TrainSection { eval_every, epochs: 10, ..TrainSection::default() };
            let verdict = Verdict::of_run(&history, &train);
            assert_eq!(verdict.stage, stage, "{eval_every}");
            assert_eq!(verdict.to_string().contains("train.eval_every"), advised, "{eval_every}");
        }
    }

    #[test]
    fn no_stage_of_an_epoch_takes_more_than_all_of_it() {
        let text = said(Stages { compute: 1.5, ..none() });
        assert!(text.contains(" 100 % ") && !text.contains('\n'), "{text}");
        let text = Verdict::of(&none(), 0.0, 0).to_string();
        assert!(text.contains(" 0 % "), "{text}");
    }

    fn none() -> Stages {
        Stages::default()
    }
}
