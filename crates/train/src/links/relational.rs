//! Rows that a model with types puts out: every relation is an edge type of the message graph, and so is
//! every relation turned round (Schlichtkrull et al., "Modeling Relational Data with Graph
//! Convolutional Networks", 2018, section 4). Nodes without features have learnt rows.

use std::sync::{Mutex, PoisonError};

use gnarl_engine::Communicator;
use gnarl_graph::rng::Key;
use gnarl_graph::{Csc, Dataset, Result, Triple};
use gnarl_nn::decoders::LinkBatch;
use gnarl_nn::losses::Loss;
use gnarl_nn::models::ModelConfig;
use gnarl_nn::models::typed::{self, TypedModel};
use gnarl_nn::{Mode, Params, ParamsBuilder, RelBlock, Tape, Tensor};
use gnarl_sample::{Scratch, TypedBatch, TypedGraph, TypedSampler, TypedScratch};
use gnarl_store::MappedFeatures;

use super::batches::Batches;
use super::data::Edges;
use super::encoder::{Encoder, Targets};
use super::leakage::{Seen, count};
use super::{Links, evaluate};
use crate::config::{Leakage, RunConfig};
use crate::embeddings::Table;
use crate::evaluate::{Evaluation, by_first};
use crate::learner::{BatchLoss, Counts, Gradients, Inputs, Learner};
use crate::pipeline::{Input, Job};
use crate::state::TrainState;
use crate::strategy::{Session, gradient};
use crate::typed::{TypedTaskGraph, fanouts, rows, table};

/// The models that are encoders of this kind.
pub(super) const MODELS: [&str; 4] = ["rgcn", "rgat", "hgt", "hetero"];

/// A model and the graph it hears neighbours over.
pub(super) struct RelationalEncoder {
    model: Box<dyn TypedModel>,
    graph: TypedTaskGraph,
    relations: usize,
}

impl RelationalEncoder {
    /// The model of `config`, whose rows are `width` wide, and its parameters added to `params`.
    ///
    /// # Errors
    /// If sizes are impossible, or features damaged.
    pub fn new(
        config: &RunConfig,
        dataset: &Dataset,
        edges: &Edges,
        width: usize,
        params: &mut ParamsBuilder,
    ) -> Result<Self> {
        let features = dataset.features(&edges.node_type)?;
        let features = features.map(|found| MappedFeatures::new(found, config.dataset.normalize));
        let graph = TypedTaskGraph::of_messages(message_graph(edges)?, features.transpose()?);
        let sizes = ModelConfig { out_dim: width, ..config.model.clone() };
        let model = typed::add(&sizes, graph.graph.schema(), &graph.sources(), params)?;
        Ok(Self { model, graph, relations: edges.relations })
    }

    /// The learnt rows of nodes, if they have no features.
    pub fn table(&self, config: &RunConfig, nodes: usize) -> Result<Option<Table>> {
        let mut learnt = self.graph.learnt();
        learnt.next().map(|(_, name)| table(config, name, nodes as u64)).transpose()
    }
}

/// The training edges, an edge type for each relation and one for its reverse.
fn message_graph(edges: &Edges) -> Result<TypedGraph> {
    let (name, train) = (&edges.node_type, &edges.train);
    let mut of = vec![Vec::new(); 2 * edges.relations];
    for i in 0..train.len() {
        let relation = train.relations[i] as usize;
        of[relation].push((train.heads[i], train.tails[i]));
        of[relation + edges.relations].push((train.tails[i], train.heads[i]));
    }
    let mut graph = TypedGraph::new().with_nodes(name, edges.nodes)?;
    for (number, mut pairs) in of.into_iter().enumerate() {
        pairs.sort_unstable_by_key(|&(source, destination)| (destination, source));
        pairs.dedup();
        let relation = match number.checked_sub(edges.relations) {
            None => format!("relation-{number}"),
            Some(number) => format!("reverse-{number}"),
        };
        let triple = Triple { src: name.clone(), rel: relation, dst: name.clone() };
        graph = graph.with_edges(&triple, Csc::from_edges(edges.nodes, &pairs))?;
    }
    Ok(graph)
}

impl Encoder for RelationalEncoder {
    fn edge_types(&self, relation: u32) -> [usize; 2] {
        [relation as usize, relation as usize + self.relations]
    }

    fn rows(&self, params: &Params, tables: &[Table]) -> Result<Tensor> {
        let all: Vec<u32> = (0..self.graph.graph.num_nodes(0) as u32).collect();
        rows(self.model.as_ref(), params, tables, &self.graph, &all)
    }

    fn train(
        &self,
        links: &Links,
        session: &Session<'_>,
        rank: &dyn Communicator,
        state: TrainState,
    ) -> Result<TrainState> {
        gradient::train(session, &RelationalLearner::new(links, self)?, rank, state)
    }

    fn seen(&self, links: &Links) -> Result<Seen> {
        count(links, self, &RelationalLearner::new(links, self)?, |(_, batch)| {
            let (mut edges, ids) = (std::collections::HashSet::new(), &batch.ids[0]);
            for block in &batch.blocks {
                for (number, relation) in block.relations().iter().enumerate() {
                    for dst in 0..relation.num_dst() {
                        let sources = relation.sources(dst).iter();
                        edges.extend(sources.map(|&src| (number, ids[src as usize], ids[dst])));
                    }
                }
            }
            edges
        })
    }
}

/// A batch ready for compute.
struct Encoded {
    links: LinkBatch,
    blocks: Vec<RelBlock>,
    features: Vec<Option<Input>>,
    /// Ids of the input nodes whose rows are learnt: all or none.
    learnt: Vec<Vec<u64>>,
    edges: usize,
}

struct RelationalLearner<'a> {
    links: &'a Links,
    encoder: &'a RelationalEncoder,
    batches: Batches<'a>,
    sampler: TypedSampler,
    scratch: Mutex<TypedScratch>,
    loss: Box<dyn Loss>,
}

impl<'a> RelationalLearner<'a> {
    fn new(links: &'a Links, encoder: &'a RelationalEncoder) -> Result<Self> {
        links.config.sample.method.check_neighbours()?;
        let (fanouts, rule) = fanouts(&links.config)?;
        let sampler = TypedSampler::new(&encoder.graph.graph, &fanouts, rule)?;
        let (batches, loss) = (Batches::new(links)?, links.config.loss.build()?);
        Ok(Self { links, encoder, batches, sampler, scratch: Mutex::default(), loss })
    }
}

impl Learner for RelationalLearner<'_> {
    type Sampled = (LinkBatch, TypedBatch);
    type Batch = Encoded;

    fn epoch(&self, epoch: usize, rank: usize, size: usize) -> Vec<Job> {
        self.batches.epoch(epoch, rank, size)
    }

    fn sample(&self, job: &Job, _: &mut Scratch) -> Result<Self::Sampled> {
        let drawn = self.batches.draw(job);
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.encoder.graph.node_type();
        let mut batch = self.sampler.sample(name, &drawn.ids, job.key, &mut scratch)?;
        if self.links.config.task.leakage == Leakage::Remove {
            // Those of all ranks: a rank must not see what another is to find.
            let targets = Targets::of(&self.links.edges.train.at(&job.batch), self.encoder);
            batch.remove(|edge_type, src, dst| targets.contains(edge_type, src, dst));
        }
        Ok((drawn.batch, batch))
    }

    fn fetch(&self, _: &Job, (mut links, batch): Self::Sampled) -> Result<Encoded> {
        let graph = &self.encoder.graph;
        let fused = batch.fuse(&graph.graph)?;
        let blocks = RelBlock::all(&fused, graph.graph.schema())?;
        links.renumber(&fused.targets);
        let learnt = graph.learnt().map(|(number, _)| batch.ids[number].clone()).collect();
        let features = graph.features(&batch.input_nodes)?;
        Ok(Encoded { links, blocks, features, learnt, edges: batch.num_edges() })
    }

    fn compact(&self, prepared: &Encoded) {
        prepared.blocks.iter().for_each(RelBlock::prepare);
    }

    fn counts(&self, prepared: &Encoded) -> Counts {
        Counts { edges: prepared.edges as u64, seeds: prepared.links.heads.len() as u64 }
    }

    fn rows<'b>(&self, prepared: &'b Encoded) -> Vec<&'b [u64]> {
        prepared.learnt.iter().map(Vec::as_slice).collect()
    }

    fn gradient(
        &self,
        params: &Params,
        inputs: Inputs<'_, Encoded>,
        key: Key,
        gradients: &mut Gradients<'_>,
    ) -> Result<BatchLoss> {
        let Inputs { batch, rows, .. } = inputs;
        let mut tape = Tape::new(params, Mode::Train { key });
        let (rows, leaves) = self.encoder.graph.leaves(&mut tape, &batch.features, rows);
        let rows = self.encoder.model.forward(&mut tape, &batch.blocks, &rows)?;
        let of = (&batch.links, self.loss.as_ref());
        let loss = self.links.backward(&mut tape, rows, of, gradients.dense)?;
        gradients.add_rows(&tape, &leaves, &batch.learnt);
        Ok(loss)
    }

    /// Rank 0 judges with all threads.
    fn evaluate(
        &self,
        state: &TrainState,
        rank: &dyn Communicator,
        threads: usize,
    ) -> Result<Evaluation> {
        let judge = || evaluate::alone(self.links, &state.params, &state.tables);
        by_first(rank, threads, judge)
    }
}
