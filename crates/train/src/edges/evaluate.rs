//! Judging: rows of all nodes by full neighbours, then the labels of held-out edges.

use gnarl_graph::Result;
use gnarl_nn::heads::EdgeRows;
use gnarl_nn::metrics::{self, Metric, Targets};
use gnarl_nn::{Mode, Params, Tape, Tensor};

use super::EdgeLabels;
use super::answers::Answers;
use super::data::Split;
use crate::embeddings::Rows;
use crate::evaluate::{Evaluation, Judge, Scores};
use crate::nodes::step;
use crate::pipeline::rows;

/// Edges whose labels are predicted together.
const EDGES: usize = 1 << 14;

/// Judges on one machine, on the rayon pool this is called from.
///
/// # Errors
/// If shapes disagree.
pub(super) fn alone(task: &EdgeLabels, params: &Params, tables: &[Rows<'_>]) -> Result<Evaluation> {
    let rows = task.encoder.rows(params, tables)?;
    let (valid, valid_loss) = judge(task, params, &rows, &task.targets.valid)?;
    let (test, _) = judge(task, params, &rows, &task.targets.test)?;
    Ok(Evaluation { valid, valid_loss, test, ..Evaluation::default() })
}

/// The scores of a split, and its mean loss.
fn judge(
    task: &EdgeLabels,
    params: &Params,
    rows: &[Tensor],
    split: &Split,
) -> Result<(Scores, f64)> {
    let places: Vec<u32> = (0..split.edges.len() as u32).collect();
    let mut classes = match &split.answers {
        Answers::Labels(labels) => Some((labels, Judge::new(&task.metric)?)),
        Answers::Values(_) => None,
    };
    let mut numbers = Numbers::new()?;
    for places in places.chunks(EDGES) {
        let logits = logits(task, params, rows, split, places)?;
        let each: Vec<u32> = (0..places.len() as u32).collect();
        match (&mut classes, &split.answers) {
            (Some((labels, judge)), _) => judge.add(labels, &logits, &each, places),
            (None, Answers::Values(values)) => {
                let values: Vec<f32> = places.iter().map(|&place| values[place as usize]).collect();
                numbers.add(&logits, &each, &values, |deviation| task.loss.of(deviation).0);
            }
            (None, Answers::Labels(_)) => {}
        }
    }
    Ok(match classes {
        Some((_, judge)) => (judge.scores(), judge.loss()),
        None => (numbers.scores(), numbers.loss / numbers.edges.max(1) as f64),
    })
}

/// What is predicted of some edges of a split.
fn logits(
    task: &EdgeLabels,
    params: &Params,
    nodes: &[Tensor],
    split: &Split,
    places: &[u32],
) -> Result<Tensor> {
    let mut tape = Tape::new(params, Mode::Eval);
    let edges = split.edges.at(places);
    let mut end = |of: &Tensor, nodes: &[u32]| {
        let all = tape.dense(of.clone());
        tape.gather_rows(all, nodes)
    };
    let heads = end(&nodes[0], &edges.heads);
    let tails = end(&nodes[nodes.len() - 1], &edges.tails);
    let of_edges = |features| {
        let edges: Vec<u32> =
            places.iter().map(|&place| split.rows[place as usize] as u32).collect();
        rows(features, &edges)
    };
    let features = task.features.as_ref().map(|features| of_edges(features)).transpose()?;
    let features = features.as_ref().map(|features| step::input(&mut tape, features));
    let logits = task.head.forward(&mut tape, EdgeRows { heads, tails, features });
    Ok(tape.take(logits))
}

/// All scores of predicted numbers.
struct Numbers {
    metrics: Vec<Box<dyn Metric>>,
    loss: f64,
    edges: usize,
}

impl Numbers {
    fn new() -> Result<Self> {
        let metrics = metrics::names_of_values().iter().map(|name| metrics::build_of_values(name));
        Ok(Self { metrics: metrics.collect::<Result<_>>()?, loss: 0.0, edges: 0 })
    }

    fn add(&mut self, predicted: &Tensor, rows: &[u32], values: &[f32], loss: impl Fn(f32) -> f32) {
        self.edges += values.len();
        let deviations = predicted.data().iter().zip(values).map(|(p, value)| p - value);
        self.loss += deviations.map(|deviation| f64::from(loss(deviation))).sum::<f64>();
        for metric in &mut self.metrics {
            metric.update(predicted.data(), 1, rows, Targets::Values(values));
        }
    }

    /// By name; nothing if there were no edges.
    fn scores(&self) -> Scores {
        let named = self.metrics.iter().map(|metric| (metric.name().to_string(), metric.value()));
        named.filter(|_| self.edges > 0).collect()
    }
}
