//! All orders of tensor-parallel R-GCN against layers on blocks.

use std::ops::Range;

use gnarl_common::Result;
use gnarl_common::rng::Key;
use gnarl_graph::{Csc, Triple};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroSampleGraph, HeteroSampler, HeteroScratch};

use super::rgcn::Rgcn;
use super::rgcn_sliced::Way;
use super::stack::HeteroLayer;
use super::{HeteroSlices, WholeRelations};
use crate::models::stack::After;
use crate::models::{Decomposition, ModelConfig};
use crate::{Activation, Exchange, Mode, Params, ParamsBuilder, RelBlock, Routes, Tape, Tensor};

/// A single rank with all rows and columns.
struct Alone(usize);

impl Exchange for Alone {
    fn rows(&self) -> Range<usize> {
        0..self.0
    }

    fn columns(&self, cols: usize) -> Range<usize> {
        0..cols
    }

    fn split(&self, rows: &Tensor) -> Result<Tensor> {
        assert_eq!(rows.rows(), self.0);
        Ok(rows.clone())
    }

    fn gather(&self, columns: &Tensor, _: usize) -> Result<Tensor> {
        self.split(columns)
    }

    fn all_rows(&self, rows: &Tensor) -> Result<Tensor> {
        self.split(rows)
    }

    fn sum_rows(&self, all: &Tensor) -> Result<Tensor> {
        self.split(all)
    }

    fn sum_heads(&self, own: &Tensor, _: usize, _: usize) -> Result<Tensor> {
        Ok(own.clone())
    }

    fn route(&self, wanted: &[u32]) -> Result<Routes> {
        Ok(Routes { asked: vec![wanted.to_vec()], wanted: vec![wanted.len()] })
    }

    fn fetch(&self, rows: &Tensor, _: &Routes) -> Result<Tensor> {
        self.split(rows)
    }

    fn give_back(&self, wanted: &Tensor, _: &Routes) -> Result<Tensor> {
        self.split(wanted)
    }
}

/// 30 nodes of each of two types; some have no in-edges over some of the three edge types.
fn block(weighted: bool) -> RelBlock {
    let of = |name: &str| name.parse::<Triple>().unwrap();
    let mut graph =
        HeteroSampleGraph::new().with_nodes("a", 30).unwrap().with_nodes("b", 30).unwrap();
    for (number, name) in ["a:x:a", "b:y:a", "a:z:b"].iter().enumerate() {
        let key = Key::new(7).with(number as u64);
        let mut edges: Vec<(u32, u32)> = (0..60)
            .map(|e| (key.below(2 * e, 12) as u32, key.below(2 * e + 1, 20) as u32))
            .collect();
        edges.sort_by_key(|&(source, destination)| (destination, source));
        edges.dedup();
        graph = graph.with_edges(&of(name), Csc::from_edges(30, &edges)).unwrap();
        if weighted && number < 2 {
            let weights: Vec<f32> =
                (0..edges.len() as u64).map(|e| 0.5 + key.unit(e) as f32).collect();
            graph = graph.with_weights(&of(name), weights.into()).unwrap();
        }
    }
    let all: Vec<u32> = (0..30).collect();
    let sampler = HeteroSampler::new(&graph, &HeteroFanouts::new(&[-1]), Rule::Uniform).unwrap();
    let seeds = [(0, &all[..]), (1, &all[..])];
    let batch = sampler.sample_types(&seeds, Key::new(1), &mut HeteroScratch::new()).unwrap();
    RelBlock::all(&batch.fuse(&graph).unwrap(), graph.schema()).unwrap().swap_remove(0)
}

/// A layer's output, and the gradients of its parameters and its input, in a given order or on one
/// block.
fn passed(
    (layer, params): (&Rgcn, &Params),
    graph: &WholeRelations,
    way: Option<Way>,
) -> [Vec<f32>; 3] {
    let count = |offsets: &[u32]| Alone(offsets[60] as usize);
    let (nodes, groups) = (Alone(60), count(graph.groups()));
    let senders = count(graph.senders());
    let ids: Vec<u64> = (0..60).collect();
    let slices =
        HeteroSlices { graph, ids: &ids, nodes: &nodes, groups: &groups, senders: &senders };
    let mut tape = Tape::new(params, Mode::train(Key::new(2)));
    let random = |key: u64, rows: usize, cols: usize| {
        let values = (0..(rows * cols) as u64).map(|i| Key::new(key).normal(i) as f32);
        Tensor::from_vec(rows, cols, values.collect())
    };
    let x = tape.leaf(random(3, 60, layer.dims.0));
    let after = After { activation: Activation::None, dropout: 0.0 };
    let y = match way {
        None => layer.apply(&mut tape, graph.block(), x, after).unwrap(),
        Some(way) => {
            let heard = layer.heard_by(way, &mut tape, &slices, x).unwrap();
            let own = layer.own(&mut tape, x);
            tape.add(own, heard)
        }
    };
    let value = tape.value(y).data().to_vec();
    let (left, right) = (tape.dense(random(4, 1, 60)), tape.dense(random(5, layer.dims.1, 1)));
    let row = tape.matmul(left, y);
    let loss = tape.matmul(row, right);
    let mut grads = vec![0.0; params.len()];
    tape.backward(loss, &mut grads).unwrap();
    [value, grads, tape.grad(x).unwrap().data().to_vec()]
}

#[test]
fn all_ways_give_the_same() {
    let of_bases = [Way::HearThenBases, Way::BasesThenHear];
    for (decomposition, weighted) in [
        (Decomposition::None, false),
        (Decomposition::None, true),
        (Decomposition::Basis, false),
        (Decomposition::Basis, true),
        (Decomposition::Block, true),
    ] {
        let graph = WholeRelations::new(block(weighted), 0..60);
        let config = ModelConfig {
            layers: 1,
            in_dim: 6,
            out_dim: 9,
            decomposition,
            bases: 3,
            ..ModelConfig::default()
        };
        let mut params = ParamsBuilder::new(Key::new(1));
        let layer = Rgcn::new(&config, 3, 0, &mut params).unwrap();
        let params = params.build();
        let expected = passed((&layer, &params), &graph, None);
        let bases = (decomposition == Decomposition::Basis).then_some(of_bases);
        for way in
            [Way::HearThenMap, Way::MapThenHear].into_iter().chain(bases.into_iter().flatten())
        {
            let found = passed((&layer, &params), &graph, Some(way));
            for (found, expected) in found.iter().zip(&expected) {
                let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
                let apart = apart.fold(0.0, f32::max);
                assert!(apart < 2e-4, "{decomposition:?} by {way:?}: {apart}");
            }
        }
    }
}
