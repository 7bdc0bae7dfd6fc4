//! The decoupled form of R-GCN against its formula, written out over a small graph with types.

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::heterogeneous::{self, Source};
use gnarl_nn::{Mode, Params, RelBlock, Tape, Tensor, Var};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};

/// Nodes 0–3 are of type `a`, which has features, 4–6 of type `b`, whose rows are learned.
const COUNTS: [usize; 2] = [4, 3];
/// Source, destination and weight.
type Edge = (usize, usize, f32);
/// The edges of each type; node 3 hears nobody.
const EDGES: [(&str, &[Edge]); 3] = [
    ("a:x:a", &[(1, 0, 1.0), (2, 0, 1.0), (1, 1, 1.0)]),
    ("b:y:a", &[(4, 0, 0.5), (6, 0, 1.5), (5, 2, 2.0)]),
    ("a:z:b", &[(0, 4, 1.0), (3, 4, 1.0), (1, 6, 1.0)]),
];
const SOURCES: [Source; 2] = [Source::Features(4), Source::Embeddings];
const WIDTHS: [usize; 2] = [4, 5];
const CLASSES: usize = 3;

fn first_of(node_type: usize) -> usize {
    COUNTS[..node_type].iter().sum()
}

fn graph() -> HeteroSampleGraph {
    let mut graph =
        HeteroSampleGraph::new().with_nodes("a", 4).unwrap().with_nodes("b", 3).unwrap();
    for (name, edges) in EDGES {
        let triple: Triple = name.parse().unwrap();
        let first = |name: &str| if name == "a" { 0 } else { 4 };
        let (src, dst) = (first(&triple.src), first(&triple.dst));
        let mut local: Vec<_> =
            edges.iter().map(|&(s, d, w)| ((s - src) as u32, (d - dst) as u32, w)).collect();
        local.sort_by_key(|&(s, d, _)| (d, s));
        let pairs: Vec<(u32, u32)> = local.iter().map(|&(s, d, _)| (s, d)).collect();
        let count = if dst == 0 { 4 } else { 3 };
        graph = graph.with_edges(&triple, Csc::from_edges(count, &pairs)).unwrap();
        let weights: Vec<f32> = local.iter().map(|&(.., w)| w).collect();
        graph = graph.with_weights(&triple, weights.into()).unwrap();
    }
    graph
}

/// Three hops of all neighbors of all nodes, and the row of each node.
fn batch(graph: &HeteroSampleGraph) -> (HeteroBatch, Vec<RelBlock>, Vec<u32>) {
    let sampler = HeteroSampler::new(graph, &HeteroFanouts::new(&[-1; 3]), Rule::Uniform).unwrap();
    let seeds: [(usize, &[u32]); 2] = [(0, &[0, 1, 2, 3]), (1, &[0, 1, 2])];
    let batch = sampler.sample_types(&seeds, Key::new(1), &mut HeteroScratch::new()).unwrap();
    let fused = batch.fuse(graph).unwrap();
    let blocks = RelBlock::all(&fused, graph.schema()).unwrap();
    (batch, blocks, fused.targets)
}

fn config(teleport: f32) -> ModelConfig {
    ModelConfig {
        name: "rgcn".into(),
        decoupled: true,
        propagations: Some(3),
        teleport,
        hidden: 5,
        dropout: 0.0,
        out_dim: CLASSES,
        ..ModelConfig::default()
    }
}

/// The model's parameters, of which none is 0.
fn params(config: &ModelConfig) -> Params {
    let (_, mut params) =
        heterogeneous::build(config, graph().schema(), &SOURCES, Key::new(1)).unwrap();
    let values = params.flat_mut().iter_mut().enumerate();
    values.for_each(|(i, value)| *value += 0.3 * Key::new(6).normal(i as u64) as f32);
    params
}

fn rows(node_type: usize) -> Tensor {
    let (count, width) = (COUNTS[node_type], WIDTHS[node_type]);
    let key = Key::new(5).with(node_type as u64);
    let values = (0..(count * width) as u64).map(|i| key.normal(i) as f32);
    Tensor::from_vec(count, width, values.collect())
}

/// What the model computes for all nodes.
fn forward<'b>(
    tape: &mut Tape<'b>,
    config: &ModelConfig,
    (batch, blocks, targets): &'b (HeteroBatch, Vec<RelBlock>, Vec<u32>),
) -> Var {
    let (model, _) = heterogeneous::build(config, &batch.schema, &SOURCES, Key::new(1)).unwrap();
    let of = |tape: &mut Tape<'_>, number: usize| {
        let all = tape.leaf(rows(number));
        Some(tape.gather_rows(all, &batch.input_nodes[number]))
    };
    let rows = [of(tape, 0), of(tape, 1)];
    let y = model.forward(tape, blocks, &rows).unwrap();
    tape.gather_rows(y, targets)
}

/// `H⁰`, node after node.
fn first(config: &ModelConfig, params: &Params) -> Vec<Vec<f64>> {
    let get = |name: &str| params.get(params.find(name).unwrap());
    let linear = |x: &[f64], weight: &[f32], bias: &[f32]| -> Vec<f64> {
        let (n, sum) = (bias.len(), |c: usize| -> f64 {
            x.iter()
                .zip(weight[c..].iter().step_by(bias.len()))
                .map(|(x, w)| x * f64::from(*w))
                .sum()
        });
        (0..n).map(|c| sum(c) + f64::from(bias[c])).collect()
    };
    let relu = |x: Vec<f64>| -> Vec<f64> { x.into_iter().map(|v| v.max(0.0)).collect() };
    let node = |node: usize| {
        let t = usize::from(node >= 4);
        let given = rows(t);
        let mut x: Vec<f64> = given.row(node - first_of(t)).iter().map(|&v| v.into()).collect();
        if t == 0 {
            x = relu(linear(&x, get("input.a.weight"), get("input.a.bias")));
        }
        for i in 0..config.layers {
            let (weight, bias) = (get(&format!("layer{i}.weight")), get(&format!("layer{i}.bias")));
            let (weights, biases) = (weight.len() / 2, bias.len() / 2);
            let own = (&weight[t * weights..][..weights], &bias[t * biases..][..biases]);
            x = linear(&x, own.0, own.1);
            x = if i + 1 < config.layers { relu(x) } else { x };
        }
        x
    };
    (0..7).map(node).collect()
}

#[test]
fn rgcn_is_dense_layers_by_type_and_mixed_means() {
    for teleport in [0.0, 0.2] {
        let config = config(teleport);
        let params = params(&config);
        let scores = params.get(params.find("scores").unwrap());
        let part = |relation: usize| f64::from(scores[relation]).exp();
        let mut p = [[0.0; 7]; 7];
        for (d, to) in p.iter_mut().enumerate() {
            let heard = |relation: usize| {
                let edges = EDGES[relation].1.iter();
                edges.filter(move |edge| edge.1 == d).collect::<Vec<_>>()
            };
            let by = (0..3).filter(|&relation| !heard(relation).is_empty());
            let total: f64 = part(3) + by.map(part).sum::<f64>();
            to[d] += part(3) / total;
            for relation in 0..3 {
                let sum: f32 = heard(relation).iter().map(|edge| edge.2).sum();
                for &&(s, _, weight) in &heard(relation) {
                    to[s] += part(relation) / total * f64::from(weight / sum);
                }
            }
            assert!((to.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        }
        let (first, alpha) = (first(&config, &params), f64::from(teleport));
        let step = |h: Vec<Vec<f64>>, _| -> Vec<Vec<f64>> {
            let value = |d: usize, c: usize| {
                let passed: f64 = (0..7).map(|s| p[d][s] * h[s][c]).sum();
                (1.0 - alpha) * passed + alpha * first[d][c]
            };
            (0..7).map(|d| (0..CLASSES).map(|c| value(d, c)).collect()).collect()
        };
        let expected = (0..3).fold(first.clone(), step);
        let batch = batch(&graph());
        let mut tape = Tape::new(&params, Mode::Eval);
        let y = forward(&mut tape, &config, &batch);
        for (v, expected) in expected.iter().enumerate() {
            for (got, expected) in tape.value(y).row(v).iter().zip(expected) {
                assert!((f64::from(*got) - expected).abs() < 1e-5, "{v}: {got}, not {expected}");
            }
        }
    }
}

/// A fixed random combination of the output, and its gradient.
fn loss(config: &ModelConfig, params: &Params) -> (f64, Vec<f32>) {
    let batch = batch(&graph());
    let mut tape = Tape::new(params, Mode::train(Key::new(3)));
    let y = forward(&mut tape, config, &batch);
    let random = |key: u64, n| (0..n).map(|i| Key::new(key).normal(i) as f32).collect();
    let left = tape.dense(Tensor::from_vec(1, 7, random(8, 7)));
    let right = tape.dense(Tensor::from_vec(CLASSES, 1, random(9, CLASSES as u64)));
    let row = tape.matmul(left, y);
    let loss = tape.matmul(row, right);
    let mut grads = vec![0.0; params.len()];
    let value = f64::from(tape.value(loss).data()[0]);
    tape.backward(loss, &mut grads).unwrap();
    (value, grads)
}

#[test]
fn gradients_match_difference_quotients() {
    let config = config(0.2);
    let mut params = params(&config);
    let (_, grads) = loss(&config, &params);
    let largest = grads.iter().fold(1f64, |m, g| m.max(f64::from(g.abs())));
    let scores = params.spec(params.find("scores").unwrap()).range();
    assert!(grads[scores].iter().all(|g| g.abs() > 1e-4), "numbers of edge types are learned");
    for (i, &expected) in grads.iter().enumerate() {
        // A kink of the activation may lie within one step; it does not within both.
        let close = [4e-3f32, 4e-4].iter().any(|step| {
            let before = params.flat()[i];
            let mut at = |by: f32| {
                params.flat_mut()[i] = before + by;
                (loss(&config, &params).0, f64::from(params.flat()[i]))
            };
            let ((up, high), (down, low)) = (at(*step), at(-step));
            params.flat_mut()[i] = before;
            ((up - down) / (high - low) - f64::from(expected)).abs() < 4e-3 * largest
        });
        assert!(close, "the gradient of weight {i} is not {expected}");
    }
}

#[test]
fn what_has_no_decoupled_form_is_refused() {
    for name in ["rgat", "hgt", "hetero", "mlp"] {
        let config = ModelConfig { name: name.into(), ..config(0.0) };
        let error =
            heterogeneous::build(&config, graph().schema(), &SOURCES, Key::new(1)).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains(&format!("model '{name}' has no decoupled form")), "{text}");
    }
}
