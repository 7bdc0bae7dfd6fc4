//! Models of graphs without types.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;
use gnarl_engine::{Communicator, local};
use gnarl_graph::blocks::{Around, Block, NodeInfo};
use gnarl_nn::models::{self, Aggregator, ModelConfig, Slices};
use gnarl_nn::{Exchange, Mode, SparseRows, Tape, Tensor};

use super::ranks::{Alone, Ranks};
use super::{Outcome, RANKS, assert_close, assert_same, outcome, random};

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
            let slices = Slices {
                blocks: std::slice::from_ref(&block),
                ids,
                exchange: &exchange,
                input: None,
            };
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

/// Rows of some nodes from the part of the graph that they depend on are those of the whole graph, and so are the gradients.
fn same_from_a_part(config: &ModelConfig, weighted: bool) {
    let config = ModelConfig {
        layers: 3,
        hidden: 8,
        heads: 2,
        dropout: 0.3,
        input_dropout: Some(0.1),
        attention_dropout: 0.2,
        in_dim: WIDTH,
        out_dim: 3,
        ..config.clone()
    };
    let (model, params) = models::build(&config, Key::new(1)).unwrap();
    if !model.is_layered(false) {
        return;
    }
    let (block, x) = (block(weighted), random(3, NODES, WIDTH));
    let seeds = [2, 3, 11];
    let around = Around::new(&block, &seeds, model.num_layers());
    let blocks = around.blocks();
    let nodes = around.nodes();
    assert!(nodes.len() < NODES, "{} nodes", nodes.len());
    let outcome_of = |blocks: &[Arc<Block>], ids: &[u64], rows: &[u32], own: &[u32]| {
        let slices = Slices { blocks, ids, exchange: &Alone, input: None };
        let mut tape = Tape::new(&params, Mode::train(Key::new(2)));
        let of_row = |&row: &u32| x.row(row as usize).to_vec();
        let given = Tensor::from_vec(rows.len(), WIDTH, rows.iter().flat_map(of_row).collect());
        let leaf = tape.leaf(given);
        let y = model.forward_sliced(&mut tape, &slices, leaf).unwrap();
        let y = tape.gather_rows(y, own);
        outcome(&mut tape, &params, (y, 0), &[Some(leaf)])
    };
    let all: Vec<u32> = (0..NODES as u32).collect();
    let mut whole = outcome_of(std::slice::from_ref(&block), block.ids(), &all, &seeds);
    let part = outcome_of(&blocks, blocks[0].ids(), nodes, &[0, 1, 2]);
    // Rows in the order of the part; those outside have no gradient.
    let given = std::mem::take(&mut whole.inputs[0]);
    let gradient = |row: u32| &given[row as usize * WIDTH..(row as usize + 1) * WIDTH];
    let mut outside = all.iter().filter(|row| !nodes.contains(row));
    assert!(outside.all(|&row| gradient(row).iter().all(|&value| value == 0.0)));
    whole.inputs[0] = nodes.iter().flat_map(|&row| gradient(row).to_vec()).collect();
    assert_same(&format!("a part for {}", config.name), &whole, vec![part]);
}

#[test]
fn every_layered_model_is_the_same_from_a_part_of_the_graph() {
    for name in models::names() {
        let config = ModelConfig { name: name.to_string(), ..ModelConfig::default() };
        if models::check_columns(&config).is_err() {
            continue;
        }
        for weighted in [false, true] {
            same_from_a_part(&config, weighted);
        }
    }
    for (name, aggregator) in [("sage", Aggregator::MaxPool), ("ngnn", Aggregator::MaxPool)] {
        same_from_a_part(
            &ModelConfig { name: name.into(), aggregator, ..ModelConfig::default() },
            false,
        );
    }
    same_from_a_part(
        &ModelConfig { name: "gat".into(), out_heads: 2, ..ModelConfig::default() },
        true,
    );
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

/// Evaluation makes rows of dense layers some at a time: more rows than that, and no even number of times.
#[test]
fn evaluation_of_many_rows_is_the_one_of_blocks() {
    let nodes = (1 << 15) + 77;
    let key = Key::new(9);
    let indices: Vec<u32> =
        (0..2 * nodes as u64).map(|e| key.below(e, nodes as u64) as u32).collect();
    let info = NodeInfo { ids: (0..nodes as u64).collect(), degrees: vec![2; nodes] };
    let indptr = (0..=nodes as u32).map(|node| 2 * node).collect();
    let block = Arc::new(Block::new(nodes, indptr, indices, None, Arc::new(info)));
    let x = random(3, nodes, WIDTH);
    // One value a row.
    let columns = (0..nodes as u64).map(|row| key.below(row, WIDTH as u64) as u32).collect();
    let starts = (0..=nodes as u64).collect();
    let words = Arc::new(SparseRows::new(WIDTH, starts, columns, vec![1.5; nodes]));
    let input = |tape: &mut Tape<'_>, sparse: Option<&Arc<SparseRows>>| match sparse {
        None => tape.dense(x.clone()),
        Some(rows) => tape.sparse(rows.clone()),
    };
    // Layers that are wider than their input, and narrower.
    for (name, hidden) in
        [("gcn", 9), ("sage", 9), ("sage", 4), ("gin", 9), ("gin", 4), ("ngnn", 5)]
    {
        for aggregator in [Aggregator::Mean, Aggregator::MaxPool] {
            let config = ModelConfig {
                name: name.to_string(),
                hidden,
                aggregator,
                in_dim: WIDTH,
                out_dim: 3,
                ..ModelConfig::default()
            };
            let (model, params) = models::build(&config, Key::new(1)).unwrap();
            let blocks = vec![block.clone(); model.num_layers()];
            for sparse in [None, Some(&words)] {
                let mut tape = Tape::new(&params, Mode::Eval);
                let given = input(&mut tape, sparse);
                let by_blocks = model.forward(&mut tape, &blocks, given).unwrap();
                let expected = tape.take(by_blocks);
                let blocks = &blocks[..1];
                let slices = Slices { blocks, ids: block.ids(), exchange: &Alone, input: None };
                let mut tape = Tape::new(&params, Mode::Eval);
                let given = input(&mut tape, sparse);
                let found = model.forward_sliced(&mut tape, &slices, given).unwrap();
                let label = format!("{} of {hidden}, sparse: {}", config.name, sparse.is_some());
                assert_close(&label, "output", tape.value(found).data(), expected.data());
            }
        }
    }
}
