//! Propagations of staged inference: the sums of nodes' in-neighbors, read where their rows are.
//!
//! A block would copy every source's row first, for each range that reads it. Rows of the layer before, and features
//! stored as they are read, are added up in place instead.

use std::borrow::Cow;

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_graph::blocks::Block;
use gnarl_infer::rows::Before;
use gnarl_nn::Tensor;
use gnarl_nn::models::stages::{Linear, Pass};
use gnarl_nn::ops::list_sums::{self, Factors, RowLists, RowTable};
use gnarl_nn::ops::pass::Operator;
use gnarl_sample::{FullSampler, SampleGraph, Sampler, Scratch};
use gnarl_store::FeatureStore;
use rayon::prelude::*;

use super::features::dense;

/// Lists filled per task.
const TASK_LISTS: usize = 256;

/// The sums of messages over a graph.
pub(super) struct Propagation<'a> {
    graph: &'a SampleGraph,
    features: &'a dyn FeatureStore,
    sampler: FullSampler,
}

/// Lists of some nodes.
struct Lists<'a> {
    indptr: Vec<u32>,
    rows: Cow<'a, [u32]>,
    /// The row of each node itself, where the pass reads it apart from the list.
    own: Vec<u32>,
}

impl<'a> Propagation<'a> {
    /// Sums over `graph`, whose nodes have `features`.
    ///
    /// # Errors
    /// If the graph cannot be sampled.
    pub fn new(graph: &'a SampleGraph, features: &'a dyn FeatureStore) -> Result<Self> {
        Ok(Self { graph, features, sampler: FullSampler::new(graph, 1)? })
    }

    /// Bytes of memory that the list of a node takes in a range where rows of `copied` values are copied first.
    pub fn list_bytes(&self, node: u32, copied: usize) -> usize {
        // A row number and a factor, and a copied row.
        (8 + 4 * copied) * (1 + self.graph.csc().sources(node).len())
    }

    /// The sums of `pass` for `nodes`, over the first `cols` columns of the rows `before`.
    ///
    /// # Errors
    /// If lists are damaged, or a source has no row.
    pub fn of_rows(
        &self,
        pass: Pass,
        nodes: &[u32],
        (before, cols): (&Before, usize),
    ) -> Result<Tensor> {
        let Some((needed, data)) = before.table(0) else {
            return Err(Error::invalid("no rows of the layer before"));
        };
        let table = RowTable::new(data, before.width(0), cols);
        let place = |node: u32| {
            let place = needed.place(node).map(|place| place as u32);
            place.ok_or_else(|| Error::invalid(format!("node {node} has no row to read")))
        };
        match needed.is_by_number() {
            true => self.sum(pass, nodes, table, self.in_place(pass, nodes, table.rows())?),
            false => self.sum(pass, nodes, table, self.by_place(pass, nodes, place)?),
        }
    }

    /// The sums of `pass` for `nodes`, over features.
    ///
    /// # Errors
    /// If lists are damaged, or features cannot be read.
    pub fn of_features(&self, pass: Pass, nodes: &[u32], scratch: &mut Scratch) -> Result<Tensor> {
        let width = self.features.width();
        if let Some(stored) = self.features.stored() {
            let table = RowTable::stored(stored, width);
            return self.sum(pass, nodes, table, self.in_place(pass, nodes, table.rows())?);
        }
        // Rows that are widened or normalized on the way are so once for each range.
        let batch = self.sampler.sample(nodes, Key::new(0), scratch)?;
        let rows = dense(self.features, &batch.input_nodes)?;
        self.of_copies(pass, nodes, &batch.blocks[0], (&rows, width))
    }

    /// The sums of `pass` for `nodes`, over the first `cols` columns of rows that are read by chunks; and the rows that
    /// were read, those of `nodes` first.
    ///
    /// # Errors
    /// As [`Propagation::of_rows`], or if chunks cannot be read.
    pub fn of_chunks(
        &self,
        pass: Pass,
        nodes: &[u32],
        (before, cols): (&Before, usize),
        scratch: &mut Scratch,
    ) -> Result<(Tensor, Tensor)> {
        let batch = self.sampler.sample(nodes, Key::new(0), scratch)?;
        let rows = before.gather(0, &batch.input_nodes)?;
        let passed = self.of_copies(pass, nodes, &batch.blocks[0], (&rows, cols))?;
        Ok((passed, rows))
    }

    /// The sums of `pass` for `nodes`, over the first `cols` columns of the rows of a block's sources.
    fn of_copies(
        &self,
        pass: Pass,
        nodes: &[u32],
        block: &Block,
        (rows, cols): (&Tensor, usize),
    ) -> Result<Tensor> {
        let table = RowTable::new(rows.data(), rows.cols(), cols);
        let lists = match takes_own(pass) {
            false => Lists {
                indptr: block.indptr().to_vec(),
                rows: block.indices().into(),
                own: if reads_own(pass) { (0..nodes.len() as u32).collect() } else { Vec::new() },
            },
            true => {
                let own = |list: usize| (list as u32, block.sources(list));
                with_own(nodes.len(), own)
            }
        };
        self.sum(pass, nodes, table, lists)
    }

    /// Lists of `nodes` where the row of a node has its number.
    fn in_place(&self, pass: Pass, nodes: &[u32], rows: usize) -> Result<Lists<'_>> {
        let known = |node: u32| match (node as usize) < rows {
            true => Ok(node),
            false => Err(Error::invalid(format!("node {node} of {rows} is in a neighbor list"))),
        };
        let adjacent = nodes.last().zip(nodes.first());
        // Another order of nodes may begin and end like this one.
        let adjacent = adjacent.is_some_and(|(last, first)| {
            last.checked_sub(*first).is_some_and(|more| more as usize + 1 == nodes.len())
        }) && nodes.is_sorted();
        if takes_own(pass) || !adjacent {
            return self.by_place(pass, nodes, known);
        }
        // The graph's own lists are those of the range.
        let indptr = self.indptr(pass, nodes)?;
        let csc = self.graph.csc();
        let start = csc.indptr.get(nodes[0].into()) as usize;
        let sources = &csc.indices[start..start + indptr[nodes.len()] as usize];
        sources.par_iter().copied().try_for_each(|source| known(source).map(drop))?;
        let own = if reads_own(pass) { nodes.to_vec() } else { Vec::new() };
        Ok(Lists { indptr, rows: sources.into(), own })
    }

    /// Lists of `nodes` whose rows are at the places that `place` says.
    fn by_place(
        &self,
        pass: Pass,
        nodes: &[u32],
        place: impl Fn(u32) -> Result<u32> + Sync,
    ) -> Result<Lists<'_>> {
        let indptr = self.indptr(pass, nodes)?;
        let mut rows = vec![0; indptr[nodes.len()] as usize];
        for_each_list(&indptr, &mut rows, |list, rows| {
            let mut rows = rows.iter_mut();
            if takes_own(pass)
                && let Some(row) = rows.next()
            {
                *row = place(nodes[list])?;
            }
            for (row, &source) in rows.zip(self.graph.sources(nodes[list])?) {
                *row = place(source)?;
            }
            Ok(())
        })?;
        let own = if reads_own(pass) { nodes } else { &[] };
        let own = own.iter().map(|&node| place(node)).collect::<Result<_>>()?;
        Ok(Lists { indptr, rows: rows.into(), own })
    }

    /// Offsets of the lists of `nodes`, which have the node itself where `pass` takes its row.
    fn indptr(&self, pass: Pass, nodes: &[u32]) -> Result<Vec<u32>> {
        let own = usize::from(takes_own(pass));
        let mut end = 0;
        let mut indptr = vec![0];
        for &node in nodes {
            end += own + self.graph.sources(node)?.len();
            let end = u32::try_from(end);
            indptr.push(end.map_err(|_| Error::invalid(format!("node {node}: too many edges")))?);
        }
        Ok(indptr)
    }

    fn sum(&self, pass: Pass, nodes: &[u32], table: RowTable<'_>, of: Lists<'_>) -> Result<Tensor> {
        let lists = RowLists { indptr: &of.indptr, rows: &of.rows };
        let operator = match pass {
            Pass::Max => return Ok(list_sums::max(table, lists)),
            Pass::Attention(attention) => return Ok(attention.of_lists(table, &of.own, lists)),
            Pass::Linear(Linear { operator, .. }) => operator,
            Pass::Propagation(_) => {
                return Err(Error::invalid("attention that is computed once is of training alone"));
            }
        };
        let weighted = self.graph.is_weighted();
        let factors = match (operator, weighted) {
            (Operator::Sum, false) => return Ok(list_sums::sum(table, lists, Factors::None)),
            (Operator::Mean, false) => {
                let inverse =
                    |w: &[u32]| if w[0] == w[1] { 0.0 } else { 1.0 / (w[1] - w[0]) as f32 };
                let each: Vec<f32> = of.indptr.windows(2).map(inverse).collect();
                return Ok(list_sums::sum(table, lists, Factors::OfList(&each)));
            }
            (Operator::Sum | Operator::Mean | Operator::Gcn, _) => {
                let mut factors = vec![0.0; of.rows.len()];
                for_each_list(&of.indptr, &mut factors, |list, factors| {
                    self.factors(operator, nodes[list], factors)
                })?;
                factors
            }
        };
        Ok(list_sums::sum(table, lists, Factors::OfEntry(&factors)))
    }

    /// The factors of a node's list, multiplied in the order of [`gnarl_nn::ops::pass::Passing`].
    fn factors(&self, operator: Operator, node: u32, factors: &mut [f32]) -> Result<()> {
        let graph = self.graph;
        match operator {
            Operator::Sum => graph.copy_weights(node, factors).map(drop),
            Operator::Mean => {
                graph.copy_weights(node, factors)?;
                let total: f32 = factors.iter().sum();
                let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
                factors.iter_mut().for_each(|factor| *factor *= scale);
                Ok(())
            }
            Operator::Gcn => {
                let Some((own, edges)) = factors.split_first_mut() else { return Ok(()) };
                let weighted = graph.copy_weights(node, edges)?;
                *own = if edges.is_empty() { 1.0 } else { 1.0 / (graph.degree(node) as f32 + 1.0) };
                let to = inverse_root(graph, node);
                for (factor, &source) in edges.iter_mut().zip(graph.sources(node)?) {
                    let weight = if weighted { *factor } else { 1.0 };
                    *factor = to * inverse_root(graph, source) * weight;
                }
                Ok(())
            }
        }
    }
}

/// `1 / √(d + 1)` of a node with d in-neighbors.
pub(super) fn inverse_root(graph: &SampleGraph, node: u32) -> f32 {
    1.0 / (graph.degree(node) as f32 + 1.0).sqrt()
}

/// Returns whether a node's own row is the first of its list.
fn takes_own(pass: Pass) -> bool {
    matches!(pass, Pass::Linear(Linear { operator: Operator::Gcn, .. }))
}

/// Returns whether a pass reads a node's own row apart from its list.
fn reads_own(pass: Pass) -> bool {
    matches!(pass, Pass::Attention(_))
}

/// Lists that begin with a row of their own.
fn with_own<'b>(lists: usize, of: impl Fn(usize) -> (u32, &'b [u32])) -> Lists<'b> {
    let (mut indptr, mut rows) = (vec![0], Vec::new());
    for list in 0..lists {
        let (own, sources) = of(list);
        rows.push(own);
        rows.extend_from_slice(sources);
        indptr.push(rows.len() as u32);
    }
    Lists { indptr, rows: rows.into(), own: Vec::new() }
}

/// Calls `fill` with each list and its entries in `all`, on all threads.
fn for_each_list<T: Send>(
    indptr: &[u32],
    all: &mut [T],
    fill: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let lists = indptr.len() - 1;
    let mut tasks = Vec::with_capacity(lists.div_ceil(TASK_LISTS));
    let mut rest = all;
    for first in (0..lists).step_by(TASK_LISTS) {
        let end = lists.min(first + TASK_LISTS);
        let (task, after) = rest.split_at_mut((indptr[end] - indptr[first]) as usize);
        tasks.push((first..end, task));
        rest = after;
    }
    tasks.into_par_iter().try_for_each(|(lists, mut entries)| {
        for list in lists {
            let (own, after) = entries.split_at_mut((indptr[list + 1] - indptr[list]) as usize);
            fill(list, own)?;
            entries = after;
        }
        Ok(())
    })
}
