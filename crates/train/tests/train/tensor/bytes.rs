//! What ranks send each other.

use gnarl_config::{RunConfig, Strategy};
use gnarl_train::ExchangedBytes;

use super::{config, generate, train};

/// Bytes of exchanging `cols` columns of all `nodes` once: everything but what stays where it is.
pub fn exchange(nodes: u64, cols: u64, ranks: u64) -> u64 {
    let share = |of: u64, rank: u64| (rank + 1) * of / ranks - rank * of / ranks;
    4 * (nodes * cols - (0..ranks).map(|r| share(nodes, r) * share(cols, r)).sum::<u64>())
}

/// What each epoch of a run says.
pub fn exchanged(config: &RunConfig) -> Vec<Option<ExchangedBytes>> {
    train(config).history.iter().map(|record| record.exchanged_bytes).collect()
}

/// NeutronTP, section 3.2: N · 2(N - 1) · VD/N² · L values in the forward pass, where all layers are D
/// wide. The backward pass is without the first layer, whose input is no result.
#[test]
fn equal_layers_send_what_the_paper_says() {
    let width = 12;
    for (nodes, exact) in [(720, true), (701, false)] {
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), nodes, width, width as u32);
        for (ranks, layers) in [(2, 2), (3, 3), (4, 2), (5, 3)] {
            let mut config = config(dir.path(), &format!("{ranks}"), "gcn");
            (config.model.hidden, config.model.layers) = (width, layers as usize);
            (config.train.strategy, config.train.workers) = (Strategy::Tensor, ranks as usize);
            config.train.epochs = 3;
            let once = exchange(nodes, width as u64, ranks);
            let all =
                ExchangedBytes { forward: 2 * layers * once, backward: 2 * (layers - 1) * once };
            assert_eq!(exchanged(&config), [Some(all); 3], "{layers} layers on {ranks}");
            let paper = (2 * nodes * width as u64 * layers * (ranks - 1) * 4) as f64 / ranks as f64;
            let apart = (all.forward as f64 / paper - 1.0).abs();
            assert!(apart < 0.01, "{layers} layers on {ranks}: {} of {paper}", all.forward);
            if exact && ranks != 5 {
                assert_eq!(all.forward as f64, paper, "{layers} layers on {ranks}");
            }
        }
    }
}

/// What the first layer's messages make of an input of which nothing is dropped is sent once.
#[test]
fn an_input_that_does_not_change_is_exchanged_once() {
    let (nodes, width, layers) = (701, 12, 3);
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), nodes, width, width as u32);
    let mut config = config(dir.path(), "run", "gcn");
    (config.model.hidden, config.model.layers) = (width, layers as usize);
    config.model.input_dropout = Some(0.0);
    (config.train.strategy, config.train.workers) = (Strategy::Tensor, 2);
    config.train.epochs = 3;
    let once = exchange(nodes, width as u64, 2);
    let backward = 2 * (layers - 1) * once;
    let sent = |layers: u64| Some(ExchangedBytes { forward: 2 * layers * once, backward });
    assert_eq!(exchanged(&config), [sent(layers), sent(layers - 1), sent(layers - 1)]);
}

/// Layers exchange the narrower of what they read and what they make.
#[test]
fn layers_exchange_their_narrower_side() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let mut config = config(dir.path(), "run", "sage");
    (config.train.strategy, config.train.workers) = (Strategy::Tensor, 2);
    let of = |columns: u64| 2 * exchange(701, columns, 2);
    let both = of(19) + of(3);
    assert_eq!(exchanged(&config)[0], Some(ExchangedBytes { forward: both, backward: both }));
    config.model.hidden = 33;
    config.output.dir = dir.path().join("wider");
    let all = ExchangedBytes { forward: of(21) + of(3), backward: of(3) };
    assert_eq!(exchanged(&config)[0], Some(all));
}

/// Also those of runs that do not evaluate until the end: evaluation does not count.
#[test]
fn one_rank_sends_nothing_and_evaluation_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    let run = |name: &str, workers: usize, eval_every: usize, strategy: Strategy| {
        let mut config = config(dir.path(), name, "gat");
        (config.train.strategy, config.train.workers) = (strategy, workers);
        config.train.eval_every = eval_every;
        exchanged(&config)
    };
    assert_eq!(run("one", 1, 1, Strategy::Tensor), [None; 5]);
    assert_eq!(run("gradient", 2, 1, Strategy::Gradient), [None; 5]);
    let each = run("each", 3, 1, Strategy::Tensor);
    assert!(each[0].is_some() && each.iter().all(|epoch| *epoch == each[0]), "{each:?}");
    assert_eq!(run("last", 3, 0, Strategy::Tensor), each);
}

/// Chunks send what whole columns send: each row's columns once.
#[test]
fn chunks_send_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    generate(dir.path(), 701, 21, 3);
    for (model, decoupled) in [("gcn", false), ("sage", false), ("gcn", true)] {
        for workers in 2..=4 {
            let run = |name: &str, chunks: usize| {
                let name = format!("{name}-{model}-{decoupled}-{workers}");
                let mut config = config(dir.path(), &name, model);
                config.model.decoupled = decoupled;
                (config.train.strategy, config.train.workers) = (Strategy::Tensor, workers);
                config.tensor.chunks = chunks;
                exchanged(&config)
            };
            assert_eq!(run("whole", 0), run("chunks", 5), "{model} on {workers}");
        }
    }
}
