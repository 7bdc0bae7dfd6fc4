//! Layer-wise inference on a heterogeneous graph, over the sampled edge types: each layer over all
//! nodes of each type, a range at a time; the last one over the requested nodes.

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_nn::models::heterogeneous::HeteroModel;
use gnarl_nn::{Mode, Params, RelBlock, Span, Tape, Tensor, Var};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroBatch, HeteroFanouts, HeteroSampler, HeteroScratch};

use super::RANGE_NODES;
use crate::data::hetero_graph::HeteroGraph;
use crate::embeddings::Rows;

/// The embeddings of nodes of each of some types.
///
/// # Errors
/// If shapes disagree.
pub(crate) fn embeddings(
    model: &dyn HeteroModel,
    params: &Params,
    tables: &[Rows<'_>],
    (graph, fanouts): (&HeteroGraph, &HeteroFanouts),
    wanted: &[(usize, Vec<u32>)],
) -> Result<Vec<Tensor>> {
    Layers { model, params, tables, graph, fanouts }.logits(wanted, RANGE_NODES)
}

struct Layers<'a> {
    model: &'a dyn HeteroModel,
    params: &'a Params,
    tables: &'a [Rows<'a>],
    graph: &'a HeteroGraph,
    fanouts: &'a HeteroFanouts,
}

impl Layers<'_> {
    /// The logits of some nodes of each of some types, `range` nodes at a time.
    fn logits(&self, wanted: &[(usize, Vec<u32>)], range: usize) -> Result<Vec<Tensor>> {
        let graph = &self.graph.graph;
        let mut scratch = HeteroScratch::new();
        let types = graph.schema().node_types().len();
        // Output of the previous layer for all nodes of each type.
        let mut before: Option<Vec<Tensor>> = None;
        let last = self.model.num_layers() - 1;
        // The last layer is the seeds' hop.
        let sampler = |layer: usize| {
            HeteroSampler::new(graph, &self.fanouts.in_full(last - layer), Rule::Uniform)
        };
        for layer in 0..last {
            let sampler = sampler(layer)?;
            let mut after = Vec::with_capacity(types);
            for node_type in 0..types {
                let all: Vec<u32> = (0..graph.num_nodes(node_type) as u32).collect();
                let rows = self.layer(
                    (layer, node_type, &all),
                    range,
                    before.as_deref(),
                    &sampler,
                    &mut scratch,
                )?;
                after.push(rows);
            }
            before = Some(after);
        }
        let sampler = sampler(last)?;
        let of_type = |(node_type, nodes): &(usize, Vec<u32>)| {
            let target = (last, *node_type, &nodes[..]);
            self.layer(target, range, before.as_deref(), &sampler, &mut scratch)
        };
        wanted.iter().map(of_type).collect()
    }

    /// The output of a layer for some nodes of a type.
    fn layer(
        &self,
        (layer, node_type, nodes): (usize, usize, &[u32]),
        range: usize,
        before: Option<&[Tensor]>,
        sampler: &HeteroSampler,
        scratch: &mut HeteroScratch,
    ) -> Result<Tensor> {
        let graph = &self.graph.graph;
        let name = &graph.schema().node_types()[node_type];
        let mut out: Option<Tensor> = None;
        for (i, nodes_now) in nodes.chunks(range).enumerate() {
            let batch = sampler.sample(name, nodes_now, Key::new(0), scratch)?;
            let fused = batch.fuse(graph)?;
            let block = RelBlock::new(&fused.blocks[0], &fused.segments, graph.schema())?;
            let mut tape = Tape::new(self.params, Mode::Eval);
            let x = self.input(&mut tape, &batch, block.sources(), before)?;
            let y = self.model.layer(&mut tape, layer, &block, x)?;
            let y = tape.gather_rows(y, &fused.targets);
            let y = tape.take(y);
            let width = y.cols();
            let all = out.get_or_insert_with(|| Tensor::zeros(nodes.len(), width));
            let start = i * range * width;
            all.data_mut()[start..start + y.data().len()].copy_from_slice(y.data());
        }
        Ok(out.unwrap_or_else(|| Tensor::zeros(0, 0)))
    }

    /// The inputs of a batch: features and embeddings of its input nodes, or the output of the
    /// previous layer.
    fn input<'b>(
        &self,
        tape: &mut Tape<'b>,
        batch: &HeteroBatch,
        spans: &'b [Span],
        before: Option<&[Tensor]>,
    ) -> Result<Var> {
        let Some(before) = before else {
            let features = self.graph.features(&batch.input_nodes)?;
            let embeddings = self.graph.embedding_types().zip(self.tables);
            let embeddings =
                embeddings.map(|((number, _), table)| table.gather(&batch.ids[number]));
            let embeddings = embeddings.collect::<Result<Vec<_>>>()?;
            let (rows, _) = self.graph.leaves(tape, &features, embeddings);
            return self.model.input(tape, spans, &rows);
        };
        let width = before.iter().map(Tensor::cols).max().unwrap_or(0);
        let mut parts = Vec::with_capacity(before.len());
        for (rows, nodes) in before.iter().zip(&batch.input_nodes) {
            parts.push(match nodes.is_empty() {
                true => None,
                false => {
                    let all = tape.dense(rows.clone());
                    Some(tape.gather_rows(all, nodes))
                }
            });
        }
        if spans.iter().any(|span| parts[span.weight].is_none()) {
            return Err(Error::invalid("a batch lacks inputs of a node type"));
        }
        Ok(tape.interleave(&parts, spans, width))
    }
}
