//! Evaluation by full neighbours: the model layer by layer over all nodes, no sampling.

use std::collections::BTreeMap;

use gnarl_graph::rng::Key;
use gnarl_graph::{Labels, Result};
use gnarl_nn::metrics::{self, Targets};
use gnarl_nn::models::Model;
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_sample::{FullSampler, Sampler, Scratch, whole_graph};

use crate::pipeline::rows;
use crate::step;
use crate::task::TaskGraph;

/// Metric values by name, for instance `accuracy`.
pub type Scores = BTreeMap<String, f64>;

/// Above this many edges, layers run over ranges of nodes instead of one block.
const WHOLE_BLOCK_EDGES: usize = 1 << 22;
/// Nodes of such a range.
const RANGE_NODES: usize = 1 << 14;

/// The logits of all core nodes, `core × outputs`.
///
/// # Errors
/// If shapes disagree.
pub fn logits(model: &dyn Model, params: &Params, task: &TaskGraph) -> Result<Tensor> {
    // A part's HALO nodes have no complete lists and so are in no range; one block has them.
    let has_halo = task.graph.core() < task.graph.num_nodes();
    if has_halo || task.graph.num_edges() <= WHOLE_BLOCK_EDGES {
        return in_one_block(model, params, task);
    }
    in_ranges(model, params, task, RANGE_NODES)
}

fn in_one_block(model: &dyn Model, params: &Params, task: &TaskGraph) -> Result<Tensor> {
    let batch = whole_graph(&task.graph, model.num_layers())?;
    let input = rows(&task.features, &batch.input_nodes)?;
    let mut tape = Tape::new(params, Mode::Eval);
    let x = step::input(&mut tape, &input);
    let out = model.forward(&mut tape, &batch.blocks, x)?;
    Ok(tape.take(out))
}

fn in_ranges(
    model: &dyn Model,
    params: &Params,
    task: &TaskGraph,
    range_nodes: usize,
) -> Result<Tensor> {
    let sampler = FullSampler::new(1)?;
    let mut scratch = Scratch::new();
    let nodes: Vec<u32> = (0..task.graph.core() as u32).collect();
    let mut before: Option<Tensor> = None;
    for layer in 0..model.num_layers() {
        let mut after: Option<Tensor> = None;
        for (i, range) in nodes.chunks(range_nodes).enumerate() {
            let batch = sampler.sample(&task.graph, range, Key::new(0), &mut scratch)?;
            let mut tape = Tape::new(params, Mode::Eval);
            let x = match &before {
                None => step::input(&mut tape, &rows(&task.features, &batch.input_nodes)?),
                Some(rows) => {
                    let all = tape.dense(rows.clone());
                    tape.gather_rows(all, &batch.input_nodes)
                }
            };
            let y = model.layer(&mut tape, layer, &batch.blocks[0], x)?;
            let y = tape.take(y);
            let width = y.cols();
            let all = after.get_or_insert_with(|| Tensor::zeros(task.graph.num_nodes(), width));
            let start = i * range_nodes * width;
            all.data_mut()[start..start + y.data().len()].copy_from_slice(y.data());
        }
        before = after;
    }
    Ok(before.unwrap_or_else(|| Tensor::zeros(0, 0)))
}

/// The scores of `nodes` (local ids), accumulated over several graphs.
pub struct Judge {
    metric: Box<dyn metrics::Metric>,
    loss: f64,
    nodes: usize,
}

impl Judge {
    /// A judge by the metric `name`.
    ///
    /// # Errors
    /// [`gnarl_graph::Kind::Usage`] if there is no such metric.
    pub fn new(name: &str) -> Result<Self> {
        Ok(Self { metric: metrics::build(name)?, loss: 0.0, nodes: 0 })
    }

    /// Adds the predictions for `nodes` of a graph.
    pub fn add(&mut self, task: &TaskGraph, logits: &Tensor, nodes: &[u32]) {
        self.nodes += nodes.len();
        self.loss += summed_loss(&task.labels, logits, nodes);
        match &task.labels {
            Labels::Single { classes, .. } => {
                let targets: Vec<u32> =
                    nodes.iter().map(|&v| classes[v as usize].max(0) as u32).collect();
                self.metric.update(logits.data(), logits.cols(), nodes, Targets::Classes(&targets));
            }
            Labels::Multi { values, tasks } => {
                let row = |&v: &u32| &values[v as usize * tasks..(v as usize + 1) * tasks];
                let targets: Vec<u8> = nodes.iter().flat_map(row).copied().collect();
                self.metric.update(logits.data(), logits.cols(), nodes, Targets::Multi(&targets));
            }
        }
    }

    /// The score of everything added.
    pub fn score(&self) -> f64 {
        self.metric.value()
    }

    /// Mean loss over the nodes added; 0 of none.
    pub fn loss(&self) -> f64 {
        self.loss / self.nodes.max(1) as f64
    }

    /// The metric's name as a key of results: `micro-f1` becomes `micro_f1`.
    pub fn key(&self) -> String {
        self.metric.name().replace('-', "_")
    }
}

/// Cross-entropy of single labels, or mean binary cross-entropy of several, summed over `nodes`.
fn summed_loss(labels: &Labels, logits: &Tensor, nodes: &[u32]) -> f64 {
    let of = |&v: &u32| -> f64 {
        let row = logits.row(v as usize);
        match labels {
            Labels::Single { classes, .. } => {
                let class = classes[v as usize].max(0) as usize;
                let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = row.iter().map(|&x| f64::from(x - largest).exp()).sum();
                sum.ln() - f64::from(row[class] - largest)
            }
            Labels::Multi { values, tasks } => {
                let targets = &values[v as usize * tasks..(v as usize + 1) * tasks];
                let each = row.iter().zip(targets).map(|(&x, &t)| {
                    let x = f64::from(x);
                    x.max(0.0) - x * f64::from(t) + (-x.abs()).exp().ln_1p()
                });
                each.sum::<f64>() / *tasks as f64
            }
        }
    };
    nodes.iter().map(of).sum()
}

/// Validation and test scores of a model over the given graphs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// Scores over the validation nodes; empty if there are none.
    pub valid: Scores,
    /// Mean loss over the validation nodes, which decides between equal scores.
    pub valid_loss: f64,
    /// Scores over the test nodes; empty if there are none.
    pub test: Scores,
}

/// Judges `params` on all `graphs` together (one whole graph, or the parts of one).
///
/// # Errors
/// If shapes disagree or the metric is unknown.
pub fn evaluate<'a>(
    model: &dyn Model,
    params: &Params,
    graphs: impl IntoIterator<Item = &'a TaskGraph>,
    metric: &str,
) -> Result<Evaluation> {
    let (mut valid, mut test) = (Judge::new(metric)?, Judge::new(metric)?);
    let (mut valid_nodes, mut test_nodes) = (0, 0);
    for task in graphs {
        let logits = logits(model, params, task)?;
        valid.add(task, &logits, &task.valid);
        test.add(task, &logits, &task.test);
        valid_nodes += task.valid.len();
        test_nodes += task.test.len();
    }
    let scores = |judge: &Judge, nodes: usize| match nodes {
        0 => Scores::new(),
        _ => Scores::from([(judge.key(), judge.score())]),
    };
    Ok(Evaluation {
        valid: scores(&valid, valid_nodes),
        valid_loss: valid.loss(),
        test: scores(&test, test_nodes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_graph::{Csc, Features};
    use gnarl_nn::models::{self, ModelConfig};
    use gnarl_sample::SampleGraph;
    use gnarl_store::{MappedFeatures, Normalize};

    /// 100 nodes with 5 features each and 700 random edges.
    fn task() -> TaskGraph {
        let key = Key::new(11);
        let edges: Vec<(u32, u32)> = (0..700)
            .map(|i| (key.below(2 * i, 100) as u32, key.below(2 * i + 1, 90) as u32))
            .collect();
        let values: Vec<f32> = (0..500).map(|i| key.with(1).normal(i) as f32).collect();
        let features = Features::Csr {
            indptr: (0..=100u64).map(|r| 5 * r).collect::<Vec<_>>().into(),
            indices: (0..500u32).map(|i| i % 5).collect::<Vec<_>>().into(),
            values: values.into(),
            width: 5,
        };
        TaskGraph {
            graph: SampleGraph::new(Csc::from_edges(100, &edges)).unwrap(),
            features: MappedFeatures::new(features, Normalize::None).unwrap(),
            labels: Labels::Single { classes: vec![0i32; 100].into(), count: 3 },
            train: vec![],
            valid: vec![],
            test: vec![],
        }
    }

    #[test]
    fn ranges_of_nodes_give_the_same_logits_as_the_whole_graph() {
        let task = task();
        for name in models::names() {
            let config = ModelConfig {
                name: name.to_string(),
                layers: 3,
                hidden: 8,
                in_dim: 5,
                out_dim: 3,
                ..ModelConfig::default()
            };
            let (model, params) = models::build(&config, Key::new(1)).unwrap();
            let whole = in_one_block(model.as_ref(), &params, &task).unwrap();
            let ranges = in_ranges(model.as_ref(), &params, &task, 7).unwrap();
            assert_eq!(whole.shape(), ranges.shape(), "{name}");
            for (a, b) in whole.data().iter().zip(ranges.data()) {
                assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{name}: {a} {b}");
            }
        }
    }
}
