//! A training step of GraphSAGE and of GAT on random blocks of the sizes that sampling
//! ogbn-products and ogbn-arxiv gives, and the operations they spend their time in.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, NodeInfo};
use gnarl_nn::{
    Activation, Gat, Init, Mode, ParamId, Params, ParamsBuilder, Precision, Reduce, Tape, Tensor,
    Var,
};

/// Source and edge counts from the input layer on; a layer's destinations are the next's sources.
const SAGE: [(usize, usize); 3] = [(89_000, 195_000), (40_000, 60_000), (9_500, 10_000)];
const GAT: [(usize, usize); 2] = [(43_000, 70_000), (10_500, 13_000)];
const SEEDS: usize = 1024;
const INPUTS: usize = 128;
const HIDDEN: usize = 256;
const CLASSES: usize = 40;

/// Blocks whose edges are spread evenly over destinations and randomly over sources.
fn blocks(sizes: &[(usize, usize)]) -> Vec<Block> {
    let nodes =
        Arc::new(NodeInfo { ids: (0..sizes[0].0 as u64).collect(), degrees: vec![20; sizes[0].0] });
    let block = |(i, &(src, edges)): (usize, &(usize, usize))| {
        let dst = sizes.get(i + 1).map_or(SEEDS, |next| next.0);
        let indptr = (0..=dst).map(|d| (d * edges / dst) as u32).collect();
        let key = Key::new(i as u64);
        let indices: Vec<u32> =
            (0..edges as u64).map(|e| key.below(e, src as u64) as u32).collect();
        let block = Block::new(src, indptr, indices, None, nodes.clone());
        block.transpose();
        block
    };
    sizes.iter().enumerate().map(block).collect()
}

fn features(rows: usize, cols: usize) -> Tensor {
    let key = Key::new(1);
    let values = (0..(rows * cols) as u64).map(|i| key.unit(i) as f32 - 0.5).collect();
    Tensor::from_vec(rows, cols, values)
}

struct Step {
    blocks: Vec<Block>,
    x: Tensor,
    params: Params,
    labels: Vec<u32>,
    rows: Vec<u32>,
    grads: Vec<f32>,
}

impl Step {
    fn new(sizes: &[(usize, usize)], params: Params) -> Self {
        Self {
            blocks: blocks(sizes),
            x: features(sizes[0].0, INPUTS),
            grads: vec![0.0; params.len()],
            params,
            labels: (0..SEEDS as u32).map(|i| i % CLASSES as u32).collect(),
            rows: (0..SEEDS as u32).collect(),
        }
    }

    fn run<'a>(
        &'a mut self,
        precision: Precision,
        model: impl Fn(&mut Tape<'a>, &'a [Block], Var) -> Var,
    ) {
        let mode = Mode::Train { key: Key::new(4), precision };
        let mut tape = Tape::new(&self.params, mode);
        let x = tape.dense(self.x.clone());
        let logits = model(&mut tape, &self.blocks, x);
        let loss = tape.cross_entropy(logits, &self.rows, &self.labels, None, SEEDS as f32);
        tape.backward(loss, &mut self.grads).expect("a training tape");
    }
}

fn sage(c: &mut Criterion) {
    let mut builder = ParamsBuilder::new(Key::new(2));
    let widths = [INPUTS, HIDDEN, HIDDEN, CLASSES];
    let layers: Vec<(ParamId, ParamId)> = (0..3)
        .map(|i| {
            let w = builder.add(format!("w{i}"), 2 * widths[i], widths[i + 1], Init::XavierUniform);
            (w, builder.add(format!("b{i}"), 1, widths[i + 1], Init::Zeros))
        })
        .collect();
    let mut step = Step::new(&SAGE, builder.build());
    for (name, precision, dropout) in [
        ("sage step, dropout 0", Precision::F32, 0.0),
        ("sage step, dropout 0.5", Precision::F32, 0.5),
        ("sage step, dropout 0.5, bf16", Precision::Bf16, 0.5),
    ] {
        c.bench_function(name, |b| {
            b.iter(|| {
                step.run(precision, |tape, blocks, mut x| {
                    for (i, (block, &(w, bias))) in blocks.iter().zip(&layers).enumerate() {
                        let last = i == 2;
                        let act = if last { Activation::None } else { Activation::Relu };
                        let dropout = if last { 0.0 } else { dropout };
                        x = tape.sage(block, x, (w, Some(bias)), act, dropout);
                    }
                    x
                });
            });
        });
    }
}

fn gat(c: &mut Criterion) {
    let heads = 4;
    let mut builder = ParamsBuilder::new(Key::new(2));
    let layers: Vec<Gat> = [(INPUTS, 64), (HIDDEN, CLASSES)]
        .into_iter()
        .enumerate()
        .map(|(i, (inputs, width))| Gat {
            weight: builder.add(format!("w{i}"), inputs, heads * width, Init::XavierUniform),
            source: builder.add(format!("s{i}"), heads, width, Init::XavierUniform),
            destination: builder.add(format!("d{i}"), heads, width, Init::XavierUniform),
            bias: Some(builder.add(format!("b{i}"), 1, heads * width, Init::Zeros)),
            slope: 0.2,
            dropout: 0.0,
        })
        .collect();
    let mut step = Step::new(&GAT, builder.build());
    for (name, precision) in [("gat step", Precision::F32), ("gat step, bf16", Precision::Bf16)] {
        c.bench_function(name, |b| {
            b.iter(|| {
                step.run(precision, |tape, blocks, x| {
                    let x = tape.gat(&blocks[0], x, layers[0], Activation::Elu);
                    let x = tape.gat(&blocks[1], x, layers[1], Activation::None);
                    tape.mean_heads(x, heads)
                });
            });
        });
    }
}

/// Single operations, forward.
fn operations(c: &mut Criterion) {
    let blocks = blocks(&SAGE);
    let mut builder = ParamsBuilder::new(Key::new(2));
    let square = builder.add("square", HIDDEN, HIDDEN, Init::XavierUniform);
    let params = builder.build();
    let narrow = features(SAGE[0].0, INPUTS);
    let wide = features(SAGE[1].0, HIDDEN);
    for (name, precision) in [
        ("linear 40000 x 256 x 256", Precision::F32),
        ("linear 40000 x 256 x 256, bf16", Precision::Bf16),
    ] {
        c.bench_function(name, |b| {
            b.iter(|| {
                let mode = Mode::Train { key: Key::new(4), precision };
                let mut tape = Tape::new(&params, mode);
                let x = tape.dense(wide.clone());
                black_box(tape.linear(x, square, None, Activation::Relu));
            });
        });
    }
    c.bench_function("mean of 195000 rows of 128", |b| {
        b.iter(|| {
            let mut tape = Tape::new(&params, Mode::Eval);
            let x = tape.dense(narrow.clone());
            black_box(tape.spmm(&blocks[0], x, Reduce::Mean, None));
        });
    });
    c.bench_function("dropout of 40000 x 256", |b| {
        b.iter(|| {
            let mut tape = Tape::new(&params, Mode::train(Key::new(4)));
            let x = tape.dense(wide.clone());
            black_box(tape.dropout(x, 0.5, blocks[1].ids()));
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = sage, gat, operations
}
criterion_main!(benches);
