//! Models whose dense layers all come before messages pass.

use gnarl_config::{RunConfig, Strategy};
use gnarl_train::{ExchangedBytes, eval_run};

use super::bytes::{exchange, exchanged};
use super::equal::{largest_difference, same_for_any_number_of_ranks, weights};
use super::{config, generate, train};

/// Two dense layers and three propagations. An epoch of ranks that share out columns has one set of
/// attention coefficients, others draw what they drop for every hop.
fn decouple(config: &mut RunConfig) {
    config.model.decoupled = true;
    config.model.propagations = Some(3);
    config.model.attention_dropout = 0.0;
}

#[test]
fn gcn_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", decouple);
}

#[test]
fn gcn_with_teleport_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gcn", |c| {
        decouple(c);
        c.model.teleport = 0.1;
    });
}

#[test]
fn gat_is_the_same_for_any_number_of_ranks() {
    same_for_any_number_of_ranks("gat", |c| {
        decouple(c);
        c.model.out_heads = 2;
    });
}

#[test]
fn attention_dropout_is_the_same_for_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let run = |workers: usize| {
        let mut config = config(dir.path(), &format!("{workers}"), "gat");
        decouple(&mut config);
        config.model.teleport = 0.1;
        config.model.attention_dropout = 0.4;
        (config.train.strategy, config.train.workers) = (Strategy::Tensor, workers);
        let summary = train(&config).summary;
        assert_eq!(eval_run(&config.output.dir, None).unwrap().test, summary.test);
        (summary.losses, weights(&config))
    };
    let whole = run(1);
    for workers in 2..=4 {
        let (losses, found) = run(workers);
        let apart = whole.0.iter().zip(&losses).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-4, "{workers}: {:?} {losses:?}", whole.0);
        assert!(largest_difference(&whole.1, &found) < 1e-3, "{workers}");
    }
}

/// NeutronTP, section 4.1.2: four exchanges of as many columns as there are classes, whatever the
/// number of layers and propagations.
#[test]
fn four_exchanges_are_enough() {
    let (nodes, classes) = (701, 5);
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), nodes, 21, classes);
    for (ranks, layers, propagations) in [(2, 2, 2), (3, 3, 10), (4, 1, 5)] {
        let mut config = config(dir.path(), &format!("{ranks}"), "gcn");
        decouple(&mut config);
        config.model.layers = layers;
        config.model.propagations = Some(propagations);
        (config.train.strategy, config.train.workers) = (Strategy::Tensor, ranks as usize);
        let each_way = 2 * exchange(nodes, u64::from(classes), ranks);
        let all = ExchangedBytes { forward: each_way, backward: each_way };
        assert_eq!(exchanged(&config), [Some(all); 5], "{ranks} ranks");
        // Scores of both endpoints, for each head.
        config.model.name = "gat".into();
        config.model.out_heads = 2;
        config.output.dir = dir.path().join(format!("gat-{ranks}"));
        let each_way = each_way + (ranks - 1) * nodes * 2 * 2 * 4;
        let all = ExchangedBytes { forward: each_way, backward: each_way };
        assert_eq!(exchanged(&config), [Some(all); 5], "{ranks} ranks");
    }
}
