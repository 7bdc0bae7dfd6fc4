//! Load balance of ranks.

use gnarl_config::{RunConfig, Strategy};
use gnarl_train::Balance;

use super::{config, generate, train};

/// What each epoch of a run of `workers` says.
fn balance(config: &RunConfig, strategy: Strategy, workers: usize) -> Vec<Option<Balance>> {
    let mut config = config.clone();
    (config.train.strategy, config.train.workers) = (strategy, workers);
    config.train.epochs = 2;
    config.output.dir = config.output.dir.join(format!("{strategy:?}-{workers}"));
    train(&config).history.iter().map(|record| record.balance).collect()
}

/// NeutronTP, figure 10: shares of rows and columns differ by one at most.
#[test]
fn shares_of_columns_are_within_a_twentieth() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 48, 48);
    let models = [("gcn", 48), ("sage", 48), ("gin", 60), ("gat", 48), ("gcn", 61)];
    for ((model, hidden), chunks) in models.into_iter().flat_map(|model| [(model, 0), (model, 3)]) {
        let mut config = config(dir.path(), &format!("{model}-{hidden}-{chunks}"), model);
        config.model.hidden = hidden;
        config.tensor.chunks = chunks;
        for workers in [2, 3, 4] {
            for epoch in balance(&config, Strategy::Tensor, workers) {
                let found = epoch.unwrap();
                let bytes = found.bytes.unwrap();
                let even = |over: f64| (1.0..=1.05).contains(&over);
                assert!(even(found.edges) && even(bytes), "{model} on {workers}: {found:?}");
                assert!(found.compute >= 1.0 && found.communication >= 1.0, "{found:?}");
                if hidden == 48 {
                    assert_eq!(found.edges, 1.0, "{model} on {workers}");
                }
            }
        }
    }
}

/// Of three columns over two ranks one has two: nothing is rounded away.
#[test]
fn columns_fewer_than_ranks_can_share_are_told() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 700, 21, 3);
    let mut config = config(dir.path(), "run", "gcn");
    config.model.decoupled = true;
    let found = balance(&config, Strategy::Tensor, 2)[0].unwrap();
    assert!((found.edges - 2.0 / 1.5).abs() < 1e-9, "{found:?}");
    // A rank sends 350 rows of the columns of the other, and 350 rows of its own: the same for both.
    assert!((found.bytes.unwrap() - 1.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn one_rank_has_no_balance_and_batches_send_no_columns() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let config = config(dir.path(), "run", "gcn");
    assert_eq!(balance(&config, Strategy::Tensor, 1), [None; 2]);
    assert_eq!(balance(&config, Strategy::Gradient, 1), [None; 2]);
    let found = balance(&config, Strategy::Gradient, 2)[0].unwrap();
    assert!(found.bytes.is_none() && (1.0..2.0).contains(&found.edges), "{found:?}");
}
