//! One suite of cases over all operations, shared by the tests of this crate: each case builds a
//! small loss from a block, parameters and a leaf.

use std::sync::Arc;

use gnarl_common::rng::Key;
use gnarl_graph::blocks::{Block, FusedBlock, NodeInfo, Segment};
use gnarl_graph::{Csc, Triple};
use gnarl_nn::{
    Activation, EdgeAttention, Gat, Init, Lists, Mode, ParamId, Params, ParamsBuilder, Reduce,
    RelBlock, Span, SparseRows, Tape, Tensor, Var,
};
use gnarl_sample::HeteroSampleGraph;

/// What a case computes with.
pub struct Scene {
    pub params: Params,
    pub block: Block,
    pub leaf: Tensor,
    pub sparse: Arc<SparseRows>,
    /// The block's edges with three types.
    pub typed: RelBlock,
    /// Rows of the leaf under three weights, in five spans.
    pub spans: Vec<Span>,
}

/// A value to differentiate, from the leaf (one row a source).
pub type Case = for<'b> fn(&mut Tape<'b>, &'b Scene, Var) -> Var;

impl Scene {
    /// Random edges into `dst` of `src` nodes, every third destination without any; `cols`
    /// columns, which two heads divide.
    pub fn new(src: usize, dst: usize, cols: usize, seed: u64) -> Self {
        let key = Key::new(seed);
        let (mut indptr, mut indices) = (vec![0u32], Vec::new());
        for d in 0..dst as u64 {
            let degree = if d % 3 == 1 { 0 } else { 1 + key.with(d).below(0, 5) };
            indices.extend((1..=degree).map(|i| key.with(d).below(i, src as u64) as u32));
            indptr.push(indices.len() as u32);
        }
        let nodes = NodeInfo {
            ids: (0..src as u64).map(|i| 1000 + 7 * i).collect(),
            degrees: (0..src as u64).map(|i| 5 + key.with(i).below(9, 9) as u32).collect(),
        };
        let weights = (0..indices.len() as u64).map(|e| 0.5 + key.unit(e) as f32).collect();
        let block = Block::new(src, indptr, indices, Some(weights), Arc::new(nodes));
        let mut builder = ParamsBuilder::new(key);
        for (name, rows, width) in [
            ("square", cols, cols),
            ("double", 2 * cols, cols),
            ("attention", 2, cols / 2),
            ("attention-2", 2, cols / 2),
            ("row", 1, cols),
            ("row-2", 1, cols),
            ("words", 11, cols),
            ("one", 1, 1),
            ("gates", cols, 4 * cols),
            ("matrices", 3 * cols, cols),
            ("blocks", 3 * cols / 2, cols),
            ("rows", 3, cols),
            ("row-scores", 3, cols),
        ] {
            builder.add(name, rows, width, Init::Uniform(0.8));
        }
        let normal = (0..(src * cols) as u64).map(|i| key.with(5).normal(i) as f32).collect();
        Self {
            params: builder.build(),
            typed: typed(&block),
            spans: spans(src),
            block,
            leaf: Tensor::from_vec(src, cols, normal),
            sparse: Arc::new(words(src, key.with(6))),
        }
    }

    pub fn id(&self, name: &str) -> ParamId {
        self.params.find(name).unwrap()
    }

    fn linear<'b>(&self, tape: &mut Tape<'b>, x: Var, act: Activation) -> Var {
        tape.linear(x, self.id("square"), Some(self.id("row")), act)
    }

    /// One value an edge and head, dependent on the leaf.
    fn scores<'b>(&'b self, tape: &mut Tape<'b>, x: Var) -> Var {
        let (source, destination) = endpoints(tape, self, x);
        tape.sddmm_add(&self.block, source, destination)
    }

    /// The case's loss: a fixed random combination of its values.
    pub fn loss<'b>(&'b self, tape: &mut Tape<'b>, case: Case, x: Var) -> Var {
        let y = case(tape, self, x);
        let (rows, cols) = tape.shape(y);
        if (rows, cols) == (1, 1) {
            return y;
        }
        let key = Key::new(77);
        let right = (0..cols as u64).map(|i| key.normal(i) as f32).collect();
        let left = (0..rows as u64).map(|i| key.with(1).normal(i) as f32).collect();
        let (right, left) = (Tensor::from_vec(cols, 1, right), Tensor::from_vec(1, rows, left));
        let (right, left) = (tape.dense(right), tape.dense(left));
        let column = tape.matmul(y, right);
        tape.matmul(left, column)
    }

    /// The loss and its gradients: of the parameters, then of the leaf.
    pub fn gradients(&self, case: Case) -> (f32, Vec<f32>, Vec<f32>) {
        let mut tape = Tape::new(&self.params, Mode::train(Key::new(3)));
        let mut grads = vec![0.0; self.params.len()];
        let x = tape.leaf(self.leaf.clone());
        let loss = self.loss(&mut tape, case, x);
        tape.backward(loss, &mut grads).unwrap();
        let of_leaf = tape.grad(x).map(|g| g.data().to_vec());
        let of_leaf = of_leaf.unwrap_or_else(|| vec![0.0; self.leaf.data().len()]);
        (tape.value(loss).data()[0], grads, of_leaf)
    }
}

/// The edges of `block`, which ascend by destination, with types that ascend for each.
fn typed(block: &Block) -> RelBlock {
    let mut graph = HeteroSampleGraph::new().with_nodes("n", block.num_src()).unwrap();
    for name in ["n:a:n", "n:b:n", "n:c:n"] {
        let triple: Triple = name.parse().unwrap();
        graph = graph.with_edges(&triple, Csc::from_edges(block.num_src(), &[])).unwrap();
    }
    let (mut edge_types, mut group_degrees) = (Vec::new(), Vec::new());
    for d in 0..block.num_dst() {
        let edges = block.sources(d).len();
        let types: Vec<u16> = (0..edges).map(|i| ((i * 3 + d % 2) / edges.max(1)) as u16).collect();
        let types: Vec<u16> = types.into_iter().map(|t| t.min(2)).collect();
        group_degrees.extend(types.chunk_by(|a, b| a == b).map(|group| group.len() as u32));
        edge_types.extend(types);
    }
    let nodes = NodeInfo { ids: block.ids().to_vec(), degrees: block.degrees().to_vec() };
    let (indptr, indices) = (block.indptr().to_vec(), block.indices().to_vec());
    let weights = block.weights().map(<[f32]>::to_vec);
    let copy = Block::new(block.num_src(), indptr, indices, weights, Arc::new(nodes));
    let edges = (0..block.num_edges() as u32).collect();
    let fused = FusedBlock { block: Arc::new(copy), edge_types, edges, group_degrees };
    let segments = [Segment { node_type: 0, nodes: 0..block.num_src() }];
    RelBlock::new(&fused, &segments, graph.schema()).unwrap()
}

/// Five spans of `rows` rows, weights 0, 2, 1, 0 and 2.
fn spans(rows: usize) -> Vec<Span> {
    let bound = |i: usize| rows * i / 5;
    let span = |(i, weight): (usize, usize)| Span { rows: bound(i)..bound(i + 1), weight };
    [0, 2, 1, 0, 2].into_iter().enumerate().map(span).collect()
}

fn words(rows: usize, key: Key) -> SparseRows {
    let (mut indptr, mut indices) = (vec![0u64], Vec::new());
    for r in 0..rows as u64 {
        let count = key.with(r).below(0, 4);
        indices.extend((1..=count).map(|i| key.with(r).below(i, 11) as u32));
        indptr.push(indices.len() as u64);
    }
    let values = (0..indices.len() as u64).map(|i| key.normal(i) as f32).collect();
    SparseRows::new(11, indptr, indices, values)
}

fn weights(scene: &Scene) -> Option<Arc<[f32]>> {
    scene.block.weights().map(Arc::from)
}

/// Scores of sources and of destinations, dependent on the leaf.
pub fn endpoints<'b>(tape: &mut Tape<'b>, scene: &'b Scene, x: Var) -> (Var, Var) {
    let source = tape.slice_cols(x, 0, 2);
    let own = tape.head_rows(x, scene.block.num_dst());
    (source, tape.slice_cols(own, scene.leaf.cols() - 2, 2))
}

/// Rows of sources that no gradient is wanted of.
fn constants(scene: &Scene) -> Tensor {
    let (rows, cols) = scene.leaf.shape();
    let key = Key::new(19);
    let values = (0..(rows * cols) as u64).map(|i| key.normal(i) as f32).collect();
    Tensor::from_vec(rows, cols, values)
}

fn attend<'b>(tape: &mut Tape<'b>, scene: &'b Scene, x: Var, dropout: f32) -> Var {
    let endpoints = endpoints(tape, scene, x);
    tape.attend(&scene.block, x, endpoints, EdgeAttention { slope: 0.2, dropout })
}

fn dynamic<'b>(tape: &mut Tape<'b>, scene: &'b Scene, x: Var, dropout: f32) -> Var {
    let own = tape.head_rows(x, scene.block.num_dst());
    let own = scene.linear(tape, own, Activation::None);
    let attention = EdgeAttention { slope: 0.2, dropout };
    tape.attend_dynamic(&scene.block, (x, own), scene.id("attention"), attention)
}

pub fn gat(scene: &Scene, dropout: f32) -> Gat {
    Gat {
        weight: scene.id("square"),
        source: scene.id("attention"),
        destination: scene.id("attention-2"),
        bias: Some(scene.id("row")),
        slope: 0.2,
        dropout,
    }
}

/// Every operation, by name.
pub const CASES: &[(&str, Case)] = &[
    ("linear", |t, s, x| s.linear(t, x, Activation::None)),
    ("linear relu", |t, s, x| s.linear(t, x, Activation::Relu)),
    ("linear elu", |t, s, x| s.linear(t, x, Activation::Elu)),
    ("linear leaky", |t, s, x| s.linear(t, x, Activation::LeakyRelu(0.2))),
    ("linear tanh", |t, s, x| s.linear(t, x, Activation::Tanh)),
    ("linear sigmoid", |t, s, x| s.linear(t, x, Activation::Sigmoid)),
    ("activation", |t, _, x| t.activation(x, Activation::Elu)),
    ("linear heads", |t, s, x| {
        let wide = t.concat_cols(&[x, x]);
        t.linear_heads(wide, s.id("square"), Some(s.id("row")), 2, Activation::Tanh)
    }),
    ("linear sparse", |t, s, _| {
        let words = t.sparse(s.sparse.clone());
        let words = t.dropout(words, 0.3, s.block.ids());
        let words = t.head_rows(words, s.block.num_dst());
        t.linear(words, s.id("words"), Some(s.id("row")), Activation::Tanh)
    }),
    ("densify", |t, s, _| {
        let words = t.sparse(s.sparse.clone());
        let words = t.densify(words);
        t.linear(words, s.id("words"), None, Activation::None)
    }),
    ("matmul", |t, s, x| {
        let w = t.param(s.id("square"));
        t.matmul(x, w)
    }),
    ("add", |t, _, x| {
        let y = t.scale(x, -0.3);
        let z = t.add(x, y);
        t.add(z, z)
    }),
    ("add row", |t, s, x| {
        let row = t.param(s.id("row"));
        t.add_row(x, row)
    }),
    ("mul", |t, s, x| {
        let y = s.linear(t, x, Activation::Tanh);
        t.mul(x, y)
    }),
    ("scale by", |t, s, x| {
        let by = t.param(s.id("one"));
        t.scale_by(x, by)
    }),
    ("dropout", |t, s, x| t.dropout(x, 0.4, s.block.ids())),
    ("gather rows", |t, s, x| t.gather_rows(x, s.block.indices())),
    ("head rows", |t, s, x| {
        let head = t.head_rows(x, s.block.num_dst());
        let all = t.spmm(&s.block, x, Reduce::Sum, None);
        t.add(head, all)
    }),
    ("columns", |t, _, x| {
        let part = t.slice_cols(x, 1, 2);
        t.concat_cols(&[part, x, part])
    }),
    ("rows of parts", |t, s, x| {
        let (mapped, rows) = (s.linear(t, x, Activation::Tanh), t.shape(x).0);
        let (half, third) = (rows / 2, rows / 3);
        let parts = [0..half, half..half, third..rows].map(|range| t.row_range(x, range));
        let parts = t.concat_rows(&parts);
        t.concat_rows(&[mapped, parts])
    }),
    ("spmm sum", |t, s, x| t.spmm(&s.block, x, Reduce::Sum, None)),
    ("spmm sum weighted", |t, s, x| t.spmm(&s.block, x, Reduce::Sum, weights(s))),
    ("spmm mean", |t, s, x| t.spmm(&s.block, x, Reduce::Mean, None)),
    ("spmm mean weighted", |t, s, x| t.spmm(&s.block, x, Reduce::Mean, weights(s))),
    ("spmm max", |t, s, x| t.spmm(&s.block, x, Reduce::Max, None)),
    ("spmm max weighted", |t, s, x| t.spmm(&s.block, x, Reduce::Max, weights(s))),
    ("gcn norm", |t, s, x| t.gcn_norm(&s.block, x)),
    ("sage", |t, s, x| {
        t.sage(&s.block, x, (s.id("double"), Some(s.id("row"))), Activation::Relu, 0.0)
    }),
    ("sage dropout", |t, s, x| {
        t.sage(&s.block, x, (s.id("double"), Some(s.id("row"))), Activation::Relu, 0.5)
    }),
    ("sage elu dropout", |t, s, x| {
        t.sage(&s.block, x, (s.id("double"), None), Activation::Elu, 0.5)
    }),
    ("sddmm add", |t, s, x| s.scores(t, x)),
    ("sum edges", |t, s, x| {
        let edges = t.gather_rows(x, s.block.indices());
        let all = t.sum_edges(&s.block, edges, None);
        let weighted = t.sum_edges(&s.block, edges, s.block.weights().map(<[f32]>::to_vec));
        t.add(all, weighted)
    }),
    ("edge softmax", |t, s, x| {
        let scores = s.scores(t, x);
        t.edge_softmax(&s.block, scores)
    }),
    ("edge dropout", |t, s, x| {
        let scores = s.scores(t, x);
        t.edge_dropout(&s.block, scores, 0.4)
    }),
    ("spmm weighted", |t, s, x| {
        let scores = s.scores(t, x);
        t.spmm_weighted(&s.block, x, scores)
    }),
    ("spmm heads", |t, s, x| {
        let scores = s.scores(t, x);
        t.spmm_heads(&s.block, x, scores)
    }),
    ("attend", |t, s, x| attend(t, s, x, 0.0)),
    ("attend dropout", |t, s, x| attend(t, s, x, 0.4)),
    ("attend dynamic", |t, s, x| dynamic(t, s, x, 0.0)),
    ("attend dynamic dropout", |t, s, x| dynamic(t, s, x, 0.4)),
    ("attend to constants", |t, s, x| {
        let endpoints = endpoints(t, s, x);
        let rows = t.dense(constants(s));
        t.attend(&s.block, rows, endpoints, EdgeAttention { slope: 0.2, dropout: 0.3 })
    }),
    ("gat", |t, s, x| t.gat(&s.block, x, gat(s, 0.0), Activation::Elu)),
    ("gat dropout", |t, s, x| {
        let y = t.gat(&s.block, x, gat(s, 0.3), Activation::None);
        t.mean_heads(y, 2)
    }),
    ("gat of inputs", |t, s, _| {
        let rows = t.dense(constants(s));
        t.gat(&s.block, rows, gat(s, 0.0), Activation::Elu)
    }),
    ("gat of inputs dropout", |t, s, _| {
        let rows = t.dense(constants(s));
        let y = t.gat(&s.block, rows, gat(s, 0.3), Activation::None);
        t.mean_heads(y, 2)
    }),
    ("span linear", |t, s, x| {
        let w = t.param(s.id("matrices"));
        t.span_linear(x, w, &s.spans)
    }),
    ("span linear heads", |t, s, x| {
        let w = t.param(s.id("blocks"));
        t.span_linear_heads(x, w, &s.spans, 2)
    }),
    ("span bias", |t, s, x| {
        let b = t.param(s.id("rows"));
        t.span_bias(x, b, &s.spans)
    }),
    ("relation messages", |t, s, x| {
        let heard = t.spmm(s.typed.groups(), x, Reduce::Mean, None);
        let w = t.param(s.id("matrices"));
        let messages = t.span_linear(heard, w, s.typed.spans());
        t.spmm(s.typed.destinations(), messages, Reduce::Sum, None)
    }),
    ("relation messages weighted", |t, s, x| {
        t.spmm(s.typed.groups(), x, Reduce::Sum, s.typed.weights().cloned())
    }),
    ("relation scores", |t, s, x| {
        let (w, a) = (t.param(s.id("matrices")), t.param(s.id("row-scores")));
        let u = t.relation_score_weights(w, a, 2);
        let of_edges = t.relation_scores(s.typed.groups(), s.typed.spans(), x, u);
        let own = t.head_rows(x, s.block.num_dst());
        let of_groups = t.relation_scores(s.typed.ends(), s.typed.spans(), own, u);
        t.add_to_lists(s.typed.groups(), of_edges, of_groups)
    }),
    ("softmax within groups", |t, s, x| {
        let scores = s.scores(t, x);
        let scores = t.gather_rows(scores, s.typed.position());
        let within = t.edge_softmax(s.typed.groups(), scores);
        t.spmm_heads(s.typed.groups(), x, within)
    }),
    ("sddmm dot", |t, s, x| {
        let own = t.head_rows(x, s.block.num_dst());
        let q = t.gather_rows(own, s.typed.ends().indices());
        t.sddmm_dot(s.typed.groups(), x, q, 2)
    }),
    ("sddmm dot heads", |t, s, x| {
        let own = t.head_rows(x, s.block.num_dst());
        let q = t.gather_rows(own, s.typed.ends().indices());
        let q = t.concat_cols(&[q, q]);
        t.sddmm_dot_heads(s.typed.groups(), x, q, 2)
    }),
    ("interleave", |t, s, x| {
        // Ranks of rows within their spans' weights, as parts that are taken apart again.
        let rows_of = |weight: usize| -> Vec<u32> {
            let spans = s.spans.iter().filter(|span| span.weight == weight);
            spans.flat_map(|span| span.rows.start as u32..span.rows.end as u32).collect()
        };
        let parts: Vec<Option<Var>> =
            (0..3).map(|weight| Some(t.gather_rows(x, &rows_of(weight)))).collect();
        let y = t.interleave(&parts, &s.spans, s.leaf.cols());
        t.add(x, y)
    }),
    ("reshape", |t, s, x| t.reshape(x, s.leaf.data().len() / 2, 2)),
    ("max", |t, s, x| {
        let y = s.linear(t, x, Activation::Tanh);
        t.max(x, y)
    }),
    ("head scores", |t, s, x| t.head_scores(x, s.id("attention"))),
    ("lstm neighbors", |t, s, x| {
        let wide = t.concat_cols(&[x, x, x, x]);
        t.lstm_neighbors(&s.block, wide, s.id("gates"))
    }),
    ("layer norm", |t, s, x| t.layer_norm(x, s.id("row"), s.id("row-2"), 1e-3)),
    ("l2 normalize", |t, _, x| t.l2_normalize(x)),
    ("log softmax", |t, _, x| t.log_softmax(x)),
    ("cross entropy", |t, s, x| {
        let rows: Vec<u32> = (0..s.block.num_dst() as u32).collect();
        let labels: Vec<u32> = rows.iter().map(|r| r % s.leaf.cols() as u32).collect();
        let weights: Vec<f32> = rows.iter().map(|&r| 1.0 + r as f32).collect();
        t.cross_entropy(x, &rows, &labels, Some(&weights), 3.0)
    }),
    ("binary cross entropy", |t, s, x| {
        let rows: Vec<u32> = (0..s.block.num_dst() as u32).collect();
        let columns = s.leaf.cols() as u32;
        let targets: Vec<f32> =
            rows.iter().flat_map(|r| (0..columns).map(move |c| ((r + c) % 2) as f32)).collect();
        t.bce_with_logits(x, &rows, &targets, None, 2.0)
    }),
];
