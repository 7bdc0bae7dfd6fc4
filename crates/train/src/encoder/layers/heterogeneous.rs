//! Inference over a heterogeneous graph, over the sampled edge types.

use std::sync::{Mutex, PoisonError};

use gnarl_common::rng::Key;
use gnarl_common::{Error, Result};
use gnarl_infer::Layers;
use gnarl_infer::rows::Before;
use gnarl_nn::models::heterogeneous::HeteroModel;
use gnarl_nn::{Mode, Params, RelBlock, Tape, Tensor, Var};
use gnarl_sample::parts::Rule;
use gnarl_sample::{HeteroFanouts, HeteroScratch};

use super::list_lengths::ListLengths;
use crate::data::batch::Input;
use crate::data::hetero_graph::{HeteroGraph, HeteroNeighbors};
use crate::embeddings::Rows;

/// The layers of a heterogeneous model: each over all nodes of each type that later layers read.
pub(in crate::encoder) struct HeteroLayers<'a> {
    model: &'a dyn HeteroModel,
    params: &'a Params,
    tables: &'a [Rows<'a>],
    graph: &'a HeteroGraph,
    /// Of each layer, over all neighbors of one hop.
    samplers: Vec<HeteroNeighbors>,
    /// Edge types that end in each node type.
    incoming: Vec<Vec<usize>>,
    width: usize,
    /// Of each node type of a partitioned graph.
    lengths: Option<Vec<ListLengths>>,
    /// Memory of threads that read lists of parts.
    scratches: Mutex<Vec<HeteroScratch>>,
}

/// The gathered inputs of a range.
pub(in crate::encoder) struct Inputs {
    block: RelBlock,
    targets: Vec<u32>,
    rows: Gathered,
}

enum Gathered {
    /// Features by node type, and embeddings of the types without.
    First(Vec<Option<Input>>, Vec<Tensor>),
    /// The output of the layer before, by node type.
    Before(Vec<Option<Tensor>>),
}

impl<'a> HeteroLayers<'a> {
    /// The first `depth` layers of `model` over `graph` and the edge types of `fanouts`; the widest row of a layer has `width` values.
    ///
    /// # Errors
    /// If an edge type of the fan-outs is not in the graph.
    pub fn new(
        (model, params): (&'a dyn HeteroModel, &'a Params),
        tables: &'a [Rows<'a>],
        (graph, fanouts): (&'a HeteroGraph, &HeteroFanouts),
        (depth, width): (usize, usize),
    ) -> Result<Self> {
        let last = model.num_layers() - 1;
        // The last layer is the seeds' hop.
        let sampler = |layer: usize| graph.sampler(&fanouts.in_full(last - layer), Rule::Uniform);
        let schema = graph.schema();
        let into = |node_type: usize| {
            let types = 0..schema.edge_types().len();
            types.filter(|&edge_type| schema.ends(edge_type).1 == node_type).collect()
        };
        Ok(Self {
            samplers: (0..depth).map(sampler).collect::<Result<_>>()?,
            incoming: (0..schema.node_types().len()).map(into).collect(),
            model,
            params,
            tables,
            graph,
            width,
            lengths: graph.parts().map(|parts| {
                parts.nodes.iter().map(|nodes| ListLengths::new(nodes.num_nodes())).collect()
            }),
            scratches: Mutex::default(),
        })
    }

    /// Calls `visit` with the inputs of `nodes` of parts, whose lists are read.
    fn inputs_of_parts(
        &self,
        layer: usize,
        (of, nodes): (usize, &[u32]),
        lengths: &[ListLengths],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        let unused = || self.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = unused().pop().unwrap_or_default();
        let batch = self.samplers[layer].sample(&[(of, nodes)], &[], Key::new(0), &mut scratch)?;
        unused().push(scratch);
        let mut counts = vec![0; nodes.len()];
        for &edge_type in &self.incoming[of] {
            let ends = batch.blocks[0].relations()[edge_type].indptr().windows(2);
            counts.iter_mut().zip(ends).for_each(|(count, ends)| *count += ends[1] - ends[0]);
        }
        nodes.iter().zip(counts).for_each(|(&node, count)| lengths[of].note(node, count));
        for (number, inputs) in batch.input_nodes.iter().enumerate() {
            inputs.iter().for_each(|&node| visit(number, node));
        }
        Ok(())
    }
}

impl Layers for HeteroLayers<'_> {
    type Inputs = Inputs;
    type Scratch = HeteroScratch;

    fn num_layers(&self) -> usize {
        self.samplers.len()
    }

    fn num_nodes(&self) -> Vec<usize> {
        (0..self.incoming.len()).map(|number| self.graph.num_nodes(number)).collect()
    }

    fn inputs_of(
        &self,
        layer: usize,
        of: usize,
        nodes: &[u32],
        visit: &mut dyn FnMut(usize, u32),
    ) -> Result<()> {
        if let Some(lengths) = &self.lengths {
            return self.inputs_of_parts(layer, (of, nodes), lengths, visit);
        }
        let graph = self.graph.lists()?;
        nodes.iter().for_each(|&node| visit(of, node));
        for &edge_type in &self.incoming[of] {
            let from = graph.schema().ends(edge_type).0;
            let csc = graph.csc(edge_type);
            let sources = nodes.iter().flat_map(|&node| csc.sources(node));
            sources.for_each(|&source| visit(from, source));
        }
        Ok(())
    }

    fn num_inputs(&self, _: usize, of: usize, node: u32) -> usize {
        if let Some(lengths) = &self.lengths {
            return lengths[of].num_inputs(node);
        }
        let Ok(graph) = self.graph.lists() else { return 1 };
        let count = |&edge_type: &usize| graph.csc(edge_type).sources(node).len();
        1 + self.incoming[of].iter().map(count).sum::<usize>()
    }

    /// Of each input, its gathered row, its projection and the value of its edge.
    fn range_bytes(&self, layer: usize, of: usize, node: u32) -> usize {
        12 * self.width * self.num_inputs(layer, of, node)
    }

    fn gather(
        &self,
        layer: usize,
        of: usize,
        nodes: &[u32],
        before: Option<&Before>,
        scratch: &mut HeteroScratch,
    ) -> Result<Inputs> {
        let batch = self.samplers[layer].sample(&[(of, nodes)], &[], Key::new(0), scratch)?;
        let fused = batch.fuse_alone()?;
        let block = RelBlock::new(&fused.blocks[0], &fused.segments, self.graph.schema())?;
        let rows = match before {
            None => {
                let tables = self.graph.embedding_types().zip(self.tables);
                let embeddings =
                    tables.map(|((number, _), table)| table.gather(&batch.ids[number]));
                let embeddings = embeddings.collect::<Result<_>>()?;
                Gathered::First(self.graph.features(&batch.input_nodes)?, embeddings)
            }
            Some(before) => {
                let of_type = |(number, nodes): (usize, &Vec<u32>)| match nodes.is_empty() {
                    true => Ok(None),
                    false => before.gather(number, nodes).map(Some),
                };
                let types = batch.input_nodes.iter().enumerate();
                Gathered::Before(types.map(of_type).collect::<Result<_>>()?)
            }
        };
        Ok(Inputs { block, targets: fused.targets, rows })
    }

    fn compute(&self, layer: usize, inputs: Inputs) -> Result<Tensor> {
        let Inputs { block, targets, rows } = inputs;
        let mut tape = Tape::new(self.params, Mode::Eval);
        let spans = block.sources();
        let x = match rows {
            Gathered::First(features, embeddings) => {
                let (rows, _) = self.graph.leaves(&mut tape, &features, embeddings);
                self.model.input(&mut tape, spans, &rows)?
            }
            Gathered::Before(rows) => {
                let width = rows.iter().flatten().map(Tensor::cols).max().unwrap_or(0);
                let put = |rows: Option<Tensor>| rows.map(|rows| tape.dense(rows));
                let parts: Vec<Option<Var>> = rows.into_iter().map(put).collect();
                if spans.iter().any(|span| parts[span.weight].is_none()) {
                    return Err(Error::invalid("a batch lacks inputs of a node type"));
                }
                tape.interleave(&parts, spans, width)
            }
        };
        let y = self.model.layer(&mut tape, layer, &block, x)?;
        let y = tape.gather_rows(y, &targets);
        Ok(tape.take(y))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gnarl_config::RunConfig;
    use gnarl_engine::local;
    use gnarl_graph::generate::{HeteroOptions, heterogeneous};
    use gnarl_infer::Budget;
    use gnarl_infer::order::NodeOrder;
    use gnarl_infer::rows::{Cache, CacheMemory};
    use gnarl_nn::models::ModelConfig;
    use gnarl_nn::models::heterogeneous as models;
    use gnarl_store::cache::CachePolicy;

    use super::*;
    use crate::encoder::course::Course;

    const HIDDEN: usize = 8;
    const OUT: usize = 5;

    /// The rows of all layers at once, over all nodes as one batch: of each type, in the order of nodes.
    fn whole(
        (model, params): (&dyn HeteroModel, &Params),
        tables: &[Rows<'_>],
        graph: &HeteroGraph,
        all: &[(usize, Vec<u32>)],
    ) -> Tensor {
        let fanouts = HeteroFanouts::new(&[-1, -1]);
        let sampler = graph.sampler(&fanouts, Rule::Uniform).unwrap();
        let seeds: Vec<(usize, &[u32])> = all.iter().map(|(of, nodes)| (*of, &**nodes)).collect();
        let mut scratch = HeteroScratch::new();
        let batch = sampler.sample(&seeds, &[], Key::new(0), &mut scratch).unwrap();
        let fused = batch.fuse_alone().unwrap();
        let blocks = RelBlock::all(&fused, graph.schema()).unwrap();
        let mut tape = Tape::new(params, Mode::Eval);
        let features = graph.features(&batch.input_nodes).unwrap();
        let embeddings = graph.embedding_types().zip(tables);
        let embeddings = embeddings.map(|((of, _), table)| table.gather(&batch.ids[of]).unwrap());
        let (rows, _) = graph.leaves(&mut tape, &features, embeddings.collect::<Vec<_>>());
        let y = model.forward(&mut tape, &blocks, &rows).unwrap();
        let y = tape.gather_rows(y, &fused.targets);
        tape.take(y)
    }

    #[test]
    fn every_model_is_inferred_as_over_the_whole_graph() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            HeteroOptions { nodes: 150, edges: 900, communities: 4, ..HeteroOptions::default() };
        let made = heterogeneous(&options, &dir.path().join("graph")).unwrap();
        let graph = HeteroGraph::open(&made.dataset, &RunConfig::default()).unwrap();
        let types = 0..graph.schema().node_types().len();
        let all: Vec<(usize, Vec<u32>)> =
            types.map(|of| (of, (0..graph.num_nodes(of) as u32).collect())).collect();
        for name in models::names() {
            let config = ModelConfig {
                name: name.to_string(),
                hidden: HIDDEN,
                out_dim: OUT,
                heads: 2,
                ..ModelConfig::default()
            };
            let (schema, sources) = (graph.schema(), graph.sources());
            let (model, params) = models::build(&config, schema, &sources, Key::new(3)).unwrap();
            let table = |(of, _): (usize, &str)| {
                let values = graph.num_nodes(of) * config.input_width();
                let values: Vec<f32> =
                    (0..values as u64).map(|i| Key::new(5).normal(i) as f32).collect();
                Rows { width: config.input_width(), values: values.into() }
            };
            let tables: Vec<Rows<'_>> = graph.embedding_types().map(table).collect();
            let model = (&*model, &params);
            let expected = whole(model, &tables, &graph, &all);
            let fanouts = HeteroFanouts::new(&[-1, -1]);
            let layers =
                HeteroLayers::new(model, &tables, (&graph, &fanouts), (2, HIDDEN)).unwrap();
            let infer = |course: &Course<'_>, budget: u64| {
                let mut found = Vec::new();
                let keep = |_: usize, _: &[u32], rows: &Tensor| {
                    found.extend_from_slice(rows.data());
                    Ok(())
                };
                let names = graph.schema().node_types();
                course.run((&layers, names), &all, &Budget::new(budget), keep).unwrap();
                found
            };
            let roomy = infer(&Course::default(), 1 << 30);
            let cache = Cache::new(CachePolicy::Fifo, CacheMemory::Share(0.2));
            let cache = Cache { chunk_rows: 8.try_into().unwrap(), ..cache };
            let order = NodeOrder::Degree;
            let course = Course { order, cache: Some(&cache), ..Course::default() };
            let tight = infer(&course, 3000);
            let by_ranks = local::run(3, Duration::from_secs(60), |rank| {
                Ok(infer(&Course { comm: Some(rank), ..course }, 3000))
            });
            let by_ranks = by_ranks.unwrap().swap_remove(0);
            assert_eq!(by_ranks.len(), roomy.len());
            assert_eq!(roomy.len(), expected.data().len());
            for (i, a) in expected.data().iter().enumerate() {
                for b in [roomy[i], tight[i], by_ranks[i]] {
                    assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{name}: {a} {b}");
                }
            }
        }
    }
}
