//! Every model with types against PyTorch: outputs and gradients on small graphs with an isolated
//! node, a self loop, a duplicate edge, a type nothing ends in, and weights. The numbers come from
//! `fixtures/make_heterogeneous.py`.

use std::collections::BTreeMap;

use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_nn::models::heterogeneous::{self, Source};
use gnarl_nn::models::{Decomposition, ModelConfig};
use gnarl_nn::{Mode, Params, RelBlock, Tape, Tensor, Var};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroBatch, HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixtures {
    graphs: BTreeMap<String, Graph>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Graph {
    nodes: Vec<(String, usize)>,
    edges: Vec<(String, Vec<(u32, u32)>)>,
    weights: BTreeMap<String, Vec<f32>>,
    widths: Vec<usize>,
    seeds: (String, Vec<u32>),
}

#[derive(Deserialize)]
struct Case {
    config: ModelConfig,
    graph: String,
    x: BTreeMap<String, Vec<f32>>,
    params: BTreeMap<String, Vec<f32>>,
    r: Vec<f32>,
    output: Vec<f32>,
    grad_x: BTreeMap<String, Vec<f32>>,
    grads: BTreeMap<String, Vec<f32>>,
}

impl Graph {
    fn open(&self) -> HeteroSampleGraph {
        let mut graph = HeteroSampleGraph::new();
        let mut counts = BTreeMap::new();
        for (name, count) in &self.nodes {
            graph = graph.with_nodes(name, *count).unwrap();
            counts.insert(name.as_str(), *count);
        }
        for (name, edges) in &self.edges {
            let triple: Triple = name.parse().unwrap();
            graph =
                graph.with_edges(&triple, Csc::from_edges(counts[&*triple.dst], edges)).unwrap();
            if let Some(weights) = self.weights.get(name) {
                // Lists are by destination, and within one by source.
                let mut order: Vec<usize> = (0..edges.len()).collect();
                order.sort_by_key(|&e| (edges[e].1, edges[e].0));
                let weights: Vec<f32> = order.into_iter().map(|e| weights[e]).collect();
                graph = graph.with_weights(&triple, weights.into()).unwrap();
            }
        }
        graph
    }

    fn sources(&self) -> Vec<Source> {
        let source = |&width: &usize| match width {
            0 => Source::Embeddings,
            width => Source::Features(width),
        };
        self.widths.iter().map(source).collect()
    }

    /// The seeds' batch of all neighbors.
    fn batch(&self, graph: &HeteroSampleGraph) -> (HeteroBatch, Vec<RelBlock>, Vec<u32>) {
        let all = HeteroFanouts::new(&[-1, -1]);
        let sampler = HeteroSampler::new(graph, &all, Rule::Uniform).unwrap();
        let (kind, seeds) = &self.seeds;
        let batch = sampler.sample(kind, seeds, Key::new(1), &mut HeteroScratch::new()).unwrap();
        let fused = batch.fuse(graph).unwrap();
        let blocks = RelBlock::all(&fused, graph.schema()).unwrap();
        (batch, blocks, fused.targets)
    }
}

impl Case {
    fn label(&self) -> String {
        let ModelConfig { name, decomposition, softmax, relation_layer, .. } = &self.config;
        format!("{name} {decomposition:?} {softmax:?} {relation_layer} on {}", self.graph)
    }

    fn build(&self, graph: &Graph) -> (Box<dyn heterogeneous::HeteroModel>, Params) {
        let schema = graph.open().schema().clone();
        let (model, mut params) =
            heterogeneous::build(&self.config, &schema, &graph.sources(), Key::new(1)).unwrap();
        let names: Vec<&String> = params.specs().iter().map(|spec| &spec.name).collect();
        assert_eq!(names.len(), self.params.len(), "{}: {names:?}", self.label());
        for id in params.ids() {
            let values = &self.params[&params.spec(id).name];
            params.get_mut(id).copy_from_slice(values);
        }
        (model, params)
    }

    /// The rows of each node type in the batch.
    fn rows(&self, graph: &Graph, batch: &HeteroBatch) -> Vec<Tensor> {
        let of_type = |((name, count), nodes): (&(String, usize), &Vec<u32>)| {
            let all = &self.x[name];
            let width = all.len() / count;
            let row = |&v: &u32| &all[v as usize * width..(v as usize + 1) * width];
            Tensor::from_vec(nodes.len(), width, nodes.iter().flat_map(row).copied().collect())
        };
        graph.nodes.iter().zip(&batch.input_nodes).map(of_type).collect()
    }
}

fn fixtures() -> Fixtures {
    serde_json::from_str(include_str!("../fixtures/heterogeneous.json")).unwrap()
}

/// Within 1e-4 of the largest value expected, or of 0.1: gradients that cancel to 0 leave rounding.
fn assert_close(label: &str, what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{label}: {what}");
    let scale = expected.iter().fold(0.1f32, |m, v| m.max(v.abs()));
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= 1e-4 * scale, "{label}: {what}[{i}] is {g}, PyTorch says {e}");
    }
}

#[test]
fn outputs_and_gradients_match_pytorch() {
    let fixtures = fixtures();
    for case in &fixtures.cases {
        let (label, graph) = (case.label(), &fixtures.graphs[&case.graph]);
        let (batch, blocks, targets) = graph.batch(&graph.open());
        let (model, params) = case.build(graph);
        let mut tape = Tape::new(&params, Mode::train(Key::new(2)));
        let rows = case.rows(graph, &batch).into_iter();
        let leaves: Vec<Option<Var>> = rows.map(|rows| Some(tape.leaf(rows))).collect();
        let y = model.forward(&mut tape, &blocks, &leaves).unwrap();
        let y = tape.gather_rows(y, &targets);
        assert_close(&label, "output", tape.value(y).data(), &case.output);

        let (rows, cols) = tape.shape(y);
        let r = tape.dense(Tensor::from_vec(rows, cols, case.r.clone()));
        let weighted = tape.mul(y, r);
        let left = tape.dense(Tensor::from_vec(1, rows, vec![1.0; rows]));
        let right = tape.dense(Tensor::from_vec(cols, 1, vec![1.0; cols]));
        let columns = tape.matmul(left, weighted);
        let loss = tape.matmul(columns, right);
        let mut grads = vec![0.0; params.len()];
        tape.backward(loss, &mut grads).unwrap();
        for (number, (name, _)) in graph.nodes.iter().enumerate() {
            let mut whole = vec![0.0; case.grad_x[name].len()];
            if let Some(grad) = tape.grad(leaves[number].unwrap()) {
                for (i, &v) in batch.input_nodes[number].iter().enumerate() {
                    let at = v as usize * grad.cols();
                    whole[at..at + grad.cols()].copy_from_slice(grad.row(i));
                }
            }
            assert_close(&label, &format!("grad of {name}"), &whole, &case.grad_x[name]);
        }
        for spec in params.specs() {
            assert_close(&label, &spec.name, &grads[spec.range()], &case.grads[&spec.name]);
        }
    }
}

#[test]
fn every_model_is_covered_by_a_fixture() {
    let fixtures = fixtures();
    for name in heterogeneous::names() {
        assert!(fixtures.cases.iter().any(|case| case.config.name == *name), "{name}");
    }
}

/// Two node types and three edge types with 5 edges each a node.
fn large() -> HeteroSampleGraph {
    let key = Key::new(7);
    let edges = |number: u64, src: u64| -> Vec<(u32, u32)> {
        let key = key.with(number);
        (0..15_000).map(|e| (key.below(e, src) as u32, (e / 5) as u32)).collect()
    };
    let of = |name: &str| name.parse::<Triple>().unwrap();
    let graph =
        HeteroSampleGraph::new().with_nodes("a", 3000).unwrap().with_nodes("b", 3000).unwrap();
    let graph = graph.with_edges(&of("a:x:a"), Csc::from_edges(3000, &edges(0, 3000))).unwrap();
    let graph = graph.with_edges(&of("b:y:a"), Csc::from_edges(3000, &edges(1, 50))).unwrap();
    graph.with_edges(&of("a:z:b"), Csc::from_edges(3000, &edges(2, 3000))).unwrap()
}

#[test]
fn gradients_are_the_same_bits_on_any_number_of_threads() {
    let graph = large();
    let sampler = HeteroSampler::new(&graph, &HeteroFanouts::new(&[3, 3]), Rule::Uniform).unwrap();
    let seeds: Vec<u32> = (0..2000).collect();
    let batch = sampler.sample("a", &seeds, Key::new(3), &mut HeteroScratch::new()).unwrap();
    let blocks = RelBlock::all(&batch.fuse(&graph).unwrap(), graph.schema()).unwrap();
    let sources = [Source::Features(10), Source::Embeddings];
    for case in fixtures().cases.iter().filter(|case| case.graph == "papers") {
        let config = ModelConfig { dropout: 0.5, ..case.config.clone() };
        let (model, params) =
            heterogeneous::build(&config, graph.schema(), &sources, Key::new(3)).unwrap();
        let rows = |number: usize, width: usize| {
            let count = batch.input_nodes[number].len();
            let values = (0..(count * width) as u64).map(|i| Key::new(9).normal(i) as f32);
            Tensor::from_vec(count, width, values.collect())
        };
        let run = || {
            let mut tape = Tape::new(&params, Mode::train(Key::new(4)));
            let leaves = [Some(tape.leaf(rows(0, 10))), Some(tape.leaf(rows(1, 8)))];
            let y = model.forward(&mut tape, &blocks, &leaves).unwrap();
            let loss = tape.cross_entropy(y, &seeds, &[1; 2000], None, 2000.0);
            let mut grads = vec![0.0; params.len()];
            tape.backward(loss, &mut grads).unwrap();
            grads.extend(tape.grad(leaves[0].unwrap()).into_iter().flat_map(Tensor::data));
            grads.iter().map(|g| g.to_bits()).collect::<Vec<_>>()
        };
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(run)
        };
        assert!(on(1) == on(3), "{}", case.label());
    }
}

#[test]
fn masks_do_not_depend_on_edge_types_that_a_batch_lacks() {
    let graph = large();
    let sampler = HeteroSampler::new(&graph, &HeteroFanouts::new(&[4]), Rule::Uniform).unwrap();
    let seeds: Vec<u32> = (0..50).collect();
    for relation_layer in ["sage", "gat", "gin"] {
        let config = ModelConfig {
            name: "hetero".into(),
            relation_layer: relation_layer.into(),
            hidden: 8,
            attention_dropout: 0.3,
            dropout: 0.5,
            out_dim: 2,
            ..ModelConfig::default()
        };
        let sources = [Source::Embeddings; 2];
        let (model, params) =
            heterogeneous::build(&config, graph.schema(), &sources, Key::new(3)).unwrap();
        // The hidden layer for nodes of some types: nobody in a batch of the first one receives
        // messages over the edge type to the second.
        let hidden = |types: &[usize]| {
            let seeds: Vec<(usize, &[u32])> = types.iter().map(|&t| (t, &seeds[..])).collect();
            let batch =
                sampler.sample_types(&seeds, Key::new(1), &mut HeteroScratch::new()).unwrap();
            let fused = batch.fuse(&graph).unwrap();
            let blocks = RelBlock::all(&fused, graph.schema()).unwrap();
            let ids = blocks[0].block().ids();
            let value = |id: u64, column| Key::new(9).with(id).normal(column) as f32;
            let values = ids.iter().flat_map(|&id| (0..8).map(move |column| value(id, column)));
            let mut tape = Tape::new(&params, Mode::train(Key::new(4)));
            let x = tape.dense(Tensor::from_vec(ids.len(), 8, values.collect()));
            let y = model.layer(&mut tape, 0, &blocks[0], x).unwrap();
            let y = tape.gather_rows(y, &fused.targets[..50]);
            tape.take(y).data().to_vec()
        };
        assert_close(relation_layer, "hidden", &hidden(&[0]), &hidden(&[0, 1]));
    }
}

#[test]
fn wrong_requests_are_usage_errors() {
    let graph = large();
    let sources = [Source::Features(4), Source::Embeddings];
    let config =
        ModelConfig { name: "rgcn".into(), hidden: 8, out_dim: 2, ..ModelConfig::default() };
    let refused = |config: &ModelConfig| {
        let error =
            heterogeneous::build(config, graph.schema(), &sources, Key::new(1)).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    let message = refused(&ModelConfig { name: "rgcnn".into(), ..config.clone() });
    assert!(message.contains("rgcnn"), "{message}");
    let message = refused(&ModelConfig { name: "hgt".into(), heads: 3, ..config.clone() });
    assert!(message.contains("model.hidden"), "{message}");
    let message = refused(&ModelConfig {
        decomposition: gnarl_nn::models::Decomposition::Block,
        bases: 3,
        ..config.clone()
    });
    assert!(message.contains("blocks"), "{message}");
    let gcn = ModelConfig { name: "hetero".into(), relation_layer: "gcn".into(), ..config.clone() };
    let message = refused(&gcn);
    assert!(message.contains("model.relation_layer"), "{message}");

    let (model, params) =
        heterogeneous::build(&config, graph.schema(), &sources, Key::new(1)).unwrap();
    let sampler = HeteroSampler::new(&graph, &HeteroFanouts::new(&[2, 2]), Rule::Uniform).unwrap();
    let batch = sampler.sample("a", &[1], Key::new(3), &mut HeteroScratch::new()).unwrap();
    let blocks = RelBlock::all(&batch.fuse(&graph).unwrap(), graph.schema()).unwrap();
    let mut tape = Tape::new(&params, Mode::Eval);
    let message = model.forward(&mut tape, &blocks, &[None, None]).unwrap_err().to_string();
    assert!(message.contains("node type 'a'"), "{message}");
    let message = model.forward(&mut tape, &blocks[..1], &[None, None]).unwrap_err().to_string();
    assert!(message.contains("1 blocks"), "{message}");
}

/// With one-hot ids the first layer of R-GCN has a row for each node in every basis: of each neighbor the
/// sum of those rows by the coefficients of the edge type, and of the node itself by its own.
#[test]
fn one_hot_nodes_are_rows_of_bases() {
    const BASES: usize = 3;
    const HIDDEN: usize = 2;
    let edges = [vec![(0u32, 1u32), (2, 1), (3, 0)], vec![(1, 0), (1, 3)]];
    let mut graph = HeteroSampleGraph::new().with_nodes("n", 4).unwrap();
    for (name, edges) in ["n:a:n", "n:b:n"].iter().zip(&edges) {
        graph = graph.with_edges(&name.parse().unwrap(), Csc::from_edges(4, edges)).unwrap();
    }
    let config = ModelConfig {
        name: "rgcn".into(),
        out_dim: 2,
        hidden: HIDDEN,
        bases: BASES,
        decomposition: Decomposition::Basis,
        one_hot: true,
        ..Default::default()
    };
    let (model, mut params) =
        heterogeneous::build(&config, graph.schema(), &[Source::Embeddings], Key::new(1)).unwrap();
    let bias = params.find("layer0.bias").unwrap();
    params.get_mut(bias).copy_from_slice(&[0.25, -0.5]);

    let all = HeteroFanouts::new(&[-1, -1]);
    let sampler = HeteroSampler::new(&graph, &all, Rule::Uniform).unwrap();
    let batch = sampler.sample("n", &[0, 1, 2, 3], Key::new(1), &mut HeteroScratch::new()).unwrap();
    let blocks = RelBlock::all(&batch.fuse(&graph).unwrap(), graph.schema()).unwrap();
    let nodes = &batch.input_nodes[0];
    let width = BASES * HIDDEN;
    let value = |node: u32, column: usize| Key::new(7).with(node.into()).unit(column as u64) as f32;
    let rows = nodes.iter().flat_map(|&node| (0..width).map(move |column| value(node, column)));
    let mut tape = Tape::new(&params, Mode::Eval);
    let x = tape.leaf(Tensor::from_vec(nodes.len(), width, rows.collect()));
    let x = model.input(&mut tape, blocks[0].sources(), &[Some(x)]).unwrap();
    let y = model.layer(&mut tape, 0, &blocks[0], x).unwrap();

    let values = |name: &str| params.get(params.find(name).unwrap());
    let (of_types, own) = (values("layer0.coefficients"), values("layer0.self.coefficients"));
    let combined = |node: u32, coefficients: &[f32], column: usize| -> f32 {
        let part = |basis: usize| coefficients[basis] * value(node, basis * HIDDEN + column);
        (0..BASES).map(part).sum()
    };
    for (row, &node) in nodes.iter().enumerate().take(blocks[0].num_dst()) {
        for column in 0..HIDDEN {
            let mut expected = [0.25, -0.5][column] + combined(node, own, column);
            for (edges, coefficients) in edges.iter().zip(of_types.chunks_exact(BASES)) {
                let sources: Vec<u32> =
                    edges.iter().filter(|edge| edge.1 == node).map(|edge| edge.0).collect();
                let sum: f32 = sources.iter().map(|&u| combined(u, coefficients, column)).sum();
                expected += sum / sources.len().max(1) as f32;
            }
            let got = tape.value(y).row(row)[column];
            assert!((got - expected.max(0.0)).abs() < 1e-5, "node {node}: {got} is not {expected}");
        }
    }
}

#[test]
fn one_hot_nodes_need_bases_to_be_rows_of() {
    let graph = HeteroSampleGraph::new().with_nodes("n", 2).unwrap();
    let base = ModelConfig { name: "rgcn".into(), out_dim: 2, one_hot: true, ..Default::default() };
    let basis = ModelConfig { decomposition: Decomposition::Basis, ..base.clone() };
    for wrong in [
        base,
        ModelConfig { name: "hgt".into(), ..basis.clone() },
        ModelConfig { decoupled: true, ..basis.clone() },
        ModelConfig { layers: 1, ..basis },
    ] {
        let built =
            heterogeneous::build(&wrong, graph.schema(), &[Source::Embeddings], Key::new(1));
        let message = built.err().expect("refused").to_string();
        assert!(message.contains("model.one_hot"), "{message}");
    }
}
