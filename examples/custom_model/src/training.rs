//! Training by hand: sampler, feature store, tape and optimizer in a plain loop.

use gnarl::graph::rng::Key;
use gnarl::graph::{Error, Labels, Result};
use gnarl::nn::models::Model;
use gnarl::nn::optim::OptimizerConfig;
use gnarl::nn::{Mode, Params, Tape, Tensor};
use gnarl::sample::{Sampler, Scratch, UniformSampler};
use gnarl::store::Rows;
use gnarl::train::task::TaskGraph;

const BATCH: usize = 64;
const RATE: f32 = 0.01;

/// Trains `params` on the training nodes of `task`; returns the mean loss of each epoch.
pub fn train(
    model: &dyn Model,
    params: &mut Params,
    task: &TaskGraph,
    epochs: u64,
) -> Result<Vec<f64>> {
    let sampler = UniformSampler::new(task.held()?, &vec![10; model.num_layers()])?;
    let mut scratch = Scratch::new();
    let mut optimizer = OptimizerConfig::default().build()?;
    let mut grads = vec![0.0; params.len()];
    let mut losses = Vec::new();
    for epoch in 0..epochs {
        // Every random draw is a function of a key: the run, the epoch, and what it is for.
        let key = Key::new(7).with(epoch);
        let mut sum = 0.0;
        for (step, seeds) in sampler.epoch(&task.train, BATCH, key.with(0)).iter().enumerate() {
            let batch = sampler.sample(seeds, key.with(1), &mut scratch)?;
            let input = dense_rows(task, &batch.input_nodes)?;
            let nodes: Vec<u32> =
                batch.targets.iter().map(|&t| batch.input_nodes[t as usize]).collect();
            let classes = classes(task, &nodes)?;

            let mut tape = Tape::new(params, Mode::Train { key: key.with(2).with(step as u64) });
            let x = tape.dense(input);
            let logits = model.forward(&mut tape, &batch.blocks, x)?;
            let count = classes.len() as f32;
            let loss = tape.cross_entropy(logits, &batch.targets, &classes, None, count);
            sum += f64::from(tape.value(loss).data()[0]) * classes.len() as f64;
            grads.fill(0.0);
            tape.backward(loss, &mut grads)?;
            drop(tape);
            optimizer.step(params.flat_mut(), &grads, RATE);
        }
        losses.push(sum / task.train.len() as f64);
    }
    Ok(losses)
}

fn dense_rows(task: &TaskGraph, nodes: &[u32]) -> Result<Tensor> {
    match task.features.gather(nodes)? {
        Rows::Dense(values) => Ok(Tensor::from_vec(nodes.len(), task.width(), values)),
        Rows::Sparse { .. } => Err(Error::usage("this example is for dense features")),
    }
}

fn classes(task: &TaskGraph, nodes: &[u32]) -> Result<Vec<u32>> {
    match &task.labels {
        Labels::Single { classes, .. } => {
            Ok(nodes.iter().map(|&v| classes[v as usize] as u32).collect())
        }
        Labels::Multi { .. } => Err(Error::usage("this example is for one class a node")),
    }
}
