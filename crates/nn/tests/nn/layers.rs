//! Every model against PyTorch: outputs and gradients on small graphs with an isolated node, a
//! self loop and a duplicate edge, full, bipartite, sampled and weighted. The numbers come from
//! `fixtures/make.py`.

use std::collections::BTreeMap;
use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, EdgeRows, NodeInfo};
use gnarl_nn::models::{self, ModelConfig};
use gnarl_nn::{Mode, Params, SparseRows, Tape, Tensor};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixtures {
    graphs: BTreeMap<String, Vec<Layer>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Layer {
    num_src: usize,
    neighbors: Vec<Vec<u32>>,
    degrees: Vec<u32>,
    weights: Option<Vec<f32>>,
    edge_features: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Case {
    config: ModelConfig,
    graph: String,
    x: Vec<f32>,
    params: BTreeMap<String, Vec<f32>>,
    r: Vec<f32>,
    output: Vec<f32>,
    grad_x: Vec<f32>,
    grads: BTreeMap<String, Vec<f32>>,
}

impl Layer {
    fn block(&self) -> Arc<Block> {
        let mut indptr = vec![0];
        for neighbors in &self.neighbors {
            indptr.push(indptr[indptr.len() - 1] + neighbors.len() as u32);
        }
        let nodes =
            NodeInfo { ids: (0..self.num_src as u64).collect(), degrees: self.degrees.clone() };
        let indices = self.neighbors.concat();
        let rows = self.edge_features.clone();
        let rows = rows.map(|values| EdgeRows { width: values.len() / indices.len(), values });
        let weights = self.weights.clone();
        let block = Block::new(self.num_src, indptr, indices, weights, Arc::new(nodes));
        Arc::new(block.with_edge_features(rows))
    }
}

impl Case {
    fn label(&self) -> String {
        format!("{} {:?} on {}", self.config.name, self.config.aggregator, self.graph)
    }

    fn params(&self) -> Params {
        let (_, mut params) = models::build(&self.config, Key::new(1)).unwrap();
        assert_eq!(params.specs().len(), self.params.len(), "{}", self.label());
        for id in params.ids() {
            let values = &self.params[&params.spec(id).name];
            params.get_mut(id).copy_from_slice(values);
        }
        params
    }

    fn rows(&self) -> usize {
        self.x.len() / self.config.in_dim
    }
}

fn fixtures() -> (BTreeMap<String, Vec<Arc<Block>>>, Vec<Case>) {
    let text = include_str!("../fixtures/models.json");
    let fixtures: Fixtures = serde_json::from_str(text).unwrap();
    let graphs = fixtures.graphs.into_iter();
    let blocks = graphs.map(|(name, layers)| (name, layers.iter().map(Layer::block).collect()));
    (blocks.collect(), fixtures.cases)
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
    let (graphs, cases) = fixtures();
    for case in &cases {
        let label = case.label();
        let (model, _) = models::build(&case.config, Key::new(1)).unwrap();
        let params = case.params();
        let mut tape = Tape::new(&params, Mode::train(Key::new(2)));
        let x = tape.leaf(Tensor::from_vec(case.rows(), case.config.in_dim, case.x.clone()));
        let y = model.forward(&mut tape, &graphs[&case.graph], x).unwrap();
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
        assert_close(&label, "grad x", tape.grad(x).unwrap().data(), &case.grad_x);
        for spec in params.specs() {
            assert_close(&label, &spec.name, &grads[spec.range()], &case.grads[&spec.name]);
        }
    }
}

#[test]
fn sparse_input_gives_the_output_of_dense_input() {
    let (graphs, cases) = fixtures();
    for case in &cases {
        let (model, _) = models::build(&case.config, Key::new(1)).unwrap();
        let params = case.params();
        let (rows, cols) = (case.rows(), case.config.in_dim);
        let indptr = (0..=rows as u64).map(|r| r * cols as u64).collect();
        let indices = (0..rows).flat_map(|_| 0..cols as u32).collect();
        let sparse = SparseRows::new(cols, indptr, indices, case.x.clone());
        let mut tape = Tape::new(&params, Mode::Eval);
        let x = tape.sparse(Arc::new(sparse));
        let y = model.forward(&mut tape, &graphs[&case.graph], x).unwrap();
        assert_close(&case.label(), "output", tape.value(y).data(), &case.output);
    }
}

#[test]
fn every_model_is_covered_by_a_fixture() {
    let (_, cases) = fixtures();
    for name in models::names() {
        assert!(cases.iter().any(|case| case.config.name == *name), "{name}");
    }
}

#[test]
fn dropout_belongs_to_nodes_not_to_rows() {
    let (_, cases) = fixtures();
    // The same two nodes with the same edge, in two orders of local ids.
    let pair = |ids: [u64; 2]| {
        let nodes = NodeInfo { ids: ids.to_vec(), degrees: vec![1, 1] };
        Arc::new(Block::new(2, vec![0, 1, 2], vec![1, 0], None, Arc::new(nodes)))
    };
    for case in cases.iter().filter(|case| case.graph == "full") {
        let config = ModelConfig { dropout: 0.5, ..case.config.clone() };
        let (model, params) = models::build(&config, Key::new(3)).unwrap();
        let (one, two) = (&case.x[..config.in_dim], &case.x[config.in_dim..2 * config.in_dim]);
        let run = |ids, rows: [&[f32]; 2]| {
            let blocks = [pair(ids), pair(ids)];
            let mut tape = Tape::new(&params, Mode::train(Key::new(4)));
            let x = tape.dense(Tensor::from_vec(2, config.in_dim, rows.concat()));
            let y = model.forward(&mut tape, &blocks, x).unwrap();
            [tape.value(y).row(0).to_vec(), tape.value(y).row(1).to_vec()]
        };
        let (forth, back) = (run([8, 5], [one, two]), run([5, 8], [two, one]));
        assert_close(&case.label(), "first node", &forth[0], &back[1]);
        assert_close(&case.label(), "second node", &forth[1], &back[0]);
    }
}

/// A block in which every destination hears 5 of 4000 sources.
fn large_block() -> Arc<Block> {
    let (num_src, num_dst, fanout) = (4000usize, 3000usize, 5);
    let key = Key::new(7);
    let indptr = (0..=num_dst as u32).map(|d| d * fanout).collect();
    let indices: Vec<u32> =
        (0..num_dst as u64 * fanout as u64).map(|e| key.below(e, num_src as u64) as u32).collect();
    let nodes = NodeInfo { ids: (0..num_src as u64).collect(), degrees: vec![9; num_src] };
    Arc::new(Block::new(num_src, indptr, indices, None, Arc::new(nodes)))
}

#[test]
fn gradients_are_the_same_bits_on_any_number_of_threads() {
    let (_, cases) = fixtures();
    let blocks = [large_block()];
    for case in cases.iter().filter(|case| case.graph == "full") {
        let config = ModelConfig { layers: 1, dropout: 0.5, in_dim: 20, ..case.config.clone() };
        let (model, params) = models::build(&config, Key::new(3)).unwrap();
        let values = (0..4000 * 20).map(|i| Key::new(9).normal(i) as f32).collect::<Vec<_>>();
        let run = || {
            let mut tape = Tape::new(&params, Mode::train(Key::new(4)));
            let x = tape.leaf(Tensor::from_vec(4000, 20, values.clone()));
            let y = model.forward(&mut tape, &blocks, x).unwrap();
            let rows: Vec<u32> = (0..3000).collect();
            let loss = tape.cross_entropy(y, &rows, &[1; 3000], None, 3000.0);
            let mut grads = vec![0.0; params.len()];
            tape.backward(loss, &mut grads).unwrap();
            grads.extend(tape.grad(x).unwrap().data());
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
fn wrong_requests_are_usage_errors() {
    let config = ModelConfig { in_dim: 4, out_dim: 2, ..Default::default() };
    let refused = |config: &ModelConfig| {
        let error = models::build(config, Key::new(1)).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    let message = refused(&ModelConfig { name: "gatt".into(), ..config.clone() });
    assert!(message.contains("'gat'"), "{message}");
    let message =
        refused(&ModelConfig { name: "gat".into(), hidden: 10, heads: 4, ..config.clone() });
    assert!(message.contains("model.hidden"), "{message}");
    let message = refused(&ModelConfig { dropout: 1.0, ..config.clone() });
    assert!(message.contains("model.dropout"), "{message}");
    let message = refused(&ModelConfig { out_dim: 0, ..config.clone() });
    assert!(message.contains("model.out_dim"), "{message}");

    let (graphs, _) = fixtures();
    let (model, params) = models::build(&config, Key::new(1)).unwrap();
    let mut tape = Tape::new(&params, Mode::Eval);
    let x = tape.dense(Tensor::zeros(3, 5));
    let message = model.forward(&mut tape, &graphs["full"], x).unwrap_err().to_string();
    assert!(message.contains("found 3 of 5") && message.contains("rows of 4 values"), "{message}");
    let message = model.forward(&mut tape, &[], x).unwrap_err().to_string();
    assert!(message.contains("0 blocks"), "{message}");
}
