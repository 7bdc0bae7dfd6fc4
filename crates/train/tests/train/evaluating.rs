//! Evaluation on request: of some splits, of none, over sampled neighbors.

use gnarl_config::{RunConfig, ScoredSplit, TaskKind};
use gnarl_graph::generate::{HeteroOptions, heterogeneous};
use gnarl_train::{Begin, Summary, eval_run, run};

use super::bench::Bench;

fn train(config: &RunConfig) -> Summary {
    run(config, Begin::Restart, &|_| ()).unwrap().summary
}

#[test]
fn a_split_that_is_not_asked_for_is_not_scored() {
    let bench = Bench::new();
    let both = train(&bench.config("both"));
    let mut config = bench.config("valid");
    config.evaluate.splits = vec![ScoredSplit::Valid];
    let valid = train(&config);
    assert!(valid.test.is_empty() && !both.test.is_empty());
    assert_eq!((&valid.valid, valid.best_epoch), (&both.valid, both.best_epoch));
    assert_eq!(valid.losses, both.losses);
    // Asked for afterwards, both are there.
    assert_eq!(eval_run(&config.output.dir, None).unwrap().test, both.test);
}

#[test]
fn a_run_that_is_never_evaluated_keeps_its_last_weights() {
    let bench = Bench::new();
    let mut config = bench.config("never");
    config.evaluate.splits.clear();
    let never = train(&config);
    assert!(never.valid.is_empty() && never.test.is_empty());
    assert_eq!((never.best_epoch, never.epochs), (3, 3));
    // Without a validation set the last weights are the best ones, too.
    let mut config = bench.config("test");
    config.evaluate.splits = vec![ScoredSplit::Test];
    let test = train(&config);
    assert_eq!((test.best_epoch, test.losses), (3, never.losses));
    assert_eq!(eval_run(&bench.path("never"), None).unwrap().test, test.test);
}

#[test]
fn sampled_evaluation_of_all_neighbors_is_the_exact_one() {
    let bench = Bench::new();
    let exact = train(&bench.config("exact"));
    let mut config = bench.config("all");
    config.evaluate.fanouts = vec![-1, -1];
    let all = train(&config);
    assert_eq!((&all.valid, &all.test), (&exact.valid, &exact.test));
    config.output.dir = bench.path("few");
    config.evaluate.fanouts = vec![2, 2];
    let few = train(&config);
    assert_eq!(few.losses, exact.losses);
    assert!(few.valid != exact.valid || few.test != exact.test, "two neighbors are not all");
    for workers in [2, 3] {
        let mut config = config.clone();
        config.train.workers = workers;
        config.output.dir = bench.path(&format!("few-{workers}"));
        let shared = train(&config);
        assert_eq!((&shared.valid, &shared.test), (&few.valid, &few.test), "{workers} workers");
    }
}

#[test]
fn typed_graphs_and_links_are_evaluated_over_samples_too() {
    let bench = Bench::new();
    let options = HeteroOptions { nodes: 300, edges: 2000, communities: 4, ..Default::default() };
    let made = heterogeneous(&options, &bench.path("typed")).unwrap();
    let mut typed = bench.config("typed-run");
    typed.dataset.path = made.dataset.dir().into();
    typed.model.name = "rgcn".into();
    let mut links = bench.config("links-run");
    links.task.kind = TaskKind::LinkPrediction;
    for mut config in [typed, links] {
        let name = config.output.dir.clone();
        let exact = train(&config);
        config.evaluate.fanouts = vec![-1, -1];
        config.output.dir = name.with_extension("all");
        let all = train(&config);
        let close = |(name, score): (&String, &f64)| (score - exact.valid[name]).abs() < 1e-3;
        assert!(all.valid.iter().all(close), "{:?} {:?}", all.valid, exact.valid);
        config.evaluate.fanouts = vec![1, 1];
        config.output.dir = name.with_extension("few");
        assert_ne!(train(&config).valid, exact.valid);
    }
}
