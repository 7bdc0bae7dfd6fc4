//! Cost of heterogeneous models' layers.

use gnarl_nn::models::{Aggregator, Decomposition, ModelConfig};

use super::{KEPT, Layer, PASSES, Row, dense, kept, layers as homogeneous, none, reads};
use crate::exchange::ExchangeBytes;

/// Sizes of a whole graph: nodes, pairs of a node and an edge type with edges into and out of it, and edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs {
    pub nodes: f64,
    pub groups: f64,
    pub senders: f64,
    pub edges: f64,
}

/// Values and redistributions of a layer in tensor parallelism, forward, and as many backward.
#[derive(Debug, Clone, Copy, Default)]
struct Exchanged {
    /// Values of rows and feature slices, those that stay on their rank included.
    values: f64,
    /// Values that go from each rank to all others.
    everywhere: f64,
    /// Number of redistributions.
    count: f64,
}

/// The layers of `model` over sampled blocks, in a graph of so many edge types.
pub(crate) fn layers(model: &ModelConfig, relations: usize) -> Vec<Layer> {
    if model.decoupled {
        return decoupled(model);
    }
    (0..model.layers).map(|i| sampled(model, i, relations)).collect()
}

/// Layers over the whole graph in tensor parallelism, the bytes that all ranks send, and the number of
/// redistributions. Each layer takes the order of products and messages that exchanges fewer values, as models do.
pub(crate) fn sliced(
    model: &ModelConfig,
    relations: usize,
    graph: &Pairs,
    ranks: usize,
) -> (Vec<Layer>, ExchangeBytes, f64) {
    let both: Vec<(Layer, Exchanged)> = match model.decoupled {
        true => {
            let values = 2.0 * graph.nodes * model.out_dim as f64;
            let first = Exchanged { values, count: 2.0, ..Exchanged::default() };
            let exchanged = std::iter::once(first).chain(std::iter::repeat(Exchanged::default()));
            decoupled(model).into_iter().zip(exchanged).collect()
        }
        false => (0..model.layers).map(|i| by_slices(model, i, relations, graph, ranks)).collect(),
    };
    let others = (ranks - 1) as f64;
    let bytes = |of: &Exchanged| 4.0 * others * (of.values / ranks as f64 + of.everywhere);
    let forward = both.iter().map(|(_, of)| bytes(of)).sum::<f64>() as u64;
    let count = 2.0 * both.iter().map(|(_, of)| of.count).sum::<f64>();
    let layers = both.into_iter().map(|(layer, _)| layer).collect();
    (layers, ExchangeBytes { forward, backward: forward }, count)
}

/// Input projections have weights, so that every layer has a gradient for its input.
fn sampled(model: &ModelConfig, i: usize, relations: usize) -> Layer {
    let (input, output) = model.dims(i);
    let last = i + 1 == model.layers;
    let own = kept(dense(input, output), KEPT * output);
    match model.name.as_str() {
        "mlp" => Layer { target: own, ..none() },
        "rgat" => {
            let (heads, all) = heads(model, i);
            Layer {
                target: kept(own, if last { all } else { 0 }),
                // Sums of each head, which are projected to its columns.
                group: kept(dense(input, all), heads * input + all),
                edge_flops: PASSES * 4.0 * (input * heads) as f64,
                columns: input,
                reads: 2.0 * reads(false),
                ..none()
            }
        }
        "hgt" => {
            let hidden = model.hidden;
            let width = hidden / model.heads.max(1);
            let target = dense(hidden, hidden).and(dense(hidden, hidden));
            let logits = if last { dense(hidden, output) } else { Row::default() };
            Layer {
                source: dense(hidden, hidden).and(dense(hidden, hidden)),
                target: kept(target.and(logits), KEPT * hidden),
                group: kept(dense(hidden, width).and(dense(hidden, width)), 4 * hidden),
                edge_flops: PASSES * 4.0 * hidden as f64,
                columns: hidden,
                // Keys and values.
                reads: 2.0 * PASSES,
                ..none()
            }
        }
        "hetero" => {
            let layer = of_relation(model, i);
            Layer {
                target: kept(Row::default(), KEPT * output),
                group: layer.target,
                sender: layer.source,
                source: Row::default(),
                ..layer
            }
        }
        _ => Layer {
            target: own,
            group: kept(by_relation(model, input, output), input + output),
            step_flops: matrices(model, i, relations),
            columns: input,
            reads: reads(false),
            ..none()
        },
    }
}

fn by_slices(
    model: &ModelConfig,
    i: usize,
    relations: usize,
    graph: &Pairs,
    ranks: usize,
) -> (Layer, Exchanged) {
    let (input, output) = model.dims(i);
    let width = input as f64;
    let mapped = output as f64;
    let Pairs { nodes, groups, senders, edges } = *graph;
    let layer = sampled(model, i, relations);
    let moved = |values: f64| Exchanged { values, count: 2.0, ..Exchanged::default() };
    match model.name.as_str() {
        "mlp" => (layer, Exchanged::default()),
        "rgat" => {
            let (heads, all) = heads(model, i);
            let first = (senders + nodes) * all as f64;
            let after = (nodes + groups * heads as f64) * width;
            let scores = (senders + groups) * heads as f64;
            let exchanged = Exchanged { values: first.min(after), everywhere: scores, count: 4.0 };
            if first >= after {
                return (layer, exchanged);
            }
            let sender = kept(layer.group, all);
            (Layer { group: Row::default(), sender, columns: all, ..layer }, exchanged)
        }
        "hgt" => {
            let rows = 2.0 * (nodes + groups) * width;
            let shared = shared_heads(model.hidden, model.heads, ranks) as f64;
            // A pair of ranks adds up its products for each edge: that many values in each direction.
            let values = rows + 2.0 * edges * shared * ranks as f64 / (ranks - 1).max(1) as f64;
            (layer, Exchanged { values, count: 4.0, ..Exchanged::default() })
        }
        "hetero" if model.relation_layer == "gat" => {
            // The layer of an edge type is the last of its own model: its heads are averaged.
            let heads = model.out_heads as f64;
            let rows = moved((senders + groups) * heads * mapped);
            // Slices of messages are summed by stored coefficients.
            let layer = Layer { reads: PASSES, ..layer };
            (layer, Exchanged { everywhere: (senders + groups) * heads, count: 4.0, ..rows })
        }
        "hetero" if model.relation_layer == "sage" && model.aggregator == Aggregator::MaxPool => {
            (layer, moved((senders + groups) * width))
        }
        "hetero" => {
            // GIN's inner layer comes before its messages.
            let mapped = if model.relation_layer == "gin" { model.hidden as f64 } else { mapped };
            (layer, moved(((nodes + groups) * width).min((senders + groups) * mapped)))
        }
        _ => rgcn_by_slices(model, i, layer, graph),
    }
}

/// The order of R-GCN's matrices and messages that exchanges the fewest values.
fn rgcn_by_slices(
    model: &ModelConfig,
    i: usize,
    layer: Layer,
    graph: &Pairs,
) -> (Layer, Exchanged) {
    let (input, output) = model.dims(i);
    let Pairs { nodes, groups, senders, .. } = *graph;
    let own = kept(dense(input, output), KEPT * output);
    let mut ways = vec![((nodes + groups) * input as f64, layer)];
    let sender = kept(by_relation(model, input, output), input + output);
    let group = Row::default();
    ways.push((
        (senders + nodes) * output as f64,
        Layer { group, sender, columns: output, ..layer },
    ));
    if model.decomposition == Decomposition::Basis && !(i == 0 && model.one_hot) {
        let bases = model.bases;
        let heard = kept(dense(bases * input, output), bases * input);
        let after = Layer { group, target: own.and(heard), step_flops: 0.0, ..layer };
        ways.push(((1 + bases) as f64 * nodes * input as f64, after));
        let mapped = kept(dense(input, bases * output), bases * output);
        let columns = bases * output;
        let before = Layer { group, target: own.and(mapped), step_flops: 0.0, columns, ..layer };
        ways.push(((1 + bases) as f64 * nodes * output as f64, before));
    }
    let fewest = ways.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, layer));
    (fewest.1, Exchanged { values: fewest.0, count: 2.0, ..Exchanged::default() })
}

/// A perceptron for each node type, then averages over edge types, as wide as the output.
fn decoupled(model: &ModelConfig) -> Vec<Layer> {
    let rows = (0..model.layers).map(|i| {
        let (input, output) = model.dims(i);
        kept(dense(input, output), KEPT * output)
    });
    let rows = rows.fold(Row::default(), Row::and);
    let columns = model.out_dim;
    let hop = |i: usize| Layer {
        source: if i == 0 { rows } else { Row::default() },
        target: Row { values: (KEPT * columns) as f64, ..Row::default() },
        group: Row { values: columns as f64, ..Row::default() },
        columns,
        reads: reads(false),
        ..none()
    };
    (0..model.blocks()).map(hop).collect()
}

/// Heads of layer `i`, and the columns of all of them.
fn heads(model: &ModelConfig, i: usize) -> (usize, usize) {
    let (_, output) = model.dims(i);
    match i + 1 == model.layers {
        true => (model.out_heads, model.out_heads * output),
        false => (model.heads, output),
    }
}

/// The layer of one edge type in `hetero`.
fn of_relation(model: &ModelConfig, i: usize) -> Layer {
    let (in_dim, out_dim) = model.dims(i);
    let name = model.relation_layer.clone();
    let one = ModelConfig { name, layers: 1, in_dim, out_dim, decoupled: false, ..model.clone() };
    let layer = homogeneous(&one, None, &|_, _, _| false).into_iter().next().unwrap_or_default();
    // What one layer alone reads has no gradient; here it has.
    Layer { constant: false, reads: layer.reads.max(reads(false)), ..layer }
}

/// The product of a pair of a node and an edge type, by the matrix of the type.
fn by_relation(model: &ModelConfig, input: usize, output: usize) -> Row {
    let blocks = match model.decomposition {
        Decomposition::Block => model.bases.max(1),
        _ => 1,
    };
    let whole = dense(input, output);
    Row { flops: whole.flops / blocks as f64, ..whole }
}

/// Operations of a step that sums bases to the matrices of edge types.
fn matrices(model: &ModelConfig, i: usize, relations: usize) -> f64 {
    let (input, output) = model.dims(i);
    match model.decomposition {
        Decomposition::Basis => PASSES * 2.0 * (relations * model.bases * input * output) as f64,
        _ => 0.0,
    }
}

/// Pairs of ranks, and heads that their slices share: the feature slices of ranks are even shares of the columns.
fn shared_heads(columns: usize, heads: usize, ranks: usize) -> usize {
    let width = (columns / heads.max(1)).max(1);
    let of = |rank: usize| {
        let range = gnarl_common::threads::even_share(columns, rank, ranks);
        (range.start / width)..range.end.div_ceil(width)
    };
    let pairs = (0..ranks).flat_map(|a| (a + 1..ranks).map(move |b| (a, b)));
    pairs.map(|(a, b)| of(a).filter(|head| of(b).contains(head)).count()).sum()
}
