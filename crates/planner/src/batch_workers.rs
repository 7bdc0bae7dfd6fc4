//! The number of batch workers that costs least, and the one that keeps up with compute (Armada §3, §6.3).

use gnarl_config::{Engine, PlanSection, RunConfig};
use serde::Serialize;

use super::work::{Seconds, Work, threads as rank_threads};

/// Most batch workers that are considered.
const MOST: usize = 4096;
/// Bytes of a batch that a thread encodes or decodes in a second: 600 MB an epoch made an epoch on the same two cores
/// longer by 0.35 to 0.5 s, at both ends (`benches/runs/2026-11-26.md`).
const WIRE: f64 = 2e9;
/// An epoch this much longer than the shortest one is as good.
const AS_GOOD: f64 = 1.05;
const HOUR: f64 = 3600.0;

/// The two sides of an epoch, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sides {
    /// Seconds without batch workers.
    pub alone: f64,
    /// Seconds of compute workers: computing, synchronizing, taking batches in.
    pub compute: f64,
    /// Seconds of a batch worker that prepares all batches.
    pub prepare: f64,
    /// Seconds of any batch worker for the lists of all parts.
    pub lists: f64,
    /// Seconds of the link, for all batches.
    pub link: f64,
    /// Seconds of the disk of a batch worker, for all parts.
    pub disk: f64,
}

/// Seconds of an epoch of one worker whose stages did not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Threads that computed.
    pub threads: usize,
    /// Seconds of computing.
    pub compute: f64,
    /// Seconds of sampling and gathering features, which one thread does.
    pub prepare: f64,
}

/// Prices of hosts by the hour, in any currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Prices {
    /// An hour of all hosts of compute workers.
    pub compute: f64,
    /// An hour of a batch worker's host.
    pub batch: f64,
}

/// An epoch with a number of batch workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// Batch workers; with none, ranks prepare their batches themselves.
    pub batch_workers: usize,
    /// Seconds of an epoch.
    pub seconds: f64,
    /// The side that takes longest.
    pub bound: &'static str,
    /// Price of an epoch; none if no prices are given.
    pub cost: Option<f64>,
}

/// Epochs by the number of batch workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchWorkersPlan {
    /// The sides.
    pub sides: Sides,
    /// From none to as many as shorten an epoch; of more than eight, powers of two and the two numbers below.
    pub choices: Vec<Choice>,
    /// The least number with about the shortest epoch.
    pub saturating: usize,
    /// The number with the least cost; none if no prices are given.
    pub cheapest: Option<usize>,
}

impl Prices {
    /// Price of `seconds` with so many batch workers.
    pub fn cost(&self, seconds: f64, batch_workers: usize) -> f64 {
        seconds / HOUR * (self.compute + batch_workers as f64 * self.batch)
    }

    /// Those of `[plan]`, for the hosts of a run; none if all are 0.
    fn of(config: &RunConfig) -> Option<Self> {
        let PlanSection { compute_price, batch_price, .. } = config.plan;
        let hosts = match config.train.engine {
            Engine::Local => 1,
            Engine::Mpi => config.train.workers,
        };
        let prices = Self { compute: hosts as f64 * compute_price, batch: batch_price };
        (prices != Self::default()).then_some(prices)
    }
}

impl Sides {
    /// Those of a rank's predicted `work`, at the rates of a run.
    pub(super) fn of(
        (work, stages): (&Work, &Seconds),
        measured: Option<&Measured>,
        config: &RunConfig,
    ) -> Self {
        let rates = &config.plan;
        let ranks = config.train.workers as f64;
        let (computed, prepared) = match measured {
            // A batch is prepared by one thread, and computed by all.
            Some(of_one) => {
                let by_one = of_one.threads as f64 / rank_threads(config);
                (of_one.compute * by_one / ranks, of_one.prepare / ranks)
            }
            None => (stages.products + stages.messages + stages.rows, stages.sampling),
        };
        let bytes = work.fetched_bytes + 4.0 * work.sampled_edges;
        let threads = batch_threads(config);
        let coded = bytes / WIRE;
        Self {
            alone: match measured {
                Some(_) => {
                    let busy = computed + (prepared + stages.lists) / rank_threads(config);
                    busy.max(prepared).max(stages.reading) + stages.communication + stages.steps
                }
                None => stages.total(config),
            },
            compute: computed + stages.communication + stages.steps + coded,
            prepare: ranks * (prepared + coded) / threads,
            lists: work.merged_bytes / rates.gather / threads,
            link: bytes / rates.link,
            disk: work.read_bytes / rates.disk,
        }
    }

    /// Seconds of an epoch with `batch_workers`, and the side that takes them.
    fn epoch(&self, batch_workers: usize) -> (f64, &'static str) {
        if batch_workers == 0 {
            return (self.alone, "no batch workers");
        }
        let each = self.prepare / batch_workers as f64 + self.lists;
        let sides = [
            (self.compute, "compute"),
            (each, "batch workers"),
            (self.link, "the link"),
            (self.disk, "the disk"),
        ];
        sides.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    }
}

impl BatchWorkersPlan {
    /// The plan for a run, from the `sides` of its epochs.
    pub fn of(sides: Sides, config: &RunConfig) -> Self {
        let prices = Prices::of(config);
        let choice = |batch_workers: usize| {
            let (seconds, bound) = sides.epoch(batch_workers);
            let cost = prices.map(|prices| prices.cost(seconds, batch_workers));
            Choice { batch_workers, seconds, bound, cost }
        };
        let all: Vec<Choice> = (0..=MOST).map(choice).collect();
        let shortest = all.iter().map(|choice| choice.seconds).fold(f64::INFINITY, f64::min);
        let enough = all.iter().find(|choice| choice.seconds <= AS_GOOD * shortest);
        let saturating = enough.map_or(0, |choice| choice.batch_workers);
        let cost = |choice: &&Choice| choice.cost.unwrap_or(0.0);
        let least = all.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let cheapest = prices.and(least).map(|choice| choice.batch_workers);
        let named = saturating.max(cheapest.unwrap_or(0)).max(2);
        // Few of many: powers of two, and those that are named.
        let shown = |choice: &Choice| {
            let many = choice.batch_workers;
            many <= 8 || many.is_power_of_two() || many == saturating || Some(many) == cheapest
        };
        let choices = all.into_iter().take(named + 2).filter(shown).collect();
        Self { sides, choices, saturating, cheapest }
    }
}

/// Compute threads of a batch worker.
fn batch_threads(config: &RunConfig) -> f64 {
    let PlanSection { threads, batch_threads, .. } = config.plan;
    if batch_threads == 0.0 { threads as f64 } else { batch_threads }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Armada's Table 1: GraphSage-Small with 0, 1, 2 and 4 batch workers (m6a.16xlarge) beside one host with eight GPUs
    /// (p3.16xlarge), of which 1, 2, 4 and 8 are used.
    #[test]
    fn prices_are_those_of_the_paper() {
        let prices = Prices { compute: 24.48, batch: 2.76 };
        let measured = [(54.9, 0), (33.3, 1), (14.2, 2), (7.35, 4)];
        let costs =
            measured.map(|(seconds, workers)| format!("{:.2}", prices.cost(seconds, workers)));
        assert_eq!(costs, ["0.37", "0.25", "0.12", "0.07"]);
    }

    #[test]
    fn batch_workers_help_until_compute_binds() {
        let sides =
            Sides { alone: 12.0, compute: 2.0, prepare: 9.0, lists: 0.1, link: 1.0, disk: 0.5 };
        let mut config = RunConfig::default();
        let plan = BatchWorkersPlan::of(sides, &config);
        let seconds: Vec<f64> = plan.choices.iter().map(|choice| choice.seconds).collect();
        assert!((seconds[1] - 9.1).abs() < 1e-9 && (seconds[2] - 4.6).abs() < 1e-9, "{seconds:?}");
        assert_eq!((plan.saturating, plan.cheapest), (5, None));
        assert_eq!((plan.choices[1].bound, plan.choices[5].bound), ("batch workers", "compute"));
        // Where batch workers cost as much as compute, time is what counts; where they cost more, fewer are cheaper.
        (config.plan.compute_price, config.plan.batch_price) = (10.0, 1.0);
        assert_eq!(BatchWorkersPlan::of(sides, &config).cheapest, Some(5));
        config.plan.batch_price = 20.0;
        assert_eq!(BatchWorkersPlan::of(sides, &config).cheapest, Some(0));
    }

    #[test]
    fn as_many_as_keep_up_are_named() {
        let sides = Sides { alone: 2000.0, compute: 1.0, prepare: 1000.0, ..Sides::default() };
        let plan = BatchWorkersPlan::of(sides, &RunConfig::default());
        assert_eq!(plan.saturating, 953, "5 % more than a second each");
        let shown: Vec<usize> = plan.choices.iter().map(|choice| choice.batch_workers).collect();
        assert_eq!(shown[7..], [7, 8, 16, 32, 64, 128, 256, 512, 953]);
    }

    #[test]
    fn a_measured_batch_is_prepared_by_one_thread() {
        let mut config = RunConfig::default();
        (config.plan.threads, config.plan.batch_threads) = (8, 4.0);
        let measured = Measured { threads: 16, compute: 1.0, prepare: 12.0 };
        let none = (&Work::default(), &Seconds::default());
        let sides = Sides::of(none, Some(&measured), &config);
        assert_eq!((sides.compute, sides.prepare), (2.0, 3.0));
        assert_eq!(sides.alone, 12.0, "one thread prepares beside computing");
    }

    #[test]
    fn the_disk_and_the_link_bind_any_number() {
        let sides =
            Sides { alone: 9.0, compute: 1.0, prepare: 4.0, lists: 0.0, link: 0.5, disk: 3.0 };
        let plan = BatchWorkersPlan::of(sides, &RunConfig::default());
        assert_eq!(plan.saturating, 2);
        assert!(plan.choices.iter().skip(2).all(|choice| choice.bound == "the disk"), "{plan:?}");
    }
}
