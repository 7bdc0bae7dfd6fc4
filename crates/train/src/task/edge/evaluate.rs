//! Evaluation: labels of held-out edges from the embeddings of all nodes.

use gnarl_common::Result;
use gnarl_nn::heads::EdgeRows;
use gnarl_nn::metrics::{self, Metric};
use gnarl_nn::{Mode, Params, Tape, Tensor};
use gnarl_store::MappedFeatures;

use super::labels::EdgePrediction;
use super::splits::Split;
use super::targets::Targets;
use crate::data::batch::gather;
use crate::evaluation::{Evaluation, MetricAccumulator, Scores};

/// Edges whose labels are predicted together.
const EDGES: usize = 1 << 14;

/// Scores of embeddings, one tensor per type that has endpoints, on the rayon pool this is called from.
///
/// # Errors
/// If shapes disagree.
pub(super) fn of_embeddings(
    task: &EdgePrediction,
    params: &Params,
    embeddings: &[Tensor],
) -> Result<Evaluation> {
    let (valid, valid_loss) = score(task, params, embeddings, &task.splits.valid)?;
    let (test, _) = score(task, params, embeddings, &task.splits.test)?;
    Ok(Evaluation { valid, valid_loss, test, ..Evaluation::default() })
}

/// The scores of a split, and its mean loss.
fn score(
    task: &EdgePrediction,
    params: &Params,
    rows: &[Tensor],
    split: &Split,
) -> Result<(Scores, f64)> {
    let places: Vec<u32> = (0..split.edges.len() as u32).collect();
    let mut classes = match &split.targets {
        Targets::Labels(labels) => Some((labels, MetricAccumulator::new(&task.metric)?)),
        Targets::Values(_) => None,
    };
    let mut numbers = Numbers::new()?;
    for places in places.chunks(EDGES) {
        let logits = logits(task, params, rows, split, places)?;
        let each: Vec<u32> = (0..places.len() as u32).collect();
        match (&mut classes, &split.targets) {
            (Some((labels, accumulator)), _) => accumulator.add(labels, &logits, &each, places),
            (None, Targets::Values(values)) => {
                let values: Vec<f32> = places.iter().map(|&place| values[place as usize]).collect();
                numbers.add(&logits, &each, &values, |deviation| task.loss.of(deviation).0);
            }
            (None, Targets::Labels(_)) => {}
        }
    }
    Ok(match classes {
        Some((_, accumulator)) => (accumulator.scores(), accumulator.loss()),
        None => (numbers.scores(), numbers.loss / numbers.edges.max(1) as f64),
    })
}

/// Predictions for some edges of a split.
fn logits(
    task: &EdgePrediction,
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
    let of_edges = |features: &MappedFeatures| {
        let edges: Vec<u32> =
            places.iter().map(|&place| split.rows[place as usize] as u32).collect();
        gather(features, &edges)
    };
    let features =
        task.features.as_ref().map(|features| of_edges(features.as_ref())).transpose()?;
    let features = features.as_ref().map(|features| features.on(&mut tape));
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
            metric.update(predicted.data(), 1, rows, metrics::Targets::Values(values));
        }
    }

    /// By name; nothing if there were no edges.
    fn scores(&self) -> Scores {
        let named = self.metrics.iter().map(|metric| (metric.name().to_string(), metric.value()));
        named.filter(|_| self.edges > 0).collect()
    }
}
