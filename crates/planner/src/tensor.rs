//! Predictions for `tensor`: the whole graph in each step, in tensor parallelism (NeutronTP,
//! section 3.2 and 4.1).

use gnarl_common::Result;
use gnarl_config::{RunConfig, Strategy};

use super::facts::Facts;
use super::layers::Row;
use super::predict::Predict;
use super::sampled;
use super::work::{PER_WEIGHT, TOUCHES, Work};

/// Bytes per node: offsets of both lists, its id and its degree.
const PER_NODE: f64 = 20.0;

/// Tensor parallelism.
pub(super) struct Tensor;

impl Predict for Tensor {
    fn strategy(&self) -> Strategy {
        Strategy::Tensor
    }

    fn check(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<()> {
        facts.graph.check_columns(&facts.model(config))
    }

    fn work(&self, facts: &Facts<'_>, config: &RunConfig) -> Result<Work> {
        let (model, ranks) = (facts.model(config), config.train.workers);
        let sliced = facts.graph.sliced(&model, ranks);
        let (whole, types) = facts.graph.whole(&model);
        let own = |of_all: f64| (of_all / ranks as f64).ceil();
        let nodes = whole.targets;
        let input = facts.graph.inputs(&model, &types.into_iter().map(own).collect::<Vec<_>>());
        let mut work = Work { steps: 1, ..Work::default() };
        let mut rows = input.projected;
        let mut aggregated = 0.0;
        let mut widest: f64 = 0.0;
        for layer in &sliced.layers {
            let by_rows = [
                layer.source.and(layer.target).times(own(nodes)),
                layer.group.times(own(whole.groups)),
                layer.sender.times(own(whole.senders)),
            ];
            rows = by_rows.into_iter().fold(rows, Row::and);
            work.flops += whole.edges * layer.edge_flops / ranks as f64 + layer.step_flops;
            let columns = layer.columns.div_ceil(ranks);
            if !layer.cached {
                work.gathered_bytes += whole.edges * layer.moved(columns);
            }
            let slice = nodes.max(whole.groups) * columns as f64;
            aggregated += slice;
            widest = widest.max(slice);
        }
        work.flops += rows.flops;
        (work.nonzeros, work.weight_bytes) = (rows.nonzeros, rows.weights);
        let values = rows.values + aggregated;
        let parameters = facts.parameters(config)?;
        let summed = sampled::summed(parameters + 2.0, ranks);
        let sent = sliced.sent.forward + sliced.sent.backward;
        work.sent_bytes = sent as f64 / ranks as f64 + summed;
        work.messages = (sliced.exchanges + 2.0) * (ranks - 1) as f64;
        work.streamed_bytes = TOUCHES * 4.0 * values
            + 4.0 * PER_WEIGHT * parameters
            // All embeddings of a rank are updated by its one step.
            + PER_WEIGHT * input.embedding_bytes;
        work.memory_bytes = sliced.edge_bytes * whole.edges
            + PER_NODE * nodes
            + input.feature_bytes
            + PER_WEIGHT * input.embedding_bytes
            // An exchange holds its send and receive buffers in addition.
            + 4.0 * (sliced.kept * values + 2.0 * widest)
            + 4.0 * PER_WEIGHT * parameters;
        if let Some(limit) = config.tensor.memory {
            work.memory_bytes = work.memory_bytes.min(limit.as_u64() as f64 / ranks as f64);
        }
        Ok(work)
    }
}
