//! Neighborhoods by walks and by PageRank in runs: learned from, evaluated by the same neighborhoods, the same for any
//! number of workers, and refused where they are no neighborhoods.

use gnarl_config::{Method, Parts, RunConfig, Servers, Strategy, TaskKind};
use gnarl_train::{Begin, Finished, eval_run, run};

use super::bench::Bench;

fn config(bench: &Bench, name: &str, method: Method) -> RunConfig {
    let mut config = bench.config(name);
    config.model.name = "sage".into();
    config.sample.method = method;
    config.sample.fanouts = vec![6, 4];
    config.sample.batch_size = 50;
    config.sample.walk_length = 3;
    config.sample.walks = 20;
    config.train.epochs = 6;
    config
}

fn train(config: &RunConfig) -> Finished {
    run(config, Begin::Restart, &|_| ()).unwrap()
}

#[test]
fn walks_are_learned_from_and_evaluated_by() {
    learned_from_and_evaluated_by(Method::Walk);
}

#[test]
fn neighbors_by_page_rank_are_learned_from_and_evaluated_by() {
    learned_from_and_evaluated_by(Method::Ppr);
}

fn learned_from_and_evaluated_by(method: Method) {
    let bench = Bench::new();
    for model in ["sage", "gat", "ngnn"] {
        let mut config = config(&bench, &format!("{method:?}-{model}"), method);
        config.model.name = model.into();
        let one = train(&config).summary;
        assert!(one.test["accuracy"] > 0.6, "{method:?} {model}: {one:?}");
        let again = eval_run(&config.output.dir, None).unwrap();
        assert_eq!((&again.test, &again.valid), (&one.test, &one.valid), "{method:?} {model}");
        config.train.workers = 3;
        let three = train(&config).summary;
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(one.losses.iter().zip(&three.losses).all(near), "{one:?} {three:?}");
        assert_eq!((&one.test, &one.valid), (&three.test, &three.valid));
    }
}

#[test]
fn walks_may_restart_and_be_biased_and_change_the_neighbors() {
    let bench = Bench::new();
    let loss = |name: &str, change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(&bench, name, Method::Walk);
        config.train.epochs = 1;
        change(&mut config);
        train(&config).summary.losses[0]
    };
    let plain = loss("plain", &|_| ());
    assert_ne!(plain, loss("restart", &|config| config.sample.restart = 0.5));
    assert_ne!(plain, loss("bias", &|config| config.sample.return_bias = 4.0));
    assert_ne!(plain, loss("far", &|config| config.sample.in_out_bias = 0.25));
    assert_ne!(plain, loss("more", &|config| config.sample.walks = 40));
}

#[test]
fn links_and_parts_that_train_alone_read_them() {
    let bench = Bench::new();
    let mut links = config(&bench, "links", Method::Walk);
    links.task.kind = TaskKind::LinkPrediction;
    links.train.epochs = 2;
    let found = train(&links).summary;
    assert!(!found.test.is_empty() && found.losses[1] < found.losses[0], "{found:?}");
    let mut average = config(&bench, "average", Method::Ppr);
    average.train.strategy = Strategy::Average;
    average.partition.parts = Parts::Count(2);
    average.train.workers = 2;
    assert!(train(&average).summary.test["accuracy"] > 0.5);
}

#[test]
fn what_they_do_not_fit_is_refused() {
    let bench = Bench::new();
    let refused = |change: &dyn Fn(&mut RunConfig)| {
        let mut config = config(&bench, "refused", Method::Walk);
        change(&mut config);
        format!("{:?}", run(&config, Begin::Restart, &|_| ()).map(|_| ()).unwrap_err())
    };
    for model in ["gcn", "gin", "sgc"] {
        let text = refused(&|config| config.model.name = model.into());
        assert!(text.contains("of which walks are no sample") && text.contains("'sage'"), "{text}");
    }
    let text = refused(&|config| {
        config.task.kind = TaskKind::LinkPrediction;
        config.model.name = "rgcn".into();
    });
    assert!(text.contains("graphs without types"), "{text}");
    let text = refused(&|config| {
        config.partition.servers = Some(Servers::Ranks);
        config.partition.path = Some("parts".into());
    });
    assert!(text.contains("partition"), "{text}");
    let text = refused(&|config| config.sample.walks = 0);
    assert!(text.contains("at least one walk"), "{text}");
    let text = refused(&|config| config.sample.restart = 1.0);
    assert!(text.contains("at least 0 and below 1"), "{text}");
    let text = refused(&|config| {
        config.sample.method = Method::Ppr;
        config.sample.tolerance = 0.0;
    });
    assert!(text.contains("above 0 and below 1"), "{text}");
}
