//! Propagations of staged inference by sweeps: the sums of many nodes while the rows of all sources come by.

use std::ops::Range;

use gnarl_common::{Error, Result};
use gnarl_infer::rows::InOrder;
use gnarl_infer::{SweepMemory, Sweeper};
use gnarl_nn::Reduce;
use gnarl_nn::models::stages::{Linear, Pass};
use gnarl_nn::ops::list_sweep::{Chunk, ListSweep, SweptLists};
use gnarl_nn::ops::pass::Operator;
use gnarl_sample::SampleGraph;
use gnarl_store::FeatureStore;
use rayon::prelude::*;

use super::features::copy;
use super::propagation::inverse_root;

/// Rows that come by.
#[derive(Clone, Copy)]
pub(super) enum Coming<'a> {
    Features(&'a dyn FeatureStore),
    /// The first columns of rows of the layer before.
    Before(InOrder<'a>, usize),
}

/// The sums of a pass over a graph.
pub(super) struct SweptPass<'a> {
    pub graph: &'a SampleGraph,
    pub pass: Pass,
    pub rows: Coming<'a>,
}

/// The place of a node without a row: a list that has it among its entries is not finished at the end of a sweep.
const NOWHERE: u32 = u32::MAX - 1;

/// The lists of some nodes.
struct Lists<'a> {
    of: &'a SweptPass<'a>,
    nodes: &'a [u32],
    /// The factor of each list; none if all are 1.
    scales: Option<Vec<f32>>,
}

impl Coming<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Features(features) => features.rows(),
            Self::Before(rows, _) => rows.places().len(),
        }
    }

    fn cols(&self) -> usize {
        match self {
            Self::Features(features) => features.width(),
            Self::Before(_, cols) => *cols,
        }
    }

    /// The row of a node.
    fn row(&self, node: u32) -> u32 {
        match self {
            Self::Features(_) => node,
            Self::Before(rows, _) => match rows.places().is_by_number() {
                true => node,
                false => rows.places().place(node).map_or(NOWHERE, |place| place as u32),
            },
        }
    }

    fn copy(&self, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        match self {
            Self::Features(features) => {
                let ids: Vec<u32> = rows.map(|row| row as u32).collect();
                copy(*features, &ids, out)
            }
            Self::Before(all, _) => {
                all.copy(rows, out);
                Ok(())
            }
        }
    }

    fn expect_reads(&self, rows: Range<usize>) {
        match self {
            Self::Features(features) => features.expect_reads(rows),
            Self::Before(all, _) => all.expect_reads(rows),
        }
    }

    fn forget(&self, rows: Range<usize>) {
        match self {
            Self::Features(features) => features.forget(rows),
            Self::Before(all, _) => all.forget(rows),
        }
    }

    /// Reads the rows of `nodes`, which ascend, into `out`.
    fn read(&self, nodes: &[u32], out: &mut Vec<f32>) -> Result<()> {
        out.clear();
        out.resize(nodes.len() * self.cols(), 0.0);
        match self {
            Self::Features(features) => copy(*features, nodes, out),
            Self::Before(all, _) => all.gather(nodes, out),
        }
    }
}

impl SweptPass<'_> {
    /// Returns whether sweeps can make the sums of `pass`: attention reads the scores of a whole list first.
    pub fn can(pass: Pass) -> bool {
        !matches!(pass, Pass::Attention(_) | Pass::Propagation(_))
    }

    fn operator(&self) -> Option<Operator> {
        match self.pass {
            Pass::Linear(Linear { operator, .. }) => Some(operator),
            Pass::Max | Pass::Attention(_) | Pass::Propagation(_) => None,
        }
    }

    fn list(&self, node: u32) -> &[u32] {
        self.graph.csc().sources(node)
    }

    fn lists<'n>(&'n self, nodes: &'n [u32]) -> Result<Lists<'n>> {
        let inverse = |of: f32| if of > 0.0 { 1.0 / of } else { 0.0 };
        let weighted = self.graph.is_weighted();
        let nodes_of = || nodes.par_iter();
        let scales = match self.operator() {
            Some(Operator::Mean) if weighted => {
                let scale = |&node: &u32| {
                    let mut weights = vec![0.0; self.list(node).len()];
                    self.graph.copy_weights(node, &mut weights)?;
                    Ok(inverse(weights.iter().sum()))
                };
                Some(nodes_of().map(scale).collect::<Result<_>>()?)
            }
            Some(Operator::Mean) => {
                Some(nodes_of().map(|&node| inverse(self.list(node).len() as f32)).collect())
            }
            Some(Operator::Gcn) => {
                Some(nodes_of().map(|&node| inverse_root(self.graph, node)).collect())
            }
            Some(Operator::Sum) | None => None,
        };
        Ok(Lists { of: self, nodes, scales })
    }

    /// The factors of the nodes' own rows, where the pass adds those.
    fn own(&self, nodes: &[u32]) -> Option<Vec<f32>> {
        let factor = |&node: &u32| match self.list(node).is_empty() {
            true => 1.0,
            false => 1.0 / (self.graph.degree(node) as f32 + 1.0),
        };
        let own = self.operator() == Some(Operator::Gcn);
        own.then(|| nodes.par_iter().map(factor).collect())
    }
}

impl SweptLists for Lists<'_> {
    fn entries(&self, list: usize) -> &[u32] {
        self.of.list(self.nodes[list])
    }

    fn row(&self, entry: u32) -> u32 {
        self.of.rows.row(entry)
    }

    /// The factors of [`super::propagation`], multiplied in their order.
    fn factor(&self, list: usize, position: usize, entry: u32) -> f32 {
        let scale = self.scales.as_ref().map_or(1.0, |scales| scales[list]);
        let weight = self.of.graph.weight(self.nodes[list], position).unwrap_or(1.0);
        match self.of.operator() {
            Some(Operator::Gcn) => scale * inverse_root(self.of.graph, entry) * weight,
            _ => weight * scale,
        }
    }
}

impl Sweeper for SweptPass<'_> {
    fn file_bytes(&self) -> u64 {
        match self.rows {
            Coming::Features(features) => features.file_bytes(),
            Coming::Before(rows, _) => rows.file_bytes(),
        }
    }

    fn shape(&self) -> (usize, usize) {
        (self.rows.len(), self.rows.cols())
    }

    fn adds_up(&self, node: u32) -> bool {
        self.operator() == Some(Operator::Gcn) || !self.list(node).is_empty()
    }

    fn node_bytes(&self, node: u32) -> usize {
        // A sum, its factor, or that of the own row too, its place in the list; the list.
        4 * self.rows.cols() + 16 + 4 * self.list(node).len()
    }

    fn sweep(&self, nodes: &[u32], memory: &mut SweepMemory) -> Result<()> {
        let cols = self.rows.cols();
        let lists = self.lists(nodes)?;
        let mut sums = std::mem::take(&mut memory.sums);
        let mut sweep = match self.own(nodes) {
            Some(factors) => {
                self.rows.read(nodes, &mut sums)?;
                ListSweep::of_own(&lists, cols, sums, &factors)
            }
            None => {
                let how = if self.pass == Pass::Max { Reduce::Max } else { Reduce::Sum };
                ListSweep::new(how, &lists, (nodes.len(), cols), sums)
            }
        };
        // A chunk is added while the next one is read.
        let [now, next] = &mut memory.chunks;
        let each = (now.capacity() / cols.max(1)).clamp(1, self.rows.len().max(1));
        let end_of = |chunk: usize| self.rows.len().min(chunk * each);
        let rows_of = |chunk: usize| end_of(chunk)..end_of(chunk + 1);
        let read = |chunk: usize, values: &mut Vec<f32>| {
            let rows = rows_of(chunk);
            self.rows.expect_reads(rows_of(chunk + 1));
            values.resize(rows.len() * cols, 0.0);
            self.rows.copy(rows.clone(), values)?;
            self.rows.forget(rows);
            Ok(())
        };
        let chunks = self.rows.len().div_ceil(each);
        if chunks > 0 {
            read(0, now)?;
        }
        for chunk in 0..chunks {
            let first = rows_of(chunk).start as u32;
            let ((), ahead) = rayon::join(
                || sweep.add(&lists, Chunk { first, values: now }),
                || if chunk + 1 < chunks { read(chunk + 1, next) } else { Ok(()) },
            );
            ahead?;
            std::mem::swap(now, next);
        }
        memory.sums = sweep.finish().map_err(|list| {
            let node = nodes[list];
            Error::invalid(format!(
                "in-neighbors of node {node} do not ascend, or one of them has no row to read"
            ))
        })?;
        Ok(())
    }
}
