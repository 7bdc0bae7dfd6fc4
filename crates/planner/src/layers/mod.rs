//! Cost of a model's layers per row and per edge, forward and backward.

pub(super) mod heterogeneous;

use gnarl_nn::models::{Aggregator, ModelConfig};

/// Products of a layer that has a gradient for its input: values, gradients of weights and of input.
const PASSES: f64 = 3.0;
/// Products of a layer that reads the model's input.
const FIRST_PASSES: f64 = 2.0;
/// Reads of scores for each edge: of both endpoints, forward and backward.
const SCORES: f64 = 4.0;
/// Bytes of a memory access.
const LINE: usize = 64;
/// Values that a layer computes per column: products, sums, and dropout.
pub(super) const KEPT: usize = 3;

/// A message-passing layer, or a dense one with 0 `columns`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Layer {
    /// Cost per row that messages come from.
    pub source: Row,
    /// Cost per row that messages go to.
    pub target: Row,
    /// Cost per pair of a node and an edge type that it receives messages over.
    pub group: Row,
    /// Cost per pair of a node and an edge type that it sends messages over.
    pub sender: Row,
    /// Floating-point operations per step, such as sums of matrices.
    pub step_flops: f64,
    /// Floating-point operations per edge.
    pub edge_flops: f64,
    /// Columns of messages.
    pub columns: usize,
    /// Number of reads of an edge's columns, forward and backward.
    pub reads: f64,
    /// Columns of scores that are gathered for all nodes on all ranks.
    pub scores: usize,
    /// True if messages pass over the model's input, so that they have no gradient.
    pub constant: bool,
    /// True if the sums of messages are kept from the first epoch on, over a whole graph that does not change.
    pub cached: bool,
}

/// Cost per row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Row {
    /// Floating-point operations of dense products.
    pub flops: f64,
    /// Non-zero values of sparse input in products.
    pub nonzeros: f64,
    /// Bytes of weights that they gather, forward and backward.
    pub weights: f64,
    /// Number of computed values.
    pub values: f64,
}

/// The layers of `model`, the input's first. `nonzeros` are those of an input row, if it is sparse;
/// `maps_first` returns whether layer `i` from some columns to others maps rows before messages
/// pass.
pub(super) fn layers(
    model: &ModelConfig,
    nonzeros: Option<f64>,
    maps_first: &dyn Fn(usize, usize, usize) -> bool,
) -> Vec<Layer> {
    if model.decoupled {
        return decoupled(model, nonzeros);
    }
    let layer = |i: usize| {
        let (input, output) = model.dims(i);
        let product = |from: usize, to: usize| product(i == 0, nonzeros, from, to);
        let first = maps_first(i, input, output);
        let (columns, constant) = if first { (output, false) } else { (input, i == 0) };
        let one_map = |columns: usize| match first {
            true => (product(input, columns), Row::default()),
            false => (Row::default(), product(input, columns)),
        };
        let passing = Layer { columns, constant, reads: reads(constant), ..Layer::default() };
        match model.name.as_str() {
            "mlp" => Layer { target: kept(product(input, output), KEPT * output), ..none() },
            "gat" | "gatv2" => attention(model, i, nonzeros),
            "gin" => {
                let first = maps_first(i, input, model.hidden);
                let columns = if first { model.hidden } else { input };
                let (constant, outer) = (!first && i == 0, dense(model.hidden, output));
                let inner = product(input, model.hidden);
                let (source, own) =
                    if first { (inner, Row::default()) } else { (Row::default(), inner) };
                let values = KEPT * (model.hidden + output) + columns;
                let target = kept(own.and(outer), values);
                Layer { source, target, columns, constant, reads: reads(constant), ..none() }
            }
            "sgc" => {
                let (input, output) = (model.in_dim, model.out_dim);
                let narrow = input > output;
                let columns = if narrow { output } else { input };
                let map = product_of(nonzeros.filter(|_| narrow), FIRST_PASSES, input, output);
                let (last, constant) = (i + 1 == model.layers, !narrow);
                let source = if narrow && i == 0 { map } else { Row::default() };
                let target = if !narrow && last { map } else { Row::default() };
                let target = kept(target, columns);
                Layer { source, target, columns, constant, reads: reads(constant), ..none() }
            }
            "sage" | "ngnn" => {
                let inner = match model.name == "ngnn" && i + 1 < model.layers {
                    true => dense(model.hidden, model.hidden),
                    false => Row::default(),
                };
                let own = kept(product(input, output).and(inner), KEPT * output + columns);
                match model.aggregator {
                    Aggregator::Mean => {
                        let (source, mapped) = one_map(output);
                        Layer { source, target: own.and(mapped), ..passing }
                    }
                    Aggregator::MaxPool => Layer {
                        source: kept(product(input, input), input),
                        target: own.and(dense(input, output)),
                        columns: input,
                        reads: reads(false),
                        ..none()
                    },
                    Aggregator::Lstm => Layer {
                        source: kept(product(input, 4 * input), 4 * input),
                        target: own.and(dense(input, output)),
                        edge_flops: PASSES * 2.0 * (4 * input * input) as f64,
                        columns: 4 * input,
                        reads: reads(false),
                        ..none()
                    },
                }
            }
            _ => {
                let (source, target) = one_map(output);
                Layer { source, target: kept(target, KEPT * output + columns), ..passing }
            }
        }
    };
    (0..model.layers).map(layer).collect()
}

/// A perceptron on the source rows of the first messages, then messages as wide as the output.
fn decoupled(model: &ModelConfig, nonzeros: Option<f64>) -> Vec<Layer> {
    let rows = (0..model.layers).map(|i| {
        let (input, output) = model.dims(i);
        kept(product(i == 0, nonzeros, input, output), KEPT * output)
    });
    let rows = rows.fold(Row::default(), Row::and);
    let attention = model.name == "gat";
    let scores = if attention { 2 * model.out_heads } else { 0 };
    let columns = model.out_dim;
    let hop = |i: usize| Layer {
        source: if i == 0 { rows } else { Row::default() },
        target: Row {
            values: (if model.teleport > 0.0 { KEPT } else { 1 } * columns) as f64,
            ..Row::default()
        },
        columns,
        reads: if attention { PASSES } else { reads(false) },
        scores: if i == 0 { scores } else { 0 },
        ..none()
    };
    (0..model.blocks()).map(hop).collect()
}

/// GAT: all rows are projected, and messages carry the columns of all heads.
fn attention(model: &ModelConfig, i: usize, nonzeros: Option<f64>) -> Layer {
    let (input, output) = model.dims(i);
    let last = i + 1 == model.layers;
    let heads = if last { model.out_heads } else { model.heads };
    let columns = if last { heads * output } else { output };
    let scores = Row { flops: PASSES * 4.0 * columns as f64, ..Row::default() };
    Layer {
        source: kept(product(i == 0, nonzeros, input, columns).and(scores), columns),
        target: Row { values: (KEPT * columns) as f64, ..Row::default() },
        columns,
        // The gradient of a coefficient reads both endpoints again: in GAT, where that of the source reads the
        // destination's anyway.
        reads: if model.name == "gat" && !model.edge_features { reads(false) } else { PASSES },
        scores: 2 * heads,
        ..none()
    }
}

fn none() -> Layer {
    Layer::default()
}

fn reads(constant: bool) -> f64 {
    if constant { 1.0 } else { 2.0 }
}

fn kept(row: Row, values: usize) -> Row {
    Row { values: row.values + values as f64, ..row }
}

/// A product of rows of the model's input, where `first`, or of rows that layers made.
fn product(first: bool, nonzeros: Option<f64>, input: usize, output: usize) -> Row {
    match first {
        true => product_of(nonzeros, FIRST_PASSES, input, output),
        false => dense(input, output),
    }
}

fn dense(input: usize, output: usize) -> Row {
    product_of(None, PASSES, input, output)
}

/// A product of input rows of `from` values.
pub(super) fn product_of_input(nonzeros: Option<f64>, from: usize, to: usize) -> Row {
    product_of(nonzeros, FIRST_PASSES, from, to)
}

fn product_of(nonzeros: Option<f64>, passes: f64, input: usize, output: usize) -> Row {
    match nonzeros {
        Some(nonzeros) => {
            let weights = passes * nonzeros * (4 * output) as f64;
            Row { nonzeros, weights, values: output as f64, ..Row::default() }
        }
        None => {
            let flops = passes * 2.0 * (input * output) as f64;
            Row { flops, values: output as f64, ..Row::default() }
        }
    }
}

impl Layer {
    /// Bytes that an edge moves in an epoch, for `columns` of its messages' columns, and for the
    /// scores of both endpoints: a row is a cache line at least.
    pub fn moved(&self, columns: usize) -> f64 {
        let row = |values: usize| if values == 0 { 0 } else { (4 * values).max(LINE) };
        self.reads * row(columns) as f64 + SCORES * row(self.scores / 2) as f64
    }
}

impl Row {
    /// The cost of so many rows.
    pub fn times(self, rows: f64) -> Self {
        Self {
            flops: rows * self.flops,
            nonzeros: rows * self.nonzeros,
            weights: rows * self.weights,
            values: rows * self.values,
        }
    }

    /// The cost of both, one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            flops: self.flops + other.flops,
            nonzeros: self.nonzeros + other.nonzeros,
            weights: self.weights + other.weights,
            values: self.values + other.values,
        }
    }
}
