//! Models of graphs without types.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;
use gnarl_engine::{Communicator, local};
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::models::{self, Aggregator, ModelConfig, Slices};
use gnarl_nn::{Exchange, Mode, Tape, Tensor};

use super::ranks::Ranks;
use super::{Outcome, RANKS, assert_same, outcome, random};

const NODES: usize = 23;
const WIDTH: usize = 7;

#[test]
fn only_scores_of_whole_rows_cannot_be_sliced() {
    let config = |name: &&str| ModelConfig { name: name.to_string(), ..ModelConfig::default() };
    let refuses = |name: &&&str| models::check_columns(&config(name)).is_err();
    let refused: Vec<_> = models::names().iter().filter(refuses).collect();
    assert_eq!(refused, [&"gatv2"]);
}

/// Random edges, with and without weights; every third node has no in-edges.
fn block(weighted: bool) -> Arc<Block> {
    let key = Key::new(7);
    let (mut indptr, mut indices) = (vec![0u32], Vec::new());
    for node in 0..NODES as u64 {
        let degree = if node % 3 == 1 { 0 } else { 1 + key.with(node).below(0, 5) };
        indices.extend((1..=degree).map(|i| key.with(node).below(i, NODES as u64) as u32));
        indptr.push(indices.len() as u32);
    }
    let degrees = indptr.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let nodes = NodeInfo { ids: (100..100 + NODES as u64).collect(), degrees };
    let weights = (0..indices.len() as u64).map(|e| 0.5 + key.unit(e) as f32).collect();
    Arc::new(Block::new(NODES, indptr, indices, weighted.then_some(weights), Arc::new(nodes)))
}

fn same(config: &ModelConfig, weighted: bool) {
    let config = ModelConfig {
        hidden: 8,
        heads: 2,
        dropout: 0.3,
        input_dropout: Some(0.1),
        // Decoupled models draw once for all hops what they draw for each hop on blocks.
        attention_dropout: if config.decoupled { 0.0 } else { 0.2 },
        in_dim: WIDTH,
        out_dim: 3,
        ..config.clone()
    };
    let (model, params) = models::build(&config, Key::new(1)).unwrap();
    let (block, x) = (block(weighted), random(3, NODES, WIDTH));
    let mode = Mode::train(Key::new(2));
    let blocks = vec![block.clone(); model.num_layers()];
    let mut tape = Tape::new(&params, mode);
    let leaf = tape.leaf(x.clone());
    let y = model.forward(&mut tape, &blocks, leaf).unwrap();
    let whole = outcome(&mut tape, &params, (y, 0), &[Some(leaf)]);
    for size in RANKS {
        let outcomes = Mutex::new(Vec::new());
        local::run(size, Duration::from_secs(20), |comm| {
            let first = |rank| even_share(NODES, rank, size).start;
            let exchange = Ranks::new(comm, (0..=size).map(first).collect());
            let own = exchange.rows();
            let ids = &block.ids()[own.clone()];
            let slices = Slices { block: &block, ids, exchange: &exchange, input: None };
            let mut tape = Tape::new(&params, mode);
            let rows = x.data()[own.start * WIDTH..own.end * WIDTH].to_vec();
            let leaf = tape.leaf(Tensor::from_vec(own.len(), WIDTH, rows));
            let y = model.forward_sliced(&mut tape, &slices, leaf)?;
            let own = outcome(&mut tape, &params, (y, own.start), &[Some(leaf)]);
            outcomes.lock().unwrap().push((comm.rank(), own));
            Ok(())
        })
        .unwrap();
        let mut outcomes: Vec<(usize, Outcome)> = outcomes.into_inner().unwrap();
        outcomes.sort_by_key(|(rank, _)| *rank);
        let label = format!("{} on {size}", config.name);
        assert_same(&label, &whole, outcomes.into_iter().map(|(_, own)| own).collect());
    }
}

#[test]
fn every_model_is_the_same_for_any_number_of_ranks() {
    for name in models::names() {
        let config = ModelConfig { name: name.to_string(), ..ModelConfig::default() };
        if models::check_columns(&config).is_err() {
            continue;
        }
        for weighted in [false, true] {
            same(&config, weighted);
        }
    }
    for name in ["sage", "ngnn"] {
        let aggregator = Aggregator::MaxPool;
        same(&ModelConfig { name: name.into(), aggregator, ..ModelConfig::default() }, false);
    }
    // Heads of the last layer are averaged, and slices cut them.
    same(&ModelConfig { name: "gat".into(), out_heads: 2, ..ModelConfig::default() }, false);
    for name in ["gcn", "gat"] {
        let (decoupled, propagations) = (true, Some(3));
        let base = ModelConfig { decoupled, propagations, ..ModelConfig::default() };
        same(&ModelConfig { name: name.into(), teleport: 0.1, ..base }, false);
    }
}
