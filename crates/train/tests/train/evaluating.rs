//! Evaluation on request: of some splits, of none, over sampled neighbors.

use gnarl_config::{RunConfig, ScoredSplit, Strategy, TaskKind};
use gnarl_graph::generate::{HeteroOptions, heterogeneous};
use gnarl_train::evaluation::{ClassCount, ClassScores};
use gnarl_train::{Begin, Recorded, Summary, eval_run, run};

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
    // The command of this program is its own affair.
    let origin = Recorded::read(&config.output.dir).unwrap().provenance.unwrap();
    assert!(origin.command.is_empty(), "{:?}", origin.command);
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

/// The counts of each class in a run's folder.
fn classes(config: &RunConfig) -> ClassScores {
    Recorded::read(&config.output.dir).unwrap().classes.expect("classes")
}

#[test]
fn counts_of_classes_are_those_of_the_score_on_any_number_of_ranks() {
    let bench = Bench::new();
    let mut config = bench.config("one");
    let one = train(&config);
    let counted = classes(&config);
    assert_eq!(counted.split, "test");
    let sum = |of: fn(&ClassCount) -> u64| counted.classes.iter().map(of).sum::<u64>() as f64;
    assert_eq!(sum(|class| class.correct) / sum(|class| class.support), one.test["accuracy"]);
    assert_eq!(sum(|class| class.predicted), sum(|class| class.support));
    let confused: u64 = counted.confused.iter().map(|pair| pair.2).sum();
    assert_eq!(confused as f64, sum(|class| class.support) - sum(|class| class.correct));
    // Evaluated by all ranks in shares, by the first one, and by columns.
    config.train.lr = 0.0;
    let still = |name: &str, set: &dyn Fn(&mut RunConfig)| {
        let mut config = RunConfig { output: bench.config(name).output, ..config.clone() };
        set(&mut config);
        train(&config);
        classes(&config)
    };
    let first = still("still", &|_| ());
    for workers in [2, 3] {
        let set = |config: &mut RunConfig| config.train.workers = workers;
        assert_eq!(still(&format!("still-{workers}"), &set), first);
        let columns = still(&format!("columns-{workers}"), &|config| {
            config.train.workers = workers;
            config.train.strategy = Strategy::Tensor;
        });
        assert_eq!(columns, first, "{workers} workers with a slice of the features each");
        let shares = still(&format!("shares-{workers}"), &|config| {
            config.train.workers = workers;
            config.evaluate.fanouts = vec![-1, -1];
        });
        assert_eq!(shares, first, "{workers} workers with a share of the nodes each");
    }
}

#[test]
fn training_nodes_are_scored_on_request_and_change_nothing() {
    let bench = Bench::new();
    let plain = bench.config("plain");
    let losses = train(&plain).losses;
    let mut config = bench.config("scored");
    config.train.score_training = true;
    let scored = train(&config);
    assert_eq!((&scored.losses, &scored.test), (&losses, &train(&plain).test));
    let history = |config: &RunConfig| Recorded::read(&config.output.dir).unwrap().history;
    assert!(history(&plain).iter().all(|record| record.train.is_empty()));
    let one: Vec<_> = history(&config).into_iter().map(|record| record.train).collect();
    assert!(one.iter().all(|scores| scores.contains_key("accuracy")), "{one:?}");
    config.output.dir = bench.path("scored-2");
    config.train.workers = 2;
    train(&config);
    assert_eq!(history(&config).last().unwrap().train, one[one.len() - 1]);
}

#[test]
fn the_norm_of_the_gradient_depends_on_no_thread_and_hardly_on_ranks() {
    let bench = Bench::new();
    let norms = |name: &str, set: &dyn Fn(&mut RunConfig)| -> Vec<f64> {
        let mut config = bench.config(name);
        set(&mut config);
        train(&config);
        let history = Recorded::read(&config.output.dir).unwrap().history;
        history.into_iter().map(|record| record.grad_norm.expect("a norm")).collect()
    };
    let one = norms("one", &|config| config.train.threads = 1);
    assert!(one.iter().all(|norm| *norm > 0.0), "{one:?}");
    assert_eq!(norms("threads", &|config| config.train.threads = 3), one);
    // Before clipping, here to a limit that no gradient reaches.
    assert_eq!(norms("clipped", &|config| config.train.clip_norm = 1e9), one);
    let two = norms("ranks", &|config| config.train.workers = 3);
    for (one, two) in one.iter().zip(&two) {
        // Sums of gradients over other shares of a batch are rounded otherwise, as losses are.
        assert!((one - two).abs() < 1e-4 * one, "{one} {two}");
    }
}
