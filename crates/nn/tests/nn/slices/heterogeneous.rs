//! Models of graphs with types.

use std::sync::Mutex;
use std::time::Duration;

use gnarl_common::rng::Key;
use gnarl_common::threads::even_share;
use gnarl_engine::{Communicator, local};
use gnarl_graph::{Csc, Triple};
use gnarl_nn::models::heterogeneous::{self, HeteroSlices, Source, WholeRelations};
use gnarl_nn::models::{Aggregator, ModelConfig, Softmax};
use gnarl_nn::{Mode, Reduce, RelBlock, Tape, Tensor};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};

use super::ranks::Ranks;
use super::{Outcome, RANKS, assert_same, outcome, random};

/// Nodes of each type, and widths of their features, 0 for embeddings.
const TYPES: [(&str, usize, usize); 3] = [("a", 17, 5), ("b", 12, 0), ("c", 6, 4)];
const NODES: usize = 35;

/// No edge type ends in `c`, one has no edges, and many nodes have no in-edges over some.
fn graph(weighted: bool) -> HeteroSampleGraph {
    let mut graph = HeteroSampleGraph::new();
    for (name, count, _) in TYPES {
        graph = graph.with_nodes(name, count).unwrap();
    }
    let count = |name: &str| TYPES.iter().find(|t| t.0 == name).unwrap().1;
    let edge_types =
        [("a:x:a", 40), ("b:y:a", 20), ("c:w:a", 15), ("a:z:b", 25), ("b:v:b", 9), ("c:n:b", 0)];
    for (number, (name, edges)) in edge_types.into_iter().enumerate() {
        let triple: Triple = name.parse().unwrap();
        let key = Key::new(7).with(number as u64);
        let end = |at: u64, name: &str| key.below(at, count(name) as u64) as u32;
        let pair = |e: u64| (end(2 * e, &triple.src), end(2 * e + 1, &triple.dst));
        let mut edges: Vec<(u32, u32)> = (0..edges).map(pair).collect();
        edges.sort_by_key(|&(source, destination)| (destination, source));
        edges.dedup();
        graph = graph.with_edges(&triple, Csc::from_edges(count(&triple.dst), &edges)).unwrap();
        if weighted && number < 2 {
            let weights: Vec<f32> =
                (0..edges.len() as u64).map(|e| 0.5 + key.unit(e) as f32).collect();
            graph = graph.with_weights(&triple, weights.into()).unwrap();
        }
    }
    graph
}

/// All nodes and edges, type after type.
fn block(graph: &HeteroSampleGraph) -> RelBlock {
    let sampler = HeteroSampler::new(graph, &HeteroFanouts::new(&[-1]), Rule::Uniform).unwrap();
    let all: Vec<Vec<u32>> = TYPES.iter().map(|t| (0..t.1 as u32).collect()).collect();
    let seeds: Vec<(usize, &[u32])> =
        all.iter().enumerate().map(|(number, all)| (number, &all[..])).collect();
    let batch = sampler.sample_types(&seeds, Key::new(1), &mut HeteroScratch::new()).unwrap();
    RelBlock::all(&batch.fuse(graph).unwrap(), graph.schema()).unwrap().swap_remove(0)
}

fn same(config: &ModelConfig, weighted: bool) {
    let config = ModelConfig {
        dropout: 0.3,
        input_dropout: Some(0.1),
        attention_dropout: 0.2,
        out_dim: 3,
        ..config.clone()
    };
    let graph = graph(weighted);
    let sources = TYPES.map(|(_, _, width)| match width {
        0 => Source::Embeddings,
        width => Source::Features(width),
    });
    let (model, params) =
        heterogeneous::build(&config, graph.schema(), &sources, Key::new(1)).unwrap();
    let width = |number: usize| match TYPES[number].2 {
        0 => config.input_width(),
        width => width,
    };
    let rows: Vec<Tensor> =
        (0..3).map(|number| random(number as u64, TYPES[number].1, width(number))).collect();
    let mode = Mode::train(Key::new(2));

    let blocks: Vec<RelBlock> = (0..model.num_layers()).map(|_| block(&graph)).collect();
    let mut tape = Tape::new(&params, mode);
    let leaves: Vec<_> = rows.iter().map(|rows| Some(tape.leaf(rows.clone()))).collect();
    let y = model.forward(&mut tape, &blocks, &leaves).unwrap();
    let whole = outcome(&mut tape, &params, (y, 0), &leaves);
    for size in RANKS {
        let outcomes = Mutex::new(Vec::new());
        local::run(size, Duration::from_secs(20), |comm| {
            let bounds: Vec<usize> = (0..=size).map(|r| even_share(NODES, r, size).start).collect();
            let own = bounds[comm.rank()]..bounds[comm.rank() + 1];
            let whole = WholeRelations::new(block(&graph), own.clone());
            model.prepare_sliced(&whole);
            let before = |of: &[u32]| bounds.iter().map(|&node| of[node] as usize).collect();
            let slices = HeteroSlices {
                graph: &whole,
                ids: &whole.block().block().ids()[own.clone()],
                nodes: &Ranks::new(comm, bounds.clone()),
                groups: &Ranks::new(comm, before(whole.groups())),
                senders: &Ranks::new(comm, before(whole.senders())),
            };
            let mut tape = Tape::new(&params, mode);
            let mut first = 0;
            let leaves: Vec<_> = rows
                .iter()
                .map(|rows| {
                    let of_type = first..first + rows.rows();
                    first = of_type.end;
                    let (start, end) = (of_type.start.max(own.start), of_type.end.min(own.end));
                    let values = (start..end).flat_map(|row| rows.row(row - of_type.start));
                    let values: Vec<f32> = values.copied().collect();
                    let count = end.saturating_sub(start);
                    (count > 0).then(|| tape.leaf(Tensor::from_vec(count, rows.cols(), values)))
                })
                .collect();
            let y = model.forward_sliced(&mut tape, &slices, &leaves)?;
            let own = outcome(&mut tape, &params, (y, own.start), &leaves);
            outcomes.lock().unwrap().push((comm.rank(), own));
            Ok(())
        })
        .unwrap();
        let mut outcomes: Vec<(usize, Outcome)> = outcomes.into_inner().unwrap();
        outcomes.sort_by_key(|(rank, _)| *rank);
        let label = format!("{config:?} on {size}");
        assert_same(&label, &whole, outcomes.into_iter().map(|(_, own)| own).collect());
    }
}

/// A model of two layers; four columns a head over three ranks are cut within heads.
fn config(name: &str) -> ModelConfig {
    ModelConfig { name: name.into(), hidden: 8, heads: 2, ..ModelConfig::default() }
}

#[test]
fn rgcn_is_the_same_for_any_number_of_ranks() {
    for weighted in [false, true] {
        same(&config("rgcn"), weighted);
        same(&ModelConfig { decoupled: true, teleport: 0.1, ..config("rgcn") }, weighted);
    }
}

/// The first layer projects before it aggregates, a last one of many columns after it.
#[test]
fn rgat_is_the_same_for_any_number_of_ranks() {
    for softmax in [Softmax::Within, Softmax::Across] {
        same(&ModelConfig { softmax, ..config("rgat") }, false);
        same(&ModelConfig { softmax, out_heads: 2, ..config("rgat") }, true);
        let narrow = ModelConfig { softmax, hidden: 2, layers: 3, ..config("rgat") };
        same(&ModelConfig { heads: 1, ..narrow.clone() }, false);
        same(&narrow, false);
    }
}

/// Three ranks and more share heads, also those of one column.
#[test]
fn hgt_is_the_same_for_any_number_of_ranks() {
    for (hidden, heads) in [(8, 2), (12, 3), (3, 3), (9, 1)] {
        same(&ModelConfig { hidden, heads, ..config("hgt") }, heads == 2);
    }
    same(&ModelConfig { layers: 3, ..config("hgt") }, false);
}

/// Sums of sliced rows or of mapped ones, maxima and attention; the last layer is narrow or wide.
#[test]
fn hetero_is_the_same_for_any_number_of_ranks() {
    for relation_layer in ["sage", "gat", "gin"] {
        for (across, hidden) in [(Reduce::Sum, 8), (Reduce::Mean, 2), (Reduce::Max, 8)] {
            let relation_layer = relation_layer.into();
            let base = ModelConfig { relation_layer, across, hidden, ..config("hetero") };
            same(&ModelConfig { out_heads: 2, ..base.clone() }, true);
            same(&base, false);
        }
    }
    same(&ModelConfig { aggregator: Aggregator::MaxPool, ..config("hetero") }, false);
}
