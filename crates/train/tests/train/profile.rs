//! Profiles of runs.

use std::collections::BTreeSet;
use std::path::Path;

use gnarl_common::profile::Kind;
use gnarl_config::{Parts, RunConfig, Strategy};
use gnarl_train::{Begin, ProfileTotals, run};
use serde_json::Value;

use super::bench::Bench;

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Names of the spans of a trace by their category, each in a rank; checks that they lie within the run.
fn spans(trace: &Value, seconds: f64) -> BTreeSet<(String, String, u64)> {
    let events = trace["traceEvents"].as_array().unwrap();
    let mut found = BTreeSet::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let microseconds = |key: &str| event[key].as_f64().unwrap();
        let end = microseconds("ts") + microseconds("dur");
        assert!(microseconds("ts") >= 0.0 && end <= 1e6 * seconds, "{event}");
        let text = |key: &str| event[key].as_str().unwrap().to_string();
        found.insert((text("cat"), text("name"), event["pid"].as_u64().unwrap()));
    }
    found
}

/// Trains with and without a profile; returns the spans of the former.
fn profiled(config: &mut RunConfig) -> BTreeSet<(String, String, u64)> {
    let mut losses = Vec::new();
    let mut found = None;
    for profile in [true, false] {
        config.output.profile = profile;
        let finished = run(config, Begin::Restart, &|_| ()).unwrap();
        losses.push(finished.summary.losses);
        let [trace, totals] = ["trace.json", "profile.json"].map(|name| finished.folder.join(name));
        assert_eq!(
            (trace.exists(), totals.exists()),
            (profile, profile),
            "that of the run before is gone"
        );
        if profile {
            let totals: ProfileTotals = serde_json::from_value(read(&totals)).unwrap();
            check(&totals);
            found = Some(spans(&read(&trace), totals.seconds));
        }
    }
    assert_eq!(losses[0], losses[1]);
    found.unwrap()
}

fn check(totals: &ProfileTotals) {
    assert!(totals.rates.gflops > 0.0 && totals.rates.gather_gbps > 0.0 && totals.left == 0);
    let product = totals.spans.iter().find(|span| span.kind == Kind::Kernel).unwrap();
    assert!(product.count > 0 && product.gflops > 0.0 && product.longest <= product.seconds);
    assert!(totals.kernel_share() > 0.0);
}

/// One test: a process takes one profile at a time.
#[test]
fn strategies_have_spans_of_every_kind_and_the_numbers_of_runs_without() {
    let bench = Bench::new();
    for (strategy, collective) in [
        (Strategy::Gradient, "gradients"),
        (Strategy::Average, "weights of a part"),
        (Strategy::Tensor, "gradients"),
    ] {
        let mut config = bench.config("profiled");
        config.train.strategy = strategy;
        config.train.workers = 2;
        config.train.epochs = 2;
        if strategy != Strategy::Tensor {
            config.partition.parts = Parts::Count(2);
        }
        let found = profiled(&mut config);
        for rank in 0..2 {
            let expected = [
                ("stage", "sample"),
                ("stage", "compute"),
                ("stage", "update"),
                ("kernel", "matrix product"),
                ("kernel", "SpMM"),
                ("collective", collective),
            ];
            for (kind, name) in expected {
                let span = (kind.to_string(), name.to_string(), rank);
                assert!(found.contains(&span), "{strategy:?}: no {span:?} in {found:?}");
            }
        }
        std::fs::remove_dir_all(&config.output.dir).unwrap();
    }
}
