//! Metrics of predictions.

use gnarl_common::Result;
use gnarl_graph::Labels;
use gnarl_nn::Tensor;
use gnarl_nn::metrics::{self, Targets};

use super::scores::Scores;

/// Scores of predictions, accumulated over several graphs.
pub struct MetricAccumulator {
    metric: Box<dyn metrics::Metric>,
    loss: f64,
    nodes: usize,
}

impl MetricAccumulator {
    /// An accumulator of the metric `name`.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there is no such metric.
    pub fn new(name: &str) -> Result<Self> {
        Ok(Self { metric: metrics::build(name)?, loss: 0.0, nodes: 0 })
    }

    /// Adds predictions: row `rows[i]` of `logits` is that for node `nodes[i]`.
    pub fn add(&mut self, labels: &Labels, logits: &Tensor, rows: &[u32], nodes: &[u32]) {
        self.nodes += nodes.len();
        self.loss += summed_loss(labels, logits, rows, nodes);
        match labels {
            Labels::Single { classes, .. } => {
                let targets: Vec<u32> =
                    nodes.iter().map(|&v| classes[v as usize].max(0) as u32).collect();
                self.metric.update(logits.data(), logits.cols(), rows, Targets::Classes(&targets));
            }
            Labels::Multi { values, tasks } => {
                let row = |&v: &u32| &values[v as usize * tasks..(v as usize + 1) * tasks];
                let targets: Vec<u8> = nodes.iter().flat_map(row).copied().collect();
                self.metric.update(logits.data(), logits.cols(), rows, Targets::Multi(&targets));
            }
        }
    }

    /// The score of everything added.
    pub fn score(&self) -> f64 {
        self.metric.value()
    }

    /// The score under its name; nothing if no node was added.
    pub fn scores(&self) -> Scores {
        let scores = [(self.key(), self.score())];
        scores.into_iter().filter(|_| self.nodes > 0).collect()
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
fn summed_loss(labels: &Labels, logits: &Tensor, rows: &[u32], nodes: &[u32]) -> f64 {
    let of = |(&row, &v): (&u32, &u32)| -> f64 {
        let row = logits.row(row as usize);
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
    rows.iter().zip(nodes).map(of).sum()
}
