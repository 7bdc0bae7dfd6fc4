//! Expected memory of embeddings, evaluation and full-graph steps, logged before the first epoch.

use gnarl_config::{RowStore, RunConfig, Strategy};
use gnarl_nn::models::ModelConfig;

use crate::embeddings::TableSpec;
use crate::run::setup::Source;
use crate::task::Sizes;
use gnarl_common::memory::{Available, available, gib};

/// Matrices that a layer of a full-graph step saves for its gradient: outputs of products and sums,
/// and dropout.
const KEPT: usize = 3;

/// A warning if the run is expected to take more memory than is left.
pub(crate) fn warning(config: &RunConfig, source: &Source, sizes: &Sizes) -> Option<String> {
    let nodes = source.dataset()?.manifest().num_nodes();
    told(config, nodes, sizes.outputs, available()?)
}

/// A warning if embeddings in memory are expected to take more than is left; those of a run on several hosts are spread
/// over them.
pub(crate) fn of_tables(config: &RunConfig, tables: &[TableSpec], hosts: usize) -> Option<String> {
    tables_told(config, tables, hosts, available()?)
}

fn tables_told(
    config: &RunConfig,
    tables: &[TableSpec],
    hosts: usize,
    memory: Available,
) -> Option<String> {
    if config.embedding.store == RowStore::File {
        return None;
    }
    // The best rows are copied where training goes on after an evaluation.
    let (never, every) = (config.evaluate.is_never(), config.train.eval_every);
    let copies = if never || every == 0 || every >= config.train.epochs { 1 } else { 2 };
    let values = |table: &TableSpec| {
        let row = copies * table.width + table.optimizer.state_len(table.width) + 1;
        table.count as f64 * row as f64
    };
    let needed = 4.0 * tables.iter().map(values).sum::<f64>() / hosts.max(1) as f64;
    let left = memory.left as f64;
    if needed <= left {
        return None;
    }
    let place = if memory.grouped { "in this control group" } else { "on this host" };
    let advice = match config.train.strategy {
        Strategy::Gradient | Strategy::Disaggregated => "set embedding.store = 'file'",
        _ => "train with train.strategy = 'gradient' and embedding.store = 'file'",
    };
    Some(format!(
        "embeddings and the state of their optimizer need about {}, and {} are left {place}: {advice}; \
         embedding.optimizer = 'row-adagrad' has the smallest state",
        gib(needed),
        gib(left),
    ))
}

/// The warning for this many nodes and outputs.
fn told(config: &RunConfig, nodes: u64, outputs: usize, memory: Available) -> Option<String> {
    let tensor = config.train.strategy.takes_whole_graph();
    if config.model.name == "none" || tensor && config.tensor.memory.is_some() {
        return None;
    }
    let widths = widths(config, outputs);
    let bytes = |columns: usize| 4.0 * nodes as f64 * columns as f64;
    let last = widths.last().copied().unwrap_or(0);
    let evaluation = match (config.evaluate.is_never(), tensor) {
        (true, _) => 0.0,
        // A layer reads the complete output of the previous one.
        (false, true) => (0..widths.len())
            .map(|i| widths[i] + if i > 0 { widths[i - 1] } else { 0 })
            .max()
            .map_or(0.0, bytes),
        // Rows between layers go to files beyond evaluate.memory; the endpoints of edges are all in memory.
        (false, false) if config.task.kind.is_of_nodes() || config.samples_by_time() => 0.0,
        (false, false) => bytes(last),
    };
    let steps = if tensor { bytes(KEPT * widths.iter().sum::<usize>()) } else { 0.0 };
    let (what, of, needed) = match steps > evaluation {
        true => ("a full-graph step", "what its layers keep of all nodes", steps),
        false if tensor => ("evaluation", "the hidden features of all nodes", evaluation),
        false => ("evaluation", "the embeddings of all nodes", evaluation),
    };
    let left = memory.left as f64;
    if needed <= left {
        return None;
    }
    let place = if memory.grouped { "in this control group" } else { "on this host" };
    let plain = config.task.kind.is_of_nodes() && config.task.node_type.is_none();
    let width = if tensor { "model.hidden" } else { "embedding.dim" };
    let bounded = match tensor && plain {
        true => "set tensor.memory, which keeps the rest on disk",
        false => {
            "train.eval_every = 0 leaves one evaluation, the last, and evaluate.splits = [] none"
        }
    };
    Some(format!(
        "{what} needs about {} ({of}), and {} are left {place}: lower {width} or give the run \
         more memory; {bounded}",
        gib(needed),
        gib(left),
    ))
}

/// Output widths of the layers.
fn widths(config: &RunConfig, outputs: usize) -> Vec<usize> {
    let last = if config.task.kind.is_of_nodes() { outputs } else { config.embedding.dim };
    let model = ModelConfig { out_dim: last, ..config.model.clone() };
    (0..model.layers).map(|layer| model.dims(layer).1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnarl_config::TaskKind;

    fn line(change: impl Fn(&mut RunConfig), left: u64) -> Option<String> {
        let mut config = RunConfig::default();
        change(&mut config);
        let memory = Available { left, limit: 2 * left, grouped: true };
        told(&config, 1 << 20, 44, memory)
    }

    #[test]
    fn an_evaluation_that_does_not_fit_is_told() {
        // 2²⁰ nodes of 512 values.
        let links = |c: &mut RunConfig| {
            c.task.kind = TaskKind::LinkPrediction;
            c.embedding.dim = 512;
        };
        let text = line(links, 1 << 30).unwrap();
        assert!(text.contains("evaluation needs about 2.0 GiB"), "{text}");
        assert!(text.contains("1.0 GiB are left in this control group"), "{text}");
        assert!(text.contains("embedding.dim") && text.contains("evaluate.splits"), "{text}");
        assert_eq!(line(links, 3 << 30), None);
        assert_eq!(line(|_| (), 1 << 20), None, "rows between layers go to files");
        let never = |c: &mut RunConfig| {
            links(c);
            c.evaluate.splits.clear();
        };
        assert_eq!(line(never, 1 << 30), None);
    }

    #[test]
    fn embeddings_that_do_not_fit_are_told() {
        // 2²⁰ rows of 128 values; Adam has two more for each, and an evaluation keeps a copy.
        let tables = [TableSpec::of_entities(1 << 20, 128)];
        let told = |change: &dyn Fn(&mut RunConfig), hosts: usize, left: u64| {
            let mut config = RunConfig::default();
            change(&mut config);
            tables_told(&config, &tables, hosts, Available { left, limit: left, grouped: false })
        };
        let text = told(&|_| (), 1, 1 << 30).unwrap();
        assert!(text.contains("need about 2.0 GiB, and 1.0 GiB are left on this host"), "{text}");
        assert!(text.contains("embedding.store = 'file'"), "{text}");
        assert_eq!(told(&|_| (), 1, 3 << 30), None);
        assert_eq!(told(&|_| (), 2, 3 << 29), None, "spread over hosts");
        assert_eq!(told(&|c| c.train.eval_every = 0, 1, 7 << 28), None, "no copy");
        assert_eq!(told(&|c| c.embedding.store = RowStore::File, 1, 1 << 20), None);
    }

    #[test]
    fn full_graph_steps_are_counted_unless_their_memory_is_bounded() {
        let text = line(|c| c.train.strategy = Strategy::Tensor, 2 << 30).unwrap();
        assert!(text.contains("a full-graph step needs about 3.5 GiB"), "{text}");
        let bounded = |c: &mut RunConfig| {
            c.train.strategy = Strategy::Tensor;
            c.tensor.memory = Some(bytesize::ByteSize::gib(1));
        };
        assert_eq!(line(bounded, 1 << 30), None);
    }
}
